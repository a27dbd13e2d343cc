//! Functions that return the folder of a file.

use std::path::Path;

/// Returns the folder of a file. For a bare name, returns the current folder.
pub(super) fn folder_of(file: &Path) -> &Path {
    or_here(file.parent().unwrap_or(Path::new("")))
}

/// Returns a folder unchanged, or the current folder for an empty path.
pub(super) fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

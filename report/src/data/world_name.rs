//! The name of a world.

use std::ffi::OsStr;
use std::path::Path;

/// Returns the name of a world: that of its file without the extension, or of the file's folder if that is `world`.
#[must_use]
pub fn world_name(file: &str) -> String {
    let path = Path::new(file);
    let name = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    match name(path.file_stem()) {
        Some(stem) if stem == "world" => {
            name(path.parent().and_then(|folder| folder.file_name())).unwrap_or(stem)
        }
        Some(stem) => stem,
        None => file.to_owned(),
    }
}

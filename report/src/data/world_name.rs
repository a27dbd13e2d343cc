//! Name of a world, taken from the path of its file.

use std::ffi::OsStr;
use std::path::Path;

/// Returns the name of a world: the file name without its extension. If that is `world`, the name of the file's
/// folder.
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

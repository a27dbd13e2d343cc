//! Lists a folder.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use crate::attributes::attributes;
use crate::frames::{self, Frames};

/// Lists the files of a folder, in the order of the bytes of their names, after the folder itself as `.` and its parent as
/// `..`. Another file is listed alone.
pub(crate) fn list(path: &Path, frames: &mut Frames) -> Result<(), String> {
    let what = |error: std::io::Error| format!("{}: {error}", path.display());
    let metadata = fs::symlink_metadata(path).map_err(what)?;
    if !metadata.is_dir() {
        let fields = attributes(path.as_os_str(), path, &metadata).map_err(what)?;
        return frames.fields(frames::ENTRY, &fields);
    }
    let mut names: Vec<OsString> = Vec::new();
    for entry in fs::read_dir(path).map_err(what)? {
        names.push(entry.map_err(what)?.file_name());
    }
    names.sort();
    let all = [OsStr::new("."), OsStr::new("..")].into_iter().chain(names.iter().map(OsString::as_os_str));
    for name in all {
        let file = path.join(name);
        let fields = fs::symlink_metadata(&file).and_then(|metadata| attributes(name, &file, &metadata));
        match fields {
            Ok(fields) => frames.fields(frames::ENTRY, &fields)?,
            Err(error) => {
                frames.bytes(frames::LEFT_OUT, format!("{}: {error}", file.display()).as_bytes())?;
            }
        }
    }
    Ok(())
}

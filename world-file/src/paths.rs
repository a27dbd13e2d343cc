//! Paths on the host and in the guest, as named in a world file.

use std::path::{Component, Path, PathBuf};

use everett_input::file::in_words;

use super::cursor::Item;
use super::error::Error;

/// Maximum length of a path, in bytes (Linux's PATH_MAX less its NUL).
const PATH_BYTES_MAX: usize = 4095;

/// Returns the host path that `item` names. A relative path starts at the world file's folder. It may not contain `..`,
/// and may not leave the folder through a symbolic link. A world file from someone else therefore reads only files that
/// came with it, or that it names by an absolute path.
pub(super) fn host(item: &Item<'_>) -> Result<PathBuf, Error> {
    host_text(item, item.str()?)
}

/// Returns the host path `text`, which is a part of `item`, by the rules of [`host`].
pub(super) fn host_text(item: &Item<'_>, text: &str) -> Result<PathBuf, Error> {
    if text.is_empty() || text.len() > PATH_BYTES_MAX || text.contains('\0') {
        return Err(item.error(format!("a path has 1 to {PATH_BYTES_MAX} bytes, none of them NUL")));
    }
    let named = Path::new(text);
    let folder = match item.source_file().parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let joined = folder.join(named);
    let escapes = || {
        item.error(format!(
            "\"{text}\" contains \"..\" or leaves the world file's folder; write an absolute path"
        ))
    };
    if named.is_relative() && named.components().any(|c| c == Component::ParentDir) {
        return Err(escapes());
    }
    let real =
        joined.canonicalize().map_err(|e| item.error(format!("{}: {}", joined.display(), in_words(&e))))?;
    if named.is_relative() {
        let folder = folder
            .canonicalize()
            .map_err(|e| item.error(format!("{}: {}", folder.display(), in_words(&e))))?;
        if !real.starts_with(folder) {
            return Err(escapes());
        }
    }
    Ok(real)
}

/// Returns `text` as an absolute path in the guest, in normal form. Paths in `/proc`, `/sys` and `/dev` are refused.
pub(super) fn guest(item: &Item<'_>, text: &str) -> Result<String, Error> {
    if !text.starts_with('/') || text.len() > PATH_BYTES_MAX || text.contains('\0') {
        return Err(item.error(format!("\"{text}\" is not an absolute path in the guest")));
    }
    let mut parts = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            return Err(item.error(format!("\"{text}\" contains \"..\"")));
        }
        parts.push(part);
    }
    match parts.first() {
        None => Err(item.error("the guest's \"/\" itself is not allowed here")),
        Some(top @ (&"proc" | &"sys" | &"dev")) => {
            Err(item.error(format!("\"{text}\" lies in /{top}, which the guest's kernel provides")))
        }
        Some(_) => Ok(format!("/{}", parts.join("/"))),
    }
}

//! Parses the paths in a world file: paths on the host, and paths in the guest.

use std::path::{Component, Path, PathBuf};

use everett_input::file::{folder_of, in_words};

use super::confinement;
use super::cursor::Item;
use super::error::Error;
use super::seal;

/// Maximum length of a path, in bytes: Linux's PATH_MAX without the final NUL.
const PATH_BYTES_MAX: usize = 4095;

/// Returns the host path in `item`. A relative path starts at the world file's folder. It may not contain `..`, and may
/// not leave the folder through a symbolic link. Therefore a world file from someone else reads only files that came
/// with it, and files that it names by an absolute path. A path in a compose file may not lead out of the compose
/// file's folder at all.
pub(super) fn host(item: &Item<'_>) -> Result<PathBuf, Error> {
    host_text(item, item.str()?)
}

/// Returns the host path `text`, which is a part of `item`. The rules of [`host`] apply.
pub(super) fn host_text(item: &Item<'_>, text: &str) -> Result<PathBuf, Error> {
    let folder = folder_of(item.source_file());
    let real = within(folder, folder, text).map_err(|what| item.error(what))?;
    if confinement::is_compose(item.source_file()) {
        confinement::check(folder, &real).map_err(|what| item.error(what))?;
    }
    real.canonicalize().map_err(|e| item.error(format!("{}: {}", folder.join(text).display(), in_words(&e))))
}

/// Returns the host path of a kernel or root filesystem. If the world comes from a finding file that contains its
/// images, this host has no file at the path, so the path is not checked.
pub(super) fn of_image(item: &Item<'_>) -> Result<PathBuf, Error> {
    if seal::has_images() { Ok(PathBuf::from(item.str()?)) } else { seal::unlisted(|| host(item)) }
}

/// Returns the host path `text`. A relative path starts at `folder`, may not contain `..`, and may not lead to a file
/// outside of `confines`. In a sealed world, i.e. a world that came in a finding file, absolute paths are looked up
/// beside the world's folder.
pub(super) fn within(folder: &Path, confines: &Path, text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.len() > PATH_BYTES_MAX || text.contains('\0') {
        return Err(format!("a path has 1 to {PATH_BYTES_MAX} bytes, none of them NUL"));
    }
    let named = Path::new(text);
    let is_moved = named.is_absolute() && seal::is_sealed();
    let joined = match is_moved {
        true => seal::place_of(named)
            .ok_or_else(|| format!("\"{text}\" contains \"..\", which a sealed world may not have"))?,
        false => folder.join(named),
    };
    seal::note(&joined, named);
    if named.is_absolute() && !is_moved {
        return Ok(joined);
    }
    let escapes = || {
        format!(
            "\"{text}\" contains \"..\" or leaves the file's folder; a world file can name absolute paths"
        )
    };
    if named.components().any(|c| c == Component::ParentDir) {
        return Err(escapes());
    }
    if let Ok(real) = joined.canonicalize() {
        let sealed = seal::folder().filter(|_| is_moved);
        let confines = sealed.as_deref().unwrap_or(confines);
        let confines =
            confines.canonicalize().map_err(|e| format!("{}: {}", confines.display(), in_words(&e)))?;
        if !real.starts_with(confines) {
            return Err(escapes());
        }
    }
    Ok(joined)
}

/// Returns `text` as an absolute path in the guest, in normal form. Refuses paths in `/proc`, `/sys` and `/dev`.
pub(super) fn guest(item: &Item<'_>, text: &str) -> Result<String, Error> {
    guest_text(text).map_err(|what| item.error(what))
}

/// Returns `text` as a path in the guest. The rules of [`guest`] apply.
pub(super) fn guest_text(text: &str) -> Result<String, String> {
    if !text.starts_with('/') || text.len() > PATH_BYTES_MAX || text.contains('\0') {
        return Err(format!("\"{text}\" is not an absolute path in the guest"));
    }
    let mut parts = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            return Err(format!("\"{text}\" contains \"..\""));
        }
        parts.push(part);
    }
    match parts.first() {
        None => Err("the guest's \"/\" itself is not allowed here".to_owned()),
        Some(top @ (&"proc" | &"sys" | &"dev")) => {
            Err(format!("\"{text}\" lies in /{top}, which the guest's kernel provides"))
        }
        Some(_) => Ok(format!("/{}", parts.join("/"))),
    }
}

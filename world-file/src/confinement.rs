//! Checks that compose files refer only to files in their own folders.
//!
//! Users start compose files that other people wrote. Therefore each path in a compose file, also in its block
//! `x-everett`, must lead to a file below the compose file's folder. World files may contain absolute paths.

use std::path::Path;

use everett_input::file::in_words;

use super::seal;

/// Returns true if a file's name has the ending of a compose file.
pub(super) fn is_compose(file: &Path) -> bool {
    file.extension().is_some_and(|end| ["yaml", "yml"].iter().any(|known| end == *known))
}

/// Returns an error if `path` leads out of the compose file's `folder`. A path that does not exist is allowed.
pub(super) fn check(folder: &Path, path: &Path) -> Result<(), String> {
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    // A world that came in a finding file has a seal, a file beside the world's folder. Everything below the folder
    // that contains the seal came with this world, so it is allowed, too.
    let sealed = seal::folder();
    let folder = sealed.as_deref().unwrap_or(folder);
    let folder = folder.canonicalize().map_err(|e| format!("{}: {}", folder.display(), in_words(&e)))?;
    if real.starts_with(folder) {
        return Ok(());
    }
    Err(format!("{} leads out of the compose file's folder", path.display()))
}

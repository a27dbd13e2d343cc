//! Confinement of compose files to their folders.
//!
//! People start compose files that others wrote. Each path in such a file, also in its block `x-everett`, therefore leads
//! to a file below its folder. World files may name absolute paths.

use std::path::Path;

use everett_input::file::in_words;

use super::seal;

/// Returns true if a file is a compose file by its name.
pub(super) fn is_compose(file: &Path) -> bool {
    file.extension().is_some_and(|end| ["yaml", "yml"].iter().any(|known| end == *known))
}

/// Returns an error if `path` leads out of the compose file's `folder`. A path that does not exist leads nowhere.
pub(super) fn check(folder: &Path, path: &Path) -> Result<(), String> {
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    // Everything below the folder of a seal came with the world.
    let sealed = seal::folder();
    let folder = sealed.as_deref().unwrap_or(folder);
    let folder = folder.canonicalize().map_err(|e| format!("{}: {}", folder.display(), in_words(&e)))?;
    if real.starts_with(folder) {
        return Ok(());
    }
    Err(format!("{} leads out of the compose file's folder", path.display()))
}

//! Resolves host paths in compose files.

use std::path::{Path, PathBuf};

use super::value::Value;
use crate::error::Error;
use crate::{paths, seal};

/// Resolves `text`, a part of `value`, to a host path. Fails if the path leads out of the project's folder `confines`.
pub(super) fn host_path(value: &Value, confines: &Path, text: &str) -> Result<PathBuf, Error> {
    let outside =
        || value.error(format!("\"{}\" is outside of the compose file's folder", text.escape_debug()));
    if text.starts_with('/') && !seal::is_sealed() {
        // An absolute path into the project's folder is allowed, too.
        seal::note(Path::new(text), Path::new(text));
        let real = Path::new(text).canonicalize().map_err(|_| outside())?;
        let folder = confines.canonicalize().map_err(|_| outside())?;
        return if real.starts_with(&folder) { Ok(real) } else { Err(outside()) };
    }
    if text.starts_with('~') || text.split('/').any(|part| part == "..") {
        return Err(outside());
    }
    paths::within(value.folder(), confines, text).map_err(|_| outside())
}

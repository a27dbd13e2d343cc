//! Replaces files atomically and durably.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Replaces a file. After a power loss of the host, the file has either its old or its new content. If the path is a
/// link, the link is replaced, not its target.
///
/// # Errors
/// Returns an error if the file cannot be written or synced.
pub fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let here = || file.display().to_string();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files are private by default. The operator's umask decides who may read this file.
    let mut builder = tempfile::Builder::new();
    let temporary = builder.permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder);
    let mut temporary = temporary.with_context(here)?;
    temporary.write_all(text.as_bytes()).with_context(here)?;
    temporary.as_file().sync_all().with_context(here)?;
    temporary.persist(file).map_err(|error| error.error).with_context(here)?;
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(here)
}

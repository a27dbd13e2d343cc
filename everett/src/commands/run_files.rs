//! Writes files in run directories.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Replaces a file atomically. If the path is a link, the link is replaced, not its target.
pub(super) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let name = file.display().to_string();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files are private by default. A report should be readable by others, as far as the user's umask
    // allows.
    let mut builder = tempfile::Builder::new();
    let temporary = builder.permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder);
    let mut temporary = temporary.with_context(|| name.clone())?;
    temporary.write_all(text.as_bytes()).with_context(|| name.clone())?;
    temporary.persist(file).map_err(|error| error.error).with_context(|| name.clone())?;
    Ok(())
}

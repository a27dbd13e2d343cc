//! Replaces files atomically and durably.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use everett_input::file::folder_of;

/// Replaces a file by a new one with this text, as [`replace_by`] does.
///
/// # Errors
/// Returns an error if [`replace_by`] fails.
pub fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    replace_by(file, |new| Ok(new.write_all(text.as_bytes())?))
}

/// Replaces a file by a new one, whose content comes from `write`. After a power loss of the host, the file has either
/// its old or its new content. If the path is a link, the link is replaced, not its target.
///
/// # Errors
/// Returns an error if `write` fails, or if the file or its folder cannot be opened, written or synced. The old file
/// then stays. If only the sync of the folder fails, the new file is in place, but a power loss of the host may bring
/// the old one back.
pub fn replace_by<T>(file: &Path, write: impl FnOnce(&mut File) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let here = || file.display().to_string();
    let folder = folder_of(file);
    // The folder is opened before the file is replaced, so an unreadable folder leaves the old file unchanged.
    let opened = File::open(folder).with_context(|| folder.display().to_string())?;
    // Temporary files are private by default. The operator's umask decides who may read this file.
    let mut builder = tempfile::Builder::new();
    let temporary = builder.permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder);
    let mut temporary = temporary.with_context(here)?;
    let written = write(temporary.as_file_mut()).with_context(here)?;
    temporary.as_file().sync_all().with_context(here)?;
    temporary.persist(file).map_err(|error| error.error).with_context(here)?;
    opened.sync_all().with_context(|| format!("{}: the folder cannot be synced", folder.display()))?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use anyhow::bail;

    use super::*;

    /// Returns the names of the files in a folder, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_is_replaced_and_its_target_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [target, link, plain] = ["target", "link", "plain"].map(|name| folder.path().join(name));
        fs::write(&target, "old").unwrap();
        fs::write(&plain, "").unwrap();
        symlink(&target, &link).unwrap();
        replace(&link, "new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_file());
        assert_eq!((fs::read(&link).unwrap(), fs::read(&target).unwrap()), (b"new".into(), b"old".into()));
        // The umask of the process decides the mode, as it does for other new files.
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&link), mode(&plain));
        assert_eq!(names(folder.path()), ["link", "plain", "target"]);
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        replace(&file, "old").unwrap();
        let failed: anyhow::Result<()> = replace_by(&file, |new| {
            new.write_all(b"half")?;
            bail!("no more")
        });
        assert_eq!(format!("{:#}", failed.unwrap_err()), format!("{}: no more", file.display()));
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["file"]);

        let missing = folder.path().join("missing");
        let error = replace(&missing.join("file"), "").unwrap_err();
        assert_eq!(error.to_string(), missing.display().to_string());
    }
}

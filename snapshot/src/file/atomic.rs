//! Atomic file writes: a file is complete under its name, or does not exist.
//!
//! A writer writes the file under a temporary name in the same folder, syncs it, renames it, and syncs the folder. If a
//! step up to the renaming fails, the writer removes the temporary file, and an earlier file under the target name
//! stays. If only the sync of the folder fails, the new file is in place but may not survive a power loss.
//!
//! A killed process leaves its temporary file behind, but the kernel releases the process's lock on the file.
//! [`sweep_temporaries`] removes temporary files whose lock is free. It may also hit a new file that its writer has not
//! locked yet. That writer notices that its file is gone, and creates another one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::FileError;

/// Prefix of the names of temporary files.
pub const TEMPORARY_PREFIX: &str = ".everett-temporary-";
/// Maximum number of temporary names that a writer tries. It tries the next name if a file with the name exists, or if
/// [`sweep_temporaries`] has removed the new file.
const ATTEMPTS_MAX: u32 = 1000;

/// A file under its temporary name, until it is renamed.
pub(crate) struct Temporary<'a> {
    file: File,
    path: PathBuf,
    /// Final path of the file.
    target: &'a Path,
    renamed: bool,
}

/// Writes a file through `write`. On success, the file exists as `target` and is durable.
pub(crate) fn write_atomically<T>(
    target: &Path,
    write: impl FnOnce(&Temporary<'_>) -> Result<T, FileError>,
) -> Result<T, FileError> {
    let folder = folder_of(target);
    let mut temporary = Temporary::create(folder, target)?;
    let written = write(&temporary)?;
    temporary.file.sync_all().map_err(FileError::io(target, "write"))?;
    fs::rename(&temporary.path, target).map_err(FileError::io(target, "write"))?;
    temporary.renamed = true;
    sync_folder(folder)?;
    Ok(written)
}

impl<'a> Temporary<'a> {
    fn create(folder: &Path, target: &'a Path) -> Result<Temporary<'a>, FileError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{TEMPORARY_PREFIX}{}-{number}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let temporary = Temporary { file, path, target, renamed: false };
                    if temporary.lock().map_err(FileError::io(target, "lock"))? {
                        return Ok(temporary);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(FileError::io(target, "create")(error)),
            }
        }
        Err(FileError::io(target, "create")(taken))
    }

    /// Locks the file. Returns false if [`sweep_temporaries`] has removed or locked it before.
    fn lock(&self) -> io::Result<bool> {
        if !try_lock(&self.file)? {
            return Ok(false);
        }
        Ok(self.file.metadata()?.nlink() > 0)
    }

    /// Writes bytes at an offset.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), FileError> {
        self.file.write_all_at(bytes, offset).map_err(FileError::io(self.target, "write"))
    }
    /// Sets the length in bytes. Parts of the file that are not written are holes.
    pub(crate) fn set_len(&self, bytes: u64) -> Result<(), FileError> {
        self.file.set_len(bytes).map_err(FileError::io(self.target, "write"))
    }
    /// Returns the final path, for error messages.
    pub(crate) fn target(&self) -> &'a Path {
        self.target
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // The failure has already been reported. If the file cannot be removed now, a later sweep removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the temporary files of killed writers from a folder. Returns the number of removed files. Files of running
/// writers stay.
///
/// # Errors
/// Returns an error if the folder cannot be read or a file cannot be removed.
pub fn sweep_temporaries(folder: &Path) -> Result<usize, FileError> {
    let mut removed = 0;
    for entry in fs::read_dir(folder).map_err(FileError::io(folder, "list"))? {
        let entry = entry.map_err(FileError::io(folder, "list"))?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        if remove_if_left_over(&path).map_err(FileError::io(&path, "remove"))? {
            removed += 1;
        }
    }
    Ok(removed)
}

fn remove_if_left_over(path: &Path) -> io::Result<bool> {
    // Only regular files are opened, and links are not followed, because anything may have a name with the prefix.
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(false),
        Err(error) => return gone(error),
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return gone(error),
    };
    if !try_lock(&file)? {
        return Ok(false);
    }
    // The writer may have finished after the file was opened. The path is then missing or names another file.
    let (opened, named) = match fs::symlink_metadata(path) {
        Ok(named) => (file.metadata()?, named),
        Err(error) => return gone(error),
    };
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
        return Ok(false);
    }
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) => gone(error),
    }
}

/// Returns `Ok(false)` if the error says that the file does not exist. Otherwise returns the error.
fn gone(error: io::Error) -> io::Result<bool> {
    if error.kind() == io::ErrorKind::NotFound { Ok(false) } else { Err(error) }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn sync_folder(folder: &Path) -> Result<(), FileError> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(FileError::io(folder, "sync"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_living_writer_keeps_its_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomically(&path, |file| {
            file.write_at(b"half", 0)?;
            assert_eq!(sweep_temporaries(folder.path())?, 0);
            assert!(names(folder.path())[0].starts_with(TEMPORARY_PREFIX));
            file.write_at(b" and half", 4)
        })
        .unwrap();
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read(&path).unwrap(), b"half and half");
    }

    #[test]
    fn a_failing_writer_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"old").unwrap();
        let error = write_atomically::<()>(&path, |file| {
            file.write_at(b"new", 0)?;
            Err(FileError::io(&path, "write")(io::Error::from(io::ErrorKind::StorageFull)))
        });
        assert_eq!(error.unwrap_err().to_string(), format!("cannot write {}", path.display()));
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    /// The sweep removes only regular files with the prefix whose lock is free.
    #[test]
    fn leftovers_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (left, locked) = (format!("{TEMPORARY_PREFIX}1-1"), format!("{TEMPORARY_PREFIX}1-2"));
        fs::write(at(&left), b"part").unwrap();
        fs::write(at("file"), b"whole").unwrap();
        fs::create_dir(at(&format!("{TEMPORARY_PREFIX}folder"))).unwrap();
        std::os::unix::fs::symlink(at("file"), at(&format!("{TEMPORARY_PREFIX}link"))).unwrap();
        let lock = File::create(at(&locked)).unwrap();
        assert!(try_lock(&lock).unwrap());
        assert_eq!(sweep_temporaries(folder.path()).unwrap(), 1);
        assert!(!at(&left).exists() && at(&locked).exists() && at("file").exists());
        drop(lock);
        assert_eq!(sweep_temporaries(folder.path()).unwrap(), 1);
        assert_eq!(names(folder.path()).len(), 3);
    }

    /// A writer skips temporary names that exist already.
    #[test]
    fn a_taken_name_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let first = Temporary::create(folder.path(), &path).unwrap();
        let number: u64 = first.path.to_str().unwrap().rsplit('-').next().unwrap().parse().unwrap();
        for next in number + 1..number + 50 {
            fs::write(folder.path().join(format!("{TEMPORARY_PREFIX}{}-{next}", std::process::id())), b"")
                .unwrap();
        }
        write_atomically(&path, |file| file.write_at(b"x", 0)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }
}

//! Atomic replacement of files, and the lock on the run directory.
//!
//! Only the holder of the lock writes. Any temporary file that the holder finds was therefore left by a writer that was
//! killed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::end::ExplorationEnd;
use super::error::RunError;
use super::error::reason;
use super::limits::HEADER_BYTES_MAX;
use super::names::{END, TEMPORARY};

/// Name of the lock file.
const LOCK: &str = "lock";

/// Locks the run directory. The lock is held until the returned file is closed.
pub(super) fn lock(run: &Path) -> Result<File, RunError> {
    let path = run.join(LOCK);
    let file = open(&path, true)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RunError::Busy(run.to_owned())),
        Err(TryLockError::Error(source)) => Err(RunError::io("lock", &path)(source)),
    }
}

/// Opens a file of the run directory for reading and writing. If `create` is true, creates a missing file. The file
/// must be a regular file and not a link, so that Everett changes no file outside the folder.
pub(super) fn open(path: &Path, create: bool) -> Result<File, RunError> {
    let opened = everett_input::file::open_own(path, create).map_err(io::Error::from);
    opened.map_err(RunError::io("open", path))
}

/// Returns an error if `path` is not a folder. A link to a folder is refused, too.
pub(super) fn check_is_folder(path: &Path) -> Result<(), RunError> {
    let failed = RunError::io("open", path);
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(failed(io::Error::other("this is not a folder, and a folder is needed"))),
        Err(error) => Err(failed(error)),
    }
}

/// Reads `end.json`. Returns `None` if the run has not ended.
pub(super) fn read_end(run: &Path) -> Result<Option<ExplorationEnd>, RunError> {
    read(run, END)?.map(|bytes| from_json(run, END, &bytes)).transpose()
}

/// Reads a file of at most [`HEADER_BYTES_MAX`] bytes. Returns `None` if the file does not exist.
pub(super) fn read(run: &Path, name: &str) -> Result<Option<Vec<u8>>, RunError> {
    let path = run.join(name);
    let file = match everett_input::file::open(&path).map_err(io::Error::from) {
        Ok((file, _)) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunError::io("open", &path)(error)),
    };
    let mut bytes = Vec::new();
    let most = HEADER_BYTES_MAX as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(RunError::io("read", &path))?;
    if bytes.len() > HEADER_BYTES_MAX {
        return Err(RunError::FileTooLong(path));
    }
    Ok(Some(bytes))
}

/// Parses a file's JSON.
pub(super) fn from_json<T: DeserializeOwned>(run: &Path, name: &str, bytes: &[u8]) -> Result<T, RunError> {
    serde_json::from_slice(bytes)
        .map_err(|error| RunError::Json { path: run.join(name), problem: reason(&error) })
}

/// Formats a value as the JSON of a file.
pub(super) fn to_json<T: Serialize>(run: &Path, name: &str, value: &T) -> Result<Vec<u8>, RunError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| RunError::Json { path: run.join(name), problem: reason(&error) })?;
    bytes.push(b'\n');
    if bytes.len() > HEADER_BYTES_MAX {
        return Err(RunError::FileTooLong(run.join(name)));
    }
    Ok(bytes)
}

/// Replaces a file atomically. After a crash or a power loss, the file has either its old contents or the new contents.
pub(super) fn write(run: &Path, name: &str, bytes: &[u8]) -> Result<(), RunError> {
    let (path, temporary) = (run.join(name), run.join(format!("{TEMPORARY}{name}")));
    write_new(&temporary, bytes)?;
    fs::rename(&temporary, &path).map_err(RunError::io("write", &path))?;
    sync(run)
}

/// Writes a file and syncs it. A concurrent reader may see a part of the contents.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(RunError::io("write", path))
}

/// Removes a file if it exists.
pub(super) fn remove(run: &Path, name: &str) -> Result<(), RunError> {
    let path = run.join(name);
    match fs::remove_file(&path) {
        Ok(()) => sync(run),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(RunError::io("remove", &path)(error)),
    }
}

/// Removes the temporary files and folders that killed writers left behind.
pub(super) fn sweep(folder: &Path) -> Result<(), RunError> {
    for entry in fs::read_dir(folder).map_err(RunError::io("list", folder))? {
        let entry = entry.map_err(RunError::io("list", folder))?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_folder = entry.file_type().map_err(RunError::io("look at", &path))?.is_dir();
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(RunError::io("remove", &path))?;
    }
    Ok(())
}

/// Syncs a folder, so that the names in the folder are durable.
pub(super) fn sync(folder: &Path) -> Result<(), RunError> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(RunError::io("sync", folder))
}

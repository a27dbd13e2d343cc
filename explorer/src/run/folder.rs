//! Files that are there whole or not at all, and the lock on their folder.
//!
//! Who writes has the lock, so a temporary that is found is a dead writer's.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::end::End;
use super::limits::HEADER_BYTES_MAX;
use super::problem::RunError;
use super::problem::told;

/// What is explored.
pub(super) const HEADER: &str = "run.json";
/// The records.
pub(super) const BRANCHES: &str = "branches.bin";
/// Evidence.
pub(super) const FINDINGS: &str = "findings";
/// How it ended.
pub(super) const END: &str = "end.json";
const LOCK: &str = "lock";
/// What the names of temporaries begin with.
pub(super) const TEMPORARY: &str = ".temporary-";

/// Be the only one who writes, as long as the file is held.
pub(super) fn lock(run: &Path) -> Result<File, RunError> {
    let path = run.join(LOCK);
    let file = open(&path, true)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RunError::Busy(run.to_owned())),
        Err(TryLockError::Error(source)) => Err(RunError::io("lock", &path)(source)),
    }
}

/// Opens a file of the folder's for reading and writing, and makes it if `create` says so. It is a regular file and no link: what is
/// written to it, and cut off of it, is in the folder.
pub(super) fn open(path: &Path, create: bool) -> Result<File, RunError> {
    let opened = everett_input::file::open_own(path, create).map_err(io::Error::from);
    opened.map_err(RunError::io("open", path))
}

/// Fails if this is no folder, but a link to one.
pub(super) fn check_is_folder(path: &Path) -> Result<(), RunError> {
    let failed = RunError::io("open", path);
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(failed(io::Error::other("this is not a folder, and a folder is needed"))),
        Err(error) => Err(failed(error)),
    }
}

/// How the run ended, if it did.
pub(super) fn read_end(run: &Path) -> Result<Option<End>, RunError> {
    read(run, END)?.map(|bytes| from_json(run, END, &bytes)).transpose()
}

/// A small file; `None` if it is not there.
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

/// A file's value.
pub(super) fn from_json<T: DeserializeOwned>(run: &Path, name: &str, bytes: &[u8]) -> Result<T, RunError> {
    serde_json::from_slice(bytes)
        .map_err(|error| RunError::Json { path: run.join(name), problem: told(&error) })
}

/// A value as a file has it.
pub(super) fn to_json<T: Serialize>(run: &Path, name: &str, value: &T) -> Result<Vec<u8>, RunError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| RunError::Json { path: run.join(name), problem: told(&error) })?;
    bytes.push(b'\n');
    if bytes.len() > HEADER_BYTES_MAX {
        return Err(RunError::FileTooLong(run.join(name)));
    }
    Ok(bytes)
}

/// Write a file. Whatever happens, it is there as it was or as it is to be.
pub(super) fn write(run: &Path, name: &str, bytes: &[u8]) -> Result<(), RunError> {
    let (path, temporary) = (run.join(name), run.join(format!("{TEMPORARY}{name}")));
    write_new(&temporary, bytes)?;
    fs::rename(&temporary, &path).map_err(RunError::io("write", &path))?;
    sync(run)
}

/// Write a file and make it last. It can be seen half written.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(RunError::io("write", path))
}

/// Remove a file, if it is there.
pub(super) fn remove(run: &Path, name: &str) -> Result<(), RunError> {
    let path = run.join(name);
    match fs::remove_file(&path) {
        Ok(()) => sync(run),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(RunError::io("remove", &path)(error)),
    }
}

/// Remove what dead writers left.
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

/// Make names in a folder last.
pub(super) fn sync(folder: &Path) -> Result<(), RunError> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(RunError::io("sync", folder))
}

//! Records which worlds use which items (files and folders) of the cache, so that unused items can be removed while
//! other processes run.
//!
//! A *note* is a file in the folder `uses`. The note names a world and the items that the world uses, as paths within
//! the cache. The note's name is the digest of its content, and its modification time is the time of the last use. A
//! process that uses the items keeps the note locked until the process ends.
//!
//! **Invariant.** A process that looks up, makes or notes an item holds the cache's *gate*, a file lock, in shared
//! mode. A process that removes items holds the gate exclusively. No item can therefore be removed between its lookup
//! and its note.
//!
//! This process may be unable to write to a cache, because the cache belongs to another user or its filesystem is
//! mounted read-only. Everett then writes no notes, and takes no gate if the cache has none. If the cache's owner runs
//! `everett cache prune` meanwhile, the command does not see that this process uses items, and may remove them.

use super::{Cache, Error, persist};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Maximum length of a note, in bytes.
const NOTE_BYTES_MAX: u64 = 1 << 20;

/// Name of the folder of notes.
const USES: &str = "uses";

/// Content of a note, in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Path of the world file. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub world: PathBuf,
    /// Items that the world uses, as paths within the cache.
    pub items: BTreeSet<String>,
}

/// A note of the cache, and whether a process uses its items.
#[derive(Debug, Clone)]
pub struct Use {
    /// Path of the note's file.
    pub path: PathBuf,
    /// Content of the note.
    pub note: Note,
    /// True if a running process uses the items.
    pub running: bool,
}

/// The locked gate. The lock is held for the life of this value. The field is `None` if this process may not write to
/// the cache and cannot open the gate.
#[derive(Debug)]
pub struct Gate(#[expect(dead_code, reason = "the open file holds the lock")] Option<File>);

impl Cache {
    fn gate_path(&self) -> PathBuf {
        self.folder.join("gate")
    }

    /// Waits until no process removes items, and locks the gate in shared mode. While the lock is held, no process
    /// removes an item.
    ///
    /// # Errors
    /// Returns an error if the gate cannot be created or locked although this process may write to the cache.
    pub fn enter(&self) -> Result<Gate, Error> {
        let path = self.gate_path();
        let failed = |source: io::Error| Error::of(&path, source);
        let file = match gate_file(&path) {
            Ok(file) => file,
            Err(error) if is_refusal(&error) => match File::open(&path) {
                Ok(file) => file,
                Err(_) => return Ok(Gate(None)),
            },
            Err(error) => return Err(failed(error)),
        };
        file.lock_shared().map_err(failed)?;
        Ok(Gate(Some(file)))
    }

    /// Locks the gate exclusively, in order to remove items. Returns `None` if another process holds the gate.
    ///
    /// # Errors
    /// Returns an error if the cache cannot be written.
    pub fn enter_alone(&self) -> Result<Option<Gate>, Error> {
        let path = self.gate_path();
        let file = gate_file(&path).map_err(|source| Error::of(&path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Gate(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::of(&path, source)),
        }
    }

    /// Writes a note that this process uses files or folders of the cache for a world. The note stays locked until the
    /// process ends. Does nothing if this process may not write to the cache.
    ///
    /// # Errors
    /// Returns an error if the note cannot be written although this process may write to the cache.
    pub fn note(&self, gate: &Gate, world: &Path, items: &[&Path]) -> Result<(), Error> {
        match self.try_note(gate, world, items) {
            Err(Error::File { source, .. }) if is_refusal(&source) => Ok(()),
            result => result,
        }
    }

    fn try_note(&self, _gate: &Gate, world: &Path, items: &[&Path]) -> Result<(), Error> {
        let world = world.canonicalize().unwrap_or_else(|_| world.to_owned());
        let world = PathBuf::from(world.to_string_lossy().into_owned());
        let inside = |path: &&Path| Some(path.strip_prefix(&self.folder).ok()?.to_str()?.to_owned());
        let note = Note { world, items: items.iter().filter_map(inside).collect() };
        let uses = self.folder.join(USES);
        let failed = |source: io::Error| Error::of(&uses, source);
        let text = serde_json::to_vec(&note).map_err(|error| failed(io::Error::other(error)))?;
        let path = uses.join(format!("{}.json", blake3::hash(&text).to_hex()));
        // Writes the note if there is none, or if a crash has damaged it.
        if !everett_input::file::read(&path, NOTE_BYTES_MAX).is_ok_and(|known| known == text) {
            let mut file = self.temporary_file()?;
            file.write_all(&text).map_err(failed)?;
            file.as_file().sync_all().map_err(failed)?;
            persist(file, &path).map_err(failed)?;
        }
        touch(&path);
        let file = File::open(&path).map_err(failed)?;
        file.lock_shared().map_err(failed)?;
        // The file stays open, and the note locked, until the process ends.
        std::mem::forget(file);
        Ok(())
    }

    /// Returns all notes, except those that cannot be read.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn uses(&self) -> Result<Vec<Use>, Error> {
        let uses = self.folder.join(USES);
        let entries = fs::read_dir(&uses).map_err(|source| Error::of(&uses, source))?;
        let read = |path: PathBuf| {
            let text = everett_input::file::read(&path, NOTE_BYTES_MAX).ok()?;
            let note = serde_json::from_slice(&text).ok()?;
            let running = matches!(File::open(&path).ok()?.try_lock(), Err(TryLockError::WouldBlock));
            Some(Use { path, note, running })
        };
        let mut all: Vec<Use> = entries.flatten().filter_map(|entry| read(entry.path())).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }
}

fn gate_file(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// True if the error means that this process has no permission to write.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Sets a file's modification time, which is the time of its last use, to now. Ignores errors: the file then looks
/// older and may be removed earlier.
pub fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access: omit, last_modification: now };
    let _ = rustix::fs::utimensat(CWD, path, &times, AtFlags::empty());
}

#[cfg(test)]
mod tests {
    use super::{Cache, Note};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        (folder, cache)
    }

    fn note(cache: &Cache, world: &Path) {
        let item = cache.folder().join("entries/item");
        cache.note(&cache.enter().unwrap(), world, &[item.as_path()]).unwrap();
    }

    /// Returns the path and content of the cache's only note.
    fn noted(cache: &Cache) -> (PathBuf, Note) {
        let [one] = <[_; 1]>::try_from(cache.uses().unwrap()).unwrap();
        assert!(one.running);
        (one.path, one.note)
    }

    #[test]
    fn a_world_whose_path_is_not_text_is_noted() {
        let (_folder, cache) = cache();
        note(&cache, Path::new(OsStr::from_bytes(b"/nowhere/w\xff.toml")));
        assert_eq!(noted(&cache).1.world, Path::new("/nowhere/w\u{fffd}.toml"));
    }

    #[test]
    fn a_damaged_note_is_written_anew_and_an_intact_one_is_kept() {
        let (_folder, cache) = cache();
        let world = Path::new("/nowhere/world.toml");
        note(&cache, world);
        let (path, good) = noted(&cache);
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
        let first = inode(&path);
        note(&cache, world);
        assert_eq!(
            inode(&path),
            first,
            "an intact note keeps its file, which another process may have locked"
        );
        for damage in ["", "{", "{}"] {
            fs::write(&path, damage).unwrap();
            note(&cache, world);
            assert_eq!(noted(&cache), (path.clone(), good.clone()), "{damage:?}");
        }
    }
}

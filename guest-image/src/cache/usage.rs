//! Who uses what of the cache, and when: notes by which the rest can be removed while others run.
//!
//! A *note* is a file in `uses/` that names a world and items of the cache, as paths within it. Its name is the digest of
//! what it says, its time is that of the last use, and a process that uses the items has it locked until it ends.
//!
//! **Invariant.** Who looks for an item, makes it or notes its use holds the cache's *gate* shared; who removes items holds it
//! alone. So an item that was found is noted before it can be removed.

use super::{Cache, Error, persist};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Most bytes of a note.
const NOTE_BYTES_MAX: u64 = 1 << 20;

/// The folder of notes.
const USES: &str = "uses";

/// What a note says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The world file.
    pub world: PathBuf,
    /// The items, as paths within the cache.
    pub items: BTreeSet<String>,
}

/// A note that was read.
#[derive(Debug, Clone)]
pub struct Use {
    /// The note's file.
    pub path: PathBuf,
    /// What it says.
    pub note: Note,
    /// Whether a process that uses the items is running.
    pub running: bool,
}

/// The gate, open for its holder as long as this lives.
#[derive(Debug)]
pub struct Gate(#[expect(dead_code, reason = "the lock is the file's")] File);

impl Cache {
    fn gate_file(&self) -> Result<(PathBuf, File), Error> {
        let path = self.folder.join("gate");
        let file = File::options().create(true).append(true).open(&path);
        file.map_err(|source| Error::of(&path, source)).map(|file| (path, file))
    }

    /// Waits until nothing is removed. Nothing will be as long as the gate is held.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub fn enter(&self) -> Result<Gate, Error> {
        let (path, file) = self.gate_file()?;
        file.lock_shared().map_err(|source| Error::of(&path, source))?;
        Ok(Gate(file))
    }

    /// The gate for who removes items; `None` while others look for items or make them.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub fn enter_alone(&self) -> Result<Option<Gate>, Error> {
        let (path, file) = self.gate_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Gate(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::of(&path, source)),
        }
    }

    /// Notes that this process uses files or folders of the cache for a world, until it ends.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub fn note(&self, _gate: &Gate, world: &Path, items: &[&Path]) -> Result<(), Error> {
        let world = world.canonicalize().unwrap_or_else(|_| world.to_owned());
        let inside = |path: &&Path| Some(path.strip_prefix(&self.folder).ok()?.to_str()?.to_owned());
        let note = Note { world, items: items.iter().filter_map(inside).collect() };
        let uses = self.folder.join(USES);
        let failed = |source: io::Error| Error::of(&uses, source);
        let text = serde_json::to_vec(&note).map_err(|error| failed(io::Error::other(error)))?;
        let path = uses.join(format!("{}.json", blake3::hash(&text).to_hex()));
        if !path.is_file() {
            let mut file = self.temporary_file()?;
            file.write_all(&text).map_err(failed)?;
            persist(file, &path).map_err(failed)?;
        }
        touch(&path);
        let file = File::open(&path).map_err(failed)?;
        file.lock_shared().map_err(failed)?;
        // The lock goes with the process.
        std::mem::forget(file);
        Ok(())
    }

    /// All notes. One that cannot be read says nothing.
    ///
    /// # Errors
    /// The folder cannot be read.
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

/// Makes now the time of a file's last use. Where that is not possible it looks older than it is, and is made again.
pub fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access: omit, last_modification: now };
    let _ = rustix::fs::utimensat(CWD, path, &times, AtFlags::empty());
}

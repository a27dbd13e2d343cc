//! Folder in the user's cache with a stored boot and the moments saved after it.
//!
//! The folder's name is a key, i.e. a hash of everything that the boot depends on. The boot does not depend on most
//! settings of the workload. Worlds that differ only in these settings share a folder. `TIMELINES` is a second key,
//! which also covers the whole workload.
//!
//! ```text
//! moments/KEY/boot-ready.moment             ready, the root of all timelines; each page is stored once, compressed
//!             boot-restart.moment           the restart points of all nodes, as differences from ready
//!             saved/TIMELINES/NAME.moment   a moment that the operator saved, as differences from ready
//! ```
//!
//! The restart point of a node is the state of its machine right after it has mounted the root filesystem. A
//! warm restart after a power loss continues from there.
//!
//! When Everett reads *ready*, it puts the memory of each node into a base: read-only pages in this process' memory,
//! from which machines map their RAM. A base can also be a file on disk. Its digest depends only on its pages, so a
//! base in memory and a base file with the same pages have the same digest.
//!
//! The key covers the machine version and the versions of the formats, so Everett never loads a moment from the folder
//! of another version. `everett cache prune` removes folders of other versions.

use std::fs::{self, File, TryLockError};
use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, bail};
use everett_input::causes::with_causes;
use everett_snapshot::file::{BASE_FORMAT, BaseDigest, sweep_temporaries};
use everett_snapshot::moment::{MOMENT_FORMAT, MomentFile, MomentHeader};
use everett_snapshot::{Base, BaseFile, PageImage, Pool};
use everett_streams::{BootSeed, Seed};
use everett_vmm::machine::{Moment, STATE_VERSION};
use everett_vmm::world::WORLD_VERSION;

use super::stored::Stored;
use crate::world::identity::{Identity, MACHINE_VERSION, check_timeline};
use crate::world::timeline::SESSION_VERSION;
use crate::world::timeline::restart_point::RestartPoint;

const RESTART: &str = "boot-restart.moment";
const READY: &str = "boot-ready.moment";
/// Maximum length of the name of a saved moment, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Maximum number of saved moments in a list.
const SAVED_MAX: usize = 100_000;

/// Folder with a stored boot, and the moments of one world saved after this boot.
#[derive(Debug, Clone)]
pub struct MomentFolder {
    folder: PathBuf,
    /// Key of the boot: the versions of the formats and the boot's identity.
    key: [u8; 32],
    /// Key of the saved moments: the boot's key and the identity of the world, which covers the workload.
    timelines: [u8; 32],
}

/// Entry in the list of saved moments.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Name of the moment.
    pub name: String,
    /// Header of the moment's file.
    pub header: MomentHeader,
}

/// Checks that `name` is a valid name for a saved moment.
///
/// # Errors
/// Returns a message of one line with the rule for names.
pub fn check_name(name: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || name.starts_with('.') || !name.chars().all(fine) {
        return Err(format!(
            "\"{name}\": a moment's name has 1 to {NAME_CHARS_MAX} letters, digits, \"-\", \"_\" and \".\", and does not \
             begin with \".\""
        ));
    }
    Ok(())
}

impl MomentFolder {
    /// Returns the folder in `cache` for a world with the identity `world` and the boot identity `boot`.
    #[must_use]
    pub fn new(cache: &Path, world: &Identity, boot: &Identity) -> MomentFolder {
        let mut hasher = blake3::Hasher::new_derive_key("everett moments of a world");
        hasher.update(MACHINE_VERSION.as_bytes());
        for version in [STATE_VERSION, WORLD_VERSION, SESSION_VERSION, BASE_FORMAT, MOMENT_FORMAT] {
            hasher.update(&version.to_le_bytes());
        }
        hasher.update(boot.hex().as_bytes());
        let key = hasher.finalize();
        let timelines = hasher.update(world.hex().as_bytes()).finalize();
        let folder = cache.join("moments").join(&key.to_hex()[..16]);
        MomentFolder { folder, key: *key.as_bytes(), timelines: *timelines.as_bytes() }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder, locks it, and removes files that killed processes left in it.
    ///
    /// Dropping the returned file releases the lock. While another process holds the lock, this function calls `wait`
    /// again and again.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or locked, or if `wait` returns false.
    pub fn lock(&self, wait: &mut dyn FnMut() -> bool) -> anyhow::Result<File> {
        let saved = self.saved_folder();
        fs::create_dir_all(&saved).with_context(|| format!("cannot make {}", saved.display()))?;
        let path = self.folder.join("lock");
        let here = || format!("cannot lock {}", path.display());
        let lock = File::options().create(true).append(true).open(&path).with_context(here)?;
        while let Err(error) = lock.try_lock() {
            match error {
                TryLockError::WouldBlock if wait() => {}
                TryLockError::WouldBlock => {
                    bail!("interrupted while another process changes {}", self.folder.display())
                }
                TryLockError::Error(error) => return Err(error).with_context(here),
            }
        }
        for folder in [&self.folder, &saved] {
            // A temporary file that stays in the folder is harmless.
            let _ = sweep_temporaries(folder);
        }
        Ok(lock)
    }

    /// Stores a boot. The caller holds the lock.
    ///
    /// `ready` must be the moment as the boot left it, not the result of [`MomentFolder::on_bases`]. `restart` must be
    /// the restart points that [`MomentFolder::on_bases`] returned.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written, for example on a full disk.
    pub fn put_boot(
        &self,
        ready: &Stored,
        restart: &[RestartPoint],
        boot_seed: BootSeed,
    ) -> anyhow::Result<()> {
        RestartPoint::write_all(restart, &self.restart_path(), self.key, boot_seed)?;
        ready.write(&self.ready_path(), "ready", self.key, boot_seed.number())?;
        Ok(())
    }

    /// Moves the memory of *ready* to bases in this process' memory, and expresses the memory of the restart points as
    /// differences from the same bases.
    ///
    /// # Errors
    /// Returns an error if the host has too little memory.
    pub fn on_bases(
        &self,
        ready: &Stored,
        restart: &[RestartPoint],
        pool: &Pool,
    ) -> anyhow::Result<(Stored, Vec<RestartPoint>)> {
        let ready = self.on_own_bases(ready.clone())?;
        let over = |(point, ready): (&RestartPoint, &Moment)| {
            let memory = point.machine.memory().over(pool, ready.memory().base());
            RestartPoint { machine: point.machine.on(memory), ..point.clone() }
        };
        let restart = restart.iter().zip(&ready.moment.machines).map(over).collect();
        Ok((ready, restart))
    }

    /// Moves the memory of each machine to its own base in this process' memory.
    fn on_own_bases(&self, mut stored: Stored) -> anyhow::Result<Stored> {
        let path = self.ready_path();
        let machines = &mut stored.moment.machines;
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let of_thread = machines.len().div_ceil(cores).max(1);
        thread::scope(|scope| {
            let put = |machines: &mut [Moment]| -> anyhow::Result<()> {
                for machine in machines {
                    let base = BaseFile::in_memory(&path, machine.memory())?;
                    *machine = machine.on(PageImage::on(Arc::new(Base::File(base))));
                }
                Ok(())
            };
            let started: Vec<_> =
                machines.chunks_mut(of_thread).map(|machines| scope.spawn(move || put(machines))).collect();
            let mut joined = started.into_iter().map(|thread| thread.join());
            joined.try_for_each(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        Ok(stored)
    }

    /// Returns true if both files of a boot exist. They are not checked.
    #[must_use]
    pub fn has_boot(&self) -> bool {
        self.ready_path().is_file() && self.restart_path().is_file()
    }

    /// Reads *ready* of a world with `nodes` nodes and at most `pages_max` pages and disk blocks. The returned memory
    /// lies in bases, not in `pool`, which stores equal pages only once.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is damaged or is of another version.
    pub fn ready(&self, nodes: usize, pool: &Pool, pages_max: u64) -> anyhow::Result<Stored> {
        let path = self.ready_path();
        let stored = Stored::read(&path, self.key, pool, pages_max, |_| None)?;
        if stored.moment.machines.len() != nodes {
            bail!("{}: it has {} machines instead of {nodes}", path.display(), stored.moment.machines.len());
        }
        self.on_own_bases(stored)
    }

    /// Reads the restart points of the nodes in `ready`, with at most `pages_max` pages and disk blocks in all.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is damaged or is of another version.
    pub fn restart(&self, ready: &Stored, pool: &Pool, pages_max: u64) -> anyhow::Result<Vec<RestartPoint>> {
        let (bases, nodes) = (bases(ready), ready.moment.machines.len());
        RestartPoint::read_all(&self.restart_path(), self.key, nodes, pool, pages_max, |digest| {
            find(&bases, digest)
        })
    }

    /// Checks that no saved moment has this name.
    ///
    /// # Errors
    /// Returns an error if the name is invalid or in use.
    pub fn check_free(&self, name: &str) -> anyhow::Result<()> {
        check_name(name).map_err(anyhow::Error::msg)?;
        if self.saved_path(name).exists() {
            bail!("there is already a moment \"{name}\": choose another --name, or drop it");
        }
        Ok(())
    }

    /// Locks the folder and saves a moment under a name. `wait` is called as in [`MomentFolder::lock`].
    ///
    /// # Errors
    /// Returns an error if the name is invalid or in use, the folder cannot be locked, or the file cannot be written.
    pub fn save(
        &self,
        name: &str,
        label: &str,
        stored: &Stored,
        seed: Seed,
        wait: &mut dyn FnMut() -> bool,
    ) -> anyhow::Result<MomentHeader> {
        let _lock = self.lock(wait)?;
        self.check_free(name)?;
        stored.write(&self.saved_path(name), label, self.timelines, seed.number())
    }

    /// Reads a saved moment with at most `pages_max` pages and disk blocks. Its memory is based on the memory of
    /// `ready`.
    ///
    /// # Errors
    /// Returns an error if the moment does not exist or is damaged.
    pub fn saved(&self, name: &str, pool: &Pool, pages_max: u64, ready: &Stored) -> anyhow::Result<Stored> {
        let path = self.existing(name)?;
        let bases = bases(ready);
        Stored::read(&path, self.timelines, pool, pages_max, |digest| find(&bases, digest))
    }

    /// Returns the header of a saved moment's file.
    ///
    /// # Errors
    /// Returns an error if the moment does not exist or its header is damaged.
    pub fn header(&self, name: &str) -> anyhow::Result<MomentHeader> {
        Ok(MomentFile::open(&self.existing(name)?)?.header().clone())
    }

    /// Returns all saved moments, ordered by vtime and name, and an error message for each file that cannot be read.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn list(&self) -> anyhow::Result<(Vec<Summary>, Vec<String>)> {
        let folder = self.saved_folder();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            Err(error) => return Err(error).with_context(|| folder.display().to_string()),
        };
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        for entry in entries.take(SAVED_MAX) {
            let file = entry.with_context(|| folder.display().to_string())?.file_name();
            let Some(name) = file.to_str().and_then(|name| name.strip_suffix(".moment")) else { continue };
            if check_name(name).is_err() {
                continue;
            }
            match self.header(name) {
                Ok(header) => found.push(Summary { name: name.to_owned(), header }),
                // Another process has deleted the file since.
                Err(_) if !self.saved_path(name).exists() => {}
                Err(error) => broken.push(with_causes(error.as_ref())),
            }
        }
        found.sort_by(|a, b| (a.header.info.vtime, &a.name).cmp(&(b.header.info.vtime, &b.name)));
        broken.sort();
        Ok((found, broken))
    }

    /// Deletes a saved moment. A process that has opened its file can still use it.
    ///
    /// # Errors
    /// Returns an error if the moment does not exist or cannot be deleted.
    pub fn drop_saved(&self, name: &str) -> anyhow::Result<()> {
        let path = self.existing(name)?;
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }

    fn existing(&self, name: &str) -> anyhow::Result<PathBuf> {
        check_name(name).map_err(anyhow::Error::msg)?;
        let path = self.saved_path(name);
        if !path.is_file() {
            self.check_older(name)?;
            bail!(
                "there is no moment \"{name}\" of this world and image; `everett moment list` lists the saved moments"
            );
        }
        Ok(path)
    }

    /// Returns an error if another machine version saved a moment with this name. The moment is then in a folder with
    /// another key.
    fn check_older(&self, name: &str) -> anyhow::Result<()> {
        let boots = self.folder.parent().into_iter().flat_map(entries);
        let saved = boots.flat_map(|boot| entries(&boot.join("saved")));
        for path in saved.map(|folder| folder.join(format!("{name}.moment"))).take(SAVED_MAX) {
            if path.is_file()
                && let Ok(file) = MomentFile::open(&path)
            {
                check_timeline(&path, &file.header().info.label)?;
            }
        }
        Ok(())
    }

    fn saved_folder(&self) -> PathBuf {
        self.folder.join("saved").join(&blake3::Hash::from_bytes(self.timelines).to_hex()[..16])
    }
    fn saved_path(&self, name: &str) -> PathBuf {
        self.saved_folder().join(format!("{name}.moment"))
    }
    fn ready_path(&self) -> PathBuf {
        self.folder.join(READY)
    }
    fn restart_path(&self) -> PathBuf {
        self.folder.join(RESTART)
    }
}

/// Returns the memory bases of the machines in *ready*.
fn bases(ready: &Stored) -> Vec<Arc<Base>> {
    ready.moment.machines.iter().map(|machine| Arc::clone(machine.memory().base())).collect()
}

/// Returns the paths in a folder, sorted, or nothing if the folder cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(SAVED_MAX);
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the base with this digest.
fn find(bases: &[Arc<Base>], digest: BaseDigest) -> Option<Arc<Base>> {
    bases.iter().find(|base| base.digest() == Some(digest)).cloned()
}

#[cfg(test)]
mod tests {
    use everett_snapshot::moment::{MomentInfo, MomentParts};

    use super::*;
    use everett_world_file::parse;

    #[test]
    fn a_moment_of_another_machine_version_is_refused_by_its_version() {
        let cache = tempfile::tempdir().unwrap();
        let saved = cache.path().join("moments/0123/saved/4567");
        fs::create_dir_all(&saved).unwrap();
        let label = "e1:00000000:1/@5".to_owned();
        let info = MomentInfo { label, vtime: 5, seed: 1, key: [0; 32], state_version: 3 };
        MomentFile::write(&saved.join("a.moment"), &info, &MomentParts::default()).unwrap();

        let world = parse("[[node]]\nname = \"a\"\n", Path::new("w.toml")).unwrap();
        let identity = Identity::new(&world, &[]);
        let moment_folder = MomentFolder::new(cache.path(), &identity, &identity);
        let why = |name: &str| with_causes(moment_folder.header(name).unwrap_err().as_ref());
        let (older, none) = (why("a"), why("b"));
        assert!(
            older.contains("a.moment was made by machine version everett-1, but this Everett has everett-3")
        );
        assert_eq!(older.lines().count(), 1);
        assert!(none.contains("there is no moment \"b\""), "{none}");

        // `Stored::read` refuses the file too, because of its machine version.
        let read = Stored::read(&saved.join("a.moment"), [1; 32], &Pool::default(), 1, |_| None);
        assert!(with_causes(read.unwrap_err().as_ref()).contains("machine version everett-1"));
    }
}

//! Choice and download of packages, from the world's request, the lock, the cache and the mirror.

use super::{Error, ImageSpec};
use crate::apt::{self, Apt, Exact, Remote, sources::Sources};
use crate::cache::{self, Cache};
use crate::lock::{self, Lock, Locked};
use crate::progress::{Progress, Stage};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Number of packages that one apt command downloads; small enough for progress to be visible.
const BATCH: usize = 8;

/// A package whose file is in the cache.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    pub(super) locked: Locked,
    pub(super) path: PathBuf,
}

/// The packages of one build.
pub(super) struct Packages<'a> {
    spec: &'a ImageSpec,
    cache: &'a Cache,
    old: Option<Lock>,
    new: Lock,
    /// Opened with fresh lists at the first use; not needed with a lock and a complete cache.
    apt: Option<Apt>,
}

impl<'a> Packages<'a> {
    pub(super) fn new(spec: &'a ImageSpec, cache: &'a Cache, old: Option<Lock>) -> Self {
        Packages { spec, cache, old, new: Lock::new(&spec.suite), apt: None }
    }

    /// Returns the lock of the packages that were used.
    pub(super) fn into_lock(self) -> Lock {
        self.new
    }

    /// Fetches the kernel package: `requested` itself, or the kernel package that it depends on.
    pub(super) fn kernel(&mut self, requested: &str, progress: &mut dyn Progress) -> Result<Fetched, Error> {
        let locked = match &self.old {
            Some(old) if old.kernel_requested.as_deref() == Some(requested) => old.kernel.clone(),
            _ => None,
        };
        let locked = match locked {
            Some(locked) => vec![locked],
            None => {
                let names = [requested.to_owned()];
                let closure = self.resolve(&names, progress)?;
                let is_image =
                    |package: &&Exact| package.name != requested && package.name.starts_with("linux-image-");
                let chosen = closure.iter().find(is_image);
                let chosen = chosen.or_else(|| closure.iter().find(|package| package.name == requested));
                let unknown =
                    || apt::Error::Unknown { package: requested.to_owned(), suite: self.spec.suite.clone() };
                let chosen = chosen.cloned().ok_or_else(unknown)?;
                self.located(&[chosen], progress)?
            }
        };
        let fetched = self.fetch(&locked, progress)?.remove(0);
        self.new.kernel_requested = Some(requested.to_owned());
        self.new.kernel = Some(fetched.locked.clone());
        Ok(fetched)
    }

    /// Fetches these packages and their dependencies, in the order in which they are unpacked.
    pub(super) fn closure(
        &mut self,
        requested: &[String],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Fetched>, Error> {
        let mut requested = requested.to_vec();
        requested.sort();
        requested.dedup();
        let locked = match &self.old {
            Some(old) if old.requested == requested && !old.packages.is_empty() => old.packages.clone(),
            _ => {
                let names: Vec<String> =
                    BASE.iter().map(ToString::to_string).chain(requested.iter().cloned()).collect();
                let closure = self.resolve(&names, progress)?;
                self.located(&closure, progress)?
            }
        };
        let fetched = self.fetch(&locked, progress)?;
        self.new.requested = requested;
        self.new.packages = locked;
        Ok(fetched)
    }

    /// Returns apt, after updating its lists at the first call.
    fn apt(&mut self, progress: &mut dyn Progress) -> Result<&Apt, Error> {
        let apt = match self.apt.take() {
            Some(apt) => apt,
            None => {
                progress.at(Stage::Resolve, 0, 0);
                let sources = Sources::of_host(&self.spec.suite, self.spec.mirror.as_deref());
                // One state folder for each set of sources, so that lists of another mirror are never used.
                let name = blake3::hash(sources.to_string().as_bytes()).to_hex();
                let folder = self.cache.folder().join("apt").join(&name.as_str()[..16]);
                let apt = Apt::open(&folder, &sources)?;
                apt.update()?;
                apt
            }
        };
        Ok(self.apt.insert(apt))
    }

    fn resolve(&mut self, names: &[String], progress: &mut dyn Progress) -> Result<Vec<Exact>, Error> {
        let pins: Vec<Exact> = match &self.old {
            Some(old) => old.packages.iter().chain(&old.kernel).map(Locked::exact).collect(),
            None => Vec::new(),
        };
        Ok(self.apt(progress)?.resolve(names, &pins)?)
    }

    /// Returns the packages with their digests from the mirror's signed lists.
    fn located(&mut self, packages: &[Exact], progress: &mut dyn Progress) -> Result<Vec<Locked>, Error> {
        let remotes = self.apt(progress)?.locate(packages)?;
        let locked = remotes.into_iter().map(|remote| {
            let Remote { package: Exact { name, version }, sha256, .. } = remote;
            Locked { name, version, sha256 }
        });
        Ok(locked.collect())
    }

    /// Returns the files of these packages; downloads those that are not in the cache.
    fn fetch(&mut self, locked: &[Locked], progress: &mut dyn Progress) -> Result<Vec<Fetched>, Error> {
        let folder = self.cache.packages();
        let path_of = |locked: &Locked| folder.join(format!("{}.deb", locked.sha256));
        let missing: Vec<&Locked> = locked
            .iter()
            .filter(|locked| sha256_of(&path_of(locked)).ok().as_ref() != Some(&locked.sha256))
            .collect();
        if !missing.is_empty() {
            let exact: Vec<Exact> = missing.iter().map(|locked| locked.exact()).collect();
            let remotes = self.apt(progress)?.locate(&exact)?;
            for (locked, remote) in missing.iter().zip(&remotes) {
                same(locked, &remote.sha256)?;
            }
            self.download(&remotes, progress)?;
        }
        locked.iter().for_each(|locked| cache::usage::touch(&path_of(locked)));
        Ok(locked.iter().map(|locked| Fetched { locked: locked.clone(), path: path_of(locked) }).collect())
    }

    fn download(&mut self, remotes: &[Remote], progress: &mut dyn Progress) -> Result<(), Error> {
        let temporary = self.cache.temporary();
        let failed = |source: io::Error| cache::Error::of(&temporary, source);
        let into = tempfile::tempdir_in(&temporary).map_err(failed)?;
        let total = remotes.iter().map(|remote| remote.bytes).sum();
        let mut done = 0;
        for batch in remotes.chunks(BATCH) {
            progress.at(Stage::Download, done, total);
            self.apt(progress)?.download(batch, into.path())?;
            for remote in batch {
                let from = into.path().join(&remote.file);
                let found = sha256_of(&from).map_err(failed)?;
                let Remote { package: Exact { name, version }, sha256, .. } = remote.clone();
                same(&Locked { name, version, sha256 }, &found)?;
                let to = self.cache.packages().join(format!("{found}.deb"));
                File::open(&from).and_then(|file| file.sync_all()).map_err(failed)?;
                fs::rename(&from, &to).map_err(failed)?;
                done += remote.bytes;
            }
        }
        progress.at(Stage::Download, total, total);
        Ok(())
    }
}

/// Packages of every root, as apt patterns and names: Debian's essential packages except apt, which is useless without
/// a network; `usr-is-merged`, which declares merged `/usr`; `netbase` for names of protocols and services; and
/// `e2fsprogs` to make filesystems on data disks.
const BASE: [&str; 4] = ["?and(?essential,?not(?exact-name(apt)))", "usr-is-merged", "netbase", "e2fsprogs"];

fn same(locked: &Locked, found: &str) -> Result<(), lock::Error> {
    if locked.sha256 == found {
        return Ok(());
    }
    let Locked { name, version, sha256 } = locked.clone();
    Err(lock::Error::Mismatch { package: name, version, expected: sha256, found: found.to_owned() })
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

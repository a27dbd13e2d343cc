//! Choice and download of packages, from the world's request, the lock, the cache and the mirror.

use everett_remote::Access;

use super::provider::Provider;
use super::{Error, ImageSpec, RootSource};
use crate::apt::{self, Apt, Exact, Remote};
use crate::cache::{self, Cache};
use crate::lock::{self, Lock, Locked};
use crate::progress::{BuildProgress, Stage};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Number of bytes after which a batch of downloads ends. apt takes a quarter of a second to start, and shows progress only
/// between batches.
const BATCH_BYTES: u64 = 8 << 20;

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
    access: &'a dyn Access,
    old: Option<Lock>,
    new: Lock,
    /// Opened with fresh lists at the first use; not needed with a lock and a complete cache.
    provider: Option<Provider<'a>>,
}

impl<'a> Packages<'a> {
    pub(super) fn new(
        spec: &'a ImageSpec,
        cache: &'a Cache,
        access: &'a dyn Access,
        old: Option<Lock>,
    ) -> Self {
        Packages { spec, cache, access, old, new: Lock::new(&spec.suite), provider: None }
    }

    /// Returns the lock of the packages that were used.
    pub(super) fn into_lock(self) -> Lock {
        self.new
    }

    /// Checks that all packages can be chosen on this host, before any is fetched.
    pub(super) fn check(&self) -> Result<(), Error> {
        let RootSource::Packages(names) = &self.spec.root else { return Ok(()) };
        if self.locked_closure(&sorted(names)).is_some() || Apt::is_on_host() {
            return Ok(());
        }
        Err(apt::Error::NoApt { program: "apt-get" }.into())
    }

    /// Returns the packages of the lock, if these were requested when it was written.
    fn locked_closure(&self, requested: &[String]) -> Option<&[Locked]> {
        let old = self.old.as_ref().filter(|old| old.requested == requested && !old.packages.is_empty())?;
        Some(&old.packages)
    }

    /// Fetches the kernel package: `requested` itself, or the kernel package that it depends on.
    pub(super) fn kernel(
        &mut self,
        requested: &str,
        progress: &mut dyn BuildProgress,
    ) -> Result<Fetched, Error> {
        let locked = match &self.old {
            Some(old) if old.kernel_requested.as_deref() == Some(requested) => old.kernel.clone(),
            _ => None,
        };
        let locked = match locked {
            Some(locked) => vec![locked],
            None => {
                let (pins, suite) = (self.pins(), &self.spec.suite);
                let chosen = self.provider(progress)?.kernel(requested, &pins, suite)?;
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
        progress: &mut dyn BuildProgress,
    ) -> Result<Vec<Fetched>, Error> {
        let requested = sorted(requested);
        let locked = match self.locked_closure(&requested) {
            Some(locked) => locked.to_vec(),
            None => {
                let names: Vec<String> =
                    BASE.iter().map(ToString::to_string).chain(requested.iter().cloned()).collect();
                let pins = self.pins();
                let closure = self.provider(progress)?.closure(&names, &pins)?;
                self.located(&closure, progress)?
            }
        };
        let fetched = self.fetch(&locked, progress)?;
        self.new.requested = requested;
        self.new.packages = locked;
        Ok(fetched)
    }

    /// Returns the provider of packages, after updating its lists at the first call.
    fn provider(&mut self, progress: &mut dyn BuildProgress) -> Result<&mut Provider<'a>, Error> {
        let provider = match self.provider.take() {
            Some(provider) => provider,
            None => {
                progress.at(Stage::Resolve, 0, 0);
                Provider::open(self.spec, self.cache, self.access)?
            }
        };
        Ok(self.provider.insert(provider))
    }

    /// Returns the versions in the lock, which are preferred.
    fn pins(&self) -> Vec<Exact> {
        self.old.iter().flat_map(|old| old.packages.iter().chain(&old.kernel)).map(Locked::exact).collect()
    }

    /// Returns the packages with their digests from the mirror's signed lists.
    fn located(
        &mut self,
        packages: &[Exact],
        progress: &mut dyn BuildProgress,
    ) -> Result<Vec<Locked>, Error> {
        let remotes = self.provider(progress)?.locate(packages)?;
        let locked = remotes.into_iter().map(|remote| {
            let Remote { package: Exact { name, version }, sha256, .. } = remote;
            Locked { name, version, sha256 }
        });
        Ok(locked.collect())
    }

    /// Returns the files of these packages; downloads those that are not in the cache.
    fn fetch(&mut self, locked: &[Locked], progress: &mut dyn BuildProgress) -> Result<Vec<Fetched>, Error> {
        let folder = self.cache.packages();
        let path_of = |locked: &Locked| folder.join(format!("{}.deb", locked.sha256));
        let missing: Vec<&Locked> = locked
            .iter()
            .filter(|locked| cache::sha256_of(&path_of(locked)).ok().as_ref() != Some(&locked.sha256))
            .collect();
        if !missing.is_empty() {
            let exact: Vec<Exact> = missing.iter().map(|locked| locked.exact()).collect();
            let remotes = self.provider(progress)?.locate(&exact)?;
            for (locked, remote) in missing.iter().zip(&remotes) {
                same(locked, &remote.sha256)?;
            }
            self.download(&remotes, progress)?;
        }
        locked.iter().for_each(|locked| cache::usage::touch(&path_of(locked)));
        Ok(locked.iter().map(|locked| Fetched { locked: locked.clone(), path: path_of(locked) }).collect())
    }

    fn download(&mut self, remotes: &[Remote], progress: &mut dyn BuildProgress) -> Result<(), Error> {
        let (temporary, folder) = (self.cache.temporary(), self.cache.packages());
        let failed = |source: io::Error| cache::Error::of(&temporary, source);
        let into = tempfile::tempdir_in(&temporary).map_err(failed)?;
        let total = remotes.iter().map(|remote| remote.bytes).sum();
        let mut done = 0;
        let provider = self.provider(progress)?;
        for batch in batches(remotes) {
            progress.at(Stage::Download, done, total);
            let mut arrived = |bytes| progress.at(Stage::Download, done + bytes, total);
            provider.download(batch, into.path(), &mut arrived)?;
            for remote in batch {
                let from = into.path().join(&remote.file);
                let found = cache::sha256_of(&from).map_err(failed)?;
                let Remote { package: Exact { name, version }, sha256, .. } = remote.clone();
                same(&Locked { name, version, sha256 }, &found)?;
                let to = folder.join(format!("{found}.deb"));
                File::open(&from).and_then(|file| file.sync_all()).map_err(failed)?;
                fs::rename(&from, &to).map_err(failed)?;
                done += remote.bytes;
            }
        }
        progress.at(Stage::Download, total, total);
        Ok(())
    }
}

/// Divides packages into batches of at least [`BATCH_BYTES`], except the last.
fn batches(mut remotes: &[Remote]) -> impl Iterator<Item = &[Remote]> {
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let is_last = |remote: &Remote| {
            bytes = bytes.saturating_add(remote.bytes);
            bytes >= BATCH_BYTES
        };
        let length = remotes.iter().position(is_last).map_or(remotes.len(), |last| last + 1);
        let (batch, rest) = remotes.split_at(length);
        remotes = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

/// Packages of every root, as apt patterns and names: Debian's essential packages except apt, which is useless without
/// a network; `usr-is-merged`, which declares merged `/usr`; `netbase` for names of protocols and services; and
/// `e2fsprogs` to make filesystems on data disks.
const BASE: [&str; 4] = ["?and(?essential,?not(?exact-name(apt)))", "usr-is-merged", "netbase", "e2fsprogs"];

/// Returns the names sorted, each once.
fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    names
}

fn same(locked: &Locked, found: &str) -> Result<(), lock::Error> {
    if locked.sha256 == found {
        return Ok(());
    }
    let Locked { name, version, sha256 } = locked.clone();
    Err(lock::Error::Mismatch { package: name, version, expected: sha256, found: found.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(bytes: &[u64]) -> Vec<usize> {
        let remote = |&bytes: &u64| {
            let package = Exact { name: String::new(), version: String::new() };
            Remote { package, file: String::new(), bytes, sha256: String::new() }
        };
        let remotes: Vec<Remote> = bytes.iter().map(remote).collect();
        batches(&remotes).map(<[Remote]>::len).collect()
    }

    #[test]
    fn a_batch_ends_with_the_package_that_fills_it() {
        assert_eq!(lengths(&[]), [] as [usize; 0]);
        assert_eq!(lengths(&[1]), [1]);
        assert_eq!(lengths(&[BATCH_BYTES - 1, 1, 0, u64::MAX, BATCH_BYTES, 3]), [2, 2, 1, 1]);
    }
}

//! Chooses and downloads an image's packages, according to the world's request, the lock (`world.lock`), the cache and
//! the mirror.

use everett_remote::Access;

use super::provider::Provider;
use super::{Error, ImageSpec, RootSource};
use crate::apt::{self, Apt, ArchiveFile, Exact, Remote};
use crate::cache::{self, Cache};
use crate::lock::{self, Lock, Locked};
use crate::progress::{BuildProgress, Stage};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Length in bytes at which a batch of downloads ends. Shorter batches would cost time, because apt takes a quarter of
/// a second to start. Longer batches would show progress less often, because apt reports none within a batch.
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
    /// Provider of packages, opened at the first use. A build with a lock and all packages in the cache never opens it.
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

    /// Returns the lock with the packages that this build used.
    pub(super) fn into_lock(self) -> Lock {
        self.new
    }

    /// Checks, before anything is fetched, that this host can choose the packages of the root filesystem. A host
    /// without apt can choose them only if the lock was written for the same requested packages.
    pub(super) fn check(&self) -> Result<(), Error> {
        let RootSource::Packages(names) = &self.spec.root else { return Ok(()) };
        if self.locked_closure(&sorted(names)).is_some() || Apt::is_on_host() {
            return Ok(());
        }
        Err(apt::Error::NoApt { program: "apt-get" }.into())
    }

    /// Returns the packages of the lock. `None` if there is no lock, if it has no packages, or if it was written for
    /// different requested packages.
    fn locked_closure(&self, requested: &[String]) -> Option<&[Locked]> {
        let old = self.old.as_ref().filter(|old| old.requested == requested && !old.packages.is_empty())?;
        Some(&old.packages)
    }

    /// Fetches a kernel package. If `requested` depends on a kernel package, fetches the dependency instead.
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
                let chosen = self.lists(progress)?.kernel(requested, &pins, suite)?;
                self.located(&[chosen], progress)?
            }
        };
        let fetched = self.fetch(locked, progress)?.remove(0);
        self.new.kernel_requested = Some(requested.to_owned());
        self.new.kernel = Some(fetched.locked.clone());
        Ok(fetched)
    }

    /// Fetches these packages and all their dependencies, in the order in which Everett unpacks them.
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
                let closure = self.lists(progress)?.closure(&names, &pins)?;
                self.located(&closure, progress)?
            }
        };
        let fetched = self.fetch(locked, progress)?;
        self.new.requested = requested;
        self.new.packages = fetched.iter().map(|fetched| fetched.locked.clone()).collect();
        Ok(fetched)
    }

    /// Returns the provider of packages, and opens it at the first call.
    fn provider(&mut self) -> Result<&mut Provider<'a>, Error> {
        let provider = match self.provider.take() {
            Some(provider) => provider,
            None => Provider::open(self.spec, self.cache, self.access)?,
        };
        Ok(self.provider.insert(provider))
    }

    /// Returns the provider of packages, with up-to-date package lists.
    fn lists(&mut self, progress: &mut dyn BuildProgress) -> Result<&mut Provider<'a>, Error> {
        progress.at(Stage::Resolve, 0, 0);
        let provider = self.provider()?;
        provider.update()?;
        Ok(provider)
    }

    /// Returns the versions in the lock. apt prefers them.
    fn pins(&self) -> Vec<Exact> {
        self.old.iter().flat_map(|old| old.packages.iter().chain(&old.kernel)).map(Locked::exact).collect()
    }

    /// Returns the packages with the digests that the mirror's signed lists give.
    fn located(
        &mut self,
        packages: &[Exact],
        progress: &mut dyn BuildProgress,
    ) -> Result<Vec<Locked>, Error> {
        let remotes = self.lists(progress)?.locate(packages)?;
        Ok(remotes.iter().map(Locked::of).collect())
    }

    /// Returns the files of these packages. Fetches the files that are not in the cache.
    fn fetch(
        &mut self,
        mut locked: Vec<Locked>,
        progress: &mut dyn BuildProgress,
    ) -> Result<Vec<Fetched>, Error> {
        let folder = self.cache.packages();
        let path_of = |locked: &Locked| folder.join(format!("{}.deb", locked.sha256));
        let is_missing =
            |locked: &Locked| cache::sha256_of(&path_of(locked)).ok().as_ref() != Some(&locked.sha256);
        let mut missing: Vec<&mut Locked> = locked.iter_mut().filter(|locked| is_missing(locked)).collect();
        let files: Vec<ArchiveFile> = missing.iter().filter_map(|locked| locked.file()).collect();
        if !files.is_empty() {
            let arrived = self.fetch_files(&files, progress)?;
            missing.retain(|locked| !arrived.contains(&locked.sha256));
        }
        if !missing.is_empty() {
            let exact: Vec<Exact> = missing.iter().map(|locked| locked.exact()).collect();
            let remotes = self.lists(progress)?.locate(&exact)?;
            for (locked, remote) in missing.into_iter().zip(&remotes) {
                same(locked, &remote.sha256)?;
                *locked = Locked::of(remote);
            }
            self.download(&remotes, progress)?;
        }
        locked.iter().for_each(|locked| cache::usage::touch(&path_of(locked)));
        Ok(locked.into_iter().map(|locked| Fetched { path: path_of(&locked), locked }).collect())
    }

    /// Fetches files by their paths in the lock, so no package lists are needed. Returns the digests of the files that
    /// have arrived. Files may be missing, because archives drop old versions.
    fn fetch_files(
        &mut self,
        files: &[ArchiveFile],
        progress: &mut dyn BuildProgress,
    ) -> Result<BTreeSet<String>, Error> {
        let (temporary, folder) = (self.cache.temporary(), self.cache.packages());
        let into = tempfile::tempdir_in(&temporary).map_err(cache_error(&temporary))?;
        let total = files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        let (mut done, mut digests) = (0_u64, BTreeSet::new());
        let provider = self.provider()?;
        for batch in batches(files, |file| file.bytes) {
            progress.at(Stage::Download, done, total);
            let mut arrived = |bytes| progress.at(Stage::Download, done.saturating_add(bytes), total);
            provider.fetch(batch, into.path(), &mut arrived)?;
            let before = digests.len();
            for file in batch {
                let from = into.path().join(file.name());
                if cache::sha256_of(&from).ok().as_ref() == Some(&file.sha256) {
                    keep(&from, &folder, &file.sha256).map_err(cache_error(&temporary))?;
                    digests.insert(file.sha256.clone());
                    done = done.saturating_add(file.bytes);
                }
            }
            // No file arrived: the archives cannot be reached, or no longer have these versions. The caller then reads
            // the package lists, and either finds the files there or reports the cause.
            if digests.len() == before {
                break;
            }
        }
        progress.at(Stage::Download, done, total);
        Ok(digests)
    }

    fn download(&mut self, remotes: &[Remote], progress: &mut dyn BuildProgress) -> Result<(), Error> {
        let (temporary, folder) = (self.cache.temporary(), self.cache.packages());
        let into = tempfile::tempdir_in(&temporary).map_err(cache_error(&temporary))?;
        let total = remotes.iter().map(|remote| remote.bytes).sum();
        let mut done = 0;
        let provider = self.provider()?;
        for batch in batches(remotes, |remote| remote.bytes) {
            progress.at(Stage::Download, done, total);
            let mut arrived = |bytes| progress.at(Stage::Download, done + bytes, total);
            provider.download(batch, into.path(), &mut arrived)?;
            for remote in batch {
                let from = into.path().join(&remote.file);
                let found = cache::sha256_of(&from).map_err(cache_error(&temporary))?;
                same(&Locked::of(remote), &found)?;
                keep(&from, &folder, &found).map_err(cache_error(&temporary))?;
                done += remote.bytes;
            }
        }
        progress.at(Stage::Download, total, total);
        Ok(())
    }
}

/// Moves a package's file to the folder of packages.
fn keep(from: &Path, folder: &Path, sha256: &str) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, folder.join(format!("{sha256}.deb")))
}

fn cache_error(path: &Path) -> impl Fn(io::Error) -> cache::Error + '_ {
    |source| cache::Error::of(path, source)
}

/// Divides packages into batches. Each batch except the last has at least [`BATCH_BYTES`] bytes.
fn batches<T>(mut packages: &[T], bytes_of: impl Fn(&T) -> u64) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let is_last = |package: &T| {
            bytes = bytes.saturating_add(bytes_of(package));
            bytes >= BATCH_BYTES
        };
        let length = packages.iter().position(is_last).map_or(packages.len(), |last| last + 1);
        let (batch, rest) = packages.split_at(length);
        packages = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

/// Packages of every root filesystem, as apt patterns and names. The pattern selects Debian's essential packages except
/// apt, which is useless because guests cannot reach a mirror. `usr-is-merged` declares merged `/usr`, `netbase` lists
/// the names of protocols and services, and `e2fsprogs` makes filesystems on data disks.
const BASE: [&str; 4] = ["?and(?essential,?not(?exact-name(apt)))", "usr-is-merged", "netbase", "e2fsprogs"];

/// Returns the names in sorted order, without duplicates.
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
    let Locked { name, version, sha256, .. } = locked.clone();
    Err(lock::Error::Mismatch { package: name, version, expected: sha256, found: found.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::tests::{
        repository::{NOW_S, sha256},
        server::{Answer, Server},
    };
    use crate::progress::Silent;
    use everett_remote_client::Online;
    use tempfile::TempDir;

    fn lengths(bytes: &[u64]) -> Vec<usize> {
        batches(bytes, |&bytes| bytes).map(<[u64]>::len).collect()
    }

    #[test]
    fn a_batch_ends_with_the_package_that_fills_it() {
        assert_eq!(lengths(&[]), [] as [usize; 0]);
        assert_eq!(lengths(&[1]), [1]);
        assert_eq!(lengths(&[BATCH_BYTES - 1, 1, 0, u64::MAX, BATCH_BYTES, 3]), [2, 2, 1, 1]);
    }

    const CONTENTS: [&[u8]; 2] = [b"the first package", b"the second package"];

    fn locked() -> Vec<Locked> {
        let of = |(index, content): (usize, &&[u8])| Locked {
            name: format!("package-{index}"),
            version: String::from("1:2.0-1+deb12u1"),
            sha256: sha256(content),
            path: Some(format!("pool/{index}+~.deb")),
            bytes: Some(content.len() as u64),
        };
        CONTENTS.iter().enumerate().map(of).collect()
    }

    /// Fetches the packages of a lock from the server. Returns their contents and the new lock.
    fn fetch(server: &Server, locked: Vec<Locked>) -> Result<(Vec<Vec<u8>>, Lock), Error> {
        let folder = TempDir::new().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        let requested = vec![String::from("package-1")];
        let mirror = Some(server.address.clone());
        let spec = ImageSpec { mirror, ..ImageSpec::of_packages("test", requested.clone(), NOW_S) };
        let mut old = Lock::new("test");
        (old.requested, old.packages) = (requested.clone(), locked);
        let mut packages = Packages::new(&spec, &cache, &Online, Some(old));
        let fetched = packages.closure(&requested, &mut Silent)?;
        let contents = fetched.iter().map(|fetched| fs::read(&fetched.path).unwrap()).collect();
        Ok((contents, packages.into_lock()))
    }

    #[test]
    fn packages_with_a_path_are_fetched_without_lists() {
        let server = Server::start();
        for (index, content) in CONTENTS.iter().enumerate() {
            // apt percent-encodes paths in its requests. On hosts without apt, Everett does the same.
            server.put(&format!("pool/{index}%2b%7e.deb"), Answer::File(content.to_vec()));
        }
        let (contents, lock) = fetch(&server, locked()).unwrap();
        assert_eq!(contents, CONTENTS);
        assert_eq!(lock.packages, locked());
        let mut requests = server.requests();
        requests.sort();
        assert_eq!(requests, ["/pool/0%2b%7e.deb", "/pool/1%2b%7e.deb"]);
    }

    #[test]
    fn what_does_not_arrive_is_looked_up_in_lists() {
        let server = Server::start();
        server.put("pool/0%2b%7e.deb", Answer::File(CONTENTS[0].to_vec()));
        let lists_are_wanted = |server: &Server, locked: Vec<Locked>| {
            // The server has no package lists.
            fetch(server, locked).unwrap_err();
            assert!(server.requests().iter().any(|path| path.starts_with("/dists/test/")));
        };
        // Lists are needed for a file that is missing, altered, cut off or longer than the lock says, and for a lock
        // without paths.
        lists_are_wanted(&server, locked());
        for answer in [
            Answer::File(b"the second Package".to_vec()),
            Answer::Half(CONTENTS[1].to_vec()),
            Answer::File(b"the second package and more".to_vec()),
        ] {
            server.put("pool/1%2b%7e.deb", answer);
            lists_are_wanted(&server, locked());
        }
        server.put("pool/1%2b%7e.deb", Answer::File(CONTENTS[1].to_vec()));
        fetch(&server, locked()).unwrap();
        let without = |locked: Locked| Locked { path: None, bytes: None, ..locked };
        server.requests();
        lists_are_wanted(&server, locked().into_iter().map(without).collect());
    }
}

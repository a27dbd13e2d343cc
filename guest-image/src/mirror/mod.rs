//! Downloads kernels, and packages of known versions, from a mirror, for hosts without `apt-get`.
//!
//! - this file: [`Mirror`], which finds and downloads packages from all sources together.
//! - [`update`]: fetches and verifies the index of a suite, i.e. the signed file `InRelease`, and then fetches the
//!   suite's list of packages.
//! - [`trust`]: chooses the keys that may sign an index. The check of a signature is in `everett-remote-client`.
//! - [`suite`]: keeps a suite's list of packages in the state folder. [`release`] parses an index, [`list`] parses a
//!   list of packages.
//! - [`kernel`]: chooses a kernel package. [`fetch`]: reads files over http, over https and from disk.
//!
//! **Invariants.** A mirror is untrusted. Everett verifies the signature of an index. Then it verifies a list of
//! packages by its digest in the index, and a package by its digest in the list or in a world's lock file. Every file
//! is read up to a named bound. The downloaded packages have the versions and bytes that apt would have fetched from
//! the same sources.
//!
//! Not here: the dependencies of packages, which only apt resolves ([`crate::apt`]).

mod error;
mod fetch;
mod kernel;
mod list;
mod release;
mod suite;
mod trust;
mod update;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub use error::Error;

use everett_remote::Access;

use crate::apt::sources::Sources;
use crate::apt::{self, ARCHITECTURE, ArchiveFile, Exact, Remote};
use error::file_error;
use fetch::Fetcher;
use list::Listed;
use suite::Suite;

/// Maximum length of a package's file, in bytes. Debian's kernels have 30 MB, and its longest packages 1.5 GB.
const PACKAGE_BYTES_MAX: u64 = 4 << 30;

/// Client of the mirrors of a world's Debian suite and of the suites that go with it, such as the security updates. It
/// keeps the package lists in a state folder.
pub struct Mirror<'a> {
    folder: PathBuf,
    suite: String,
    fetcher: Fetcher<'a>,
    suites: Vec<Suite>,
    /// Packages that [`Self::locate`] found, each with the base address of its archive.
    located: Vec<(String, Listed)>,
    /// Lock of the state folder, held for the life of this value.
    _lock: File,
}

impl<'a> Mirror<'a> {
    /// Opens the state in `folder`. Waits while another process uses the folder.
    ///
    /// # Errors
    /// Returns an error if a file in the folder cannot be created or locked.
    pub fn open(folder: &Path, sources: &Sources, access: &'a dyn Access) -> Result<Mirror<'a>, Error> {
        fs::create_dir_all(folder).map_err(file_error(folder))?;
        let path = folder.join("everett.lock");
        let lock = File::create(&path).map_err(file_error(&path))?;
        lock.lock().map_err(file_error(&path))?;
        let suite = sources.suite.clone();
        Ok(Mirror {
            folder: folder.to_owned(),
            suite,
            fetcher: Fetcher::new(access),
            suites: Vec::new(),
            located: Vec::new(),
            _lock: lock,
        })
    }

    /// Fetches and verifies the list of every suite of the sources. `now_s` is the host's clock, in seconds since 1970.
    ///
    /// # Errors
    /// Returns an error if a mirror cannot be reached, or if no trusted key has signed an index. Other errors are an
    /// index of another suite, an expired index, an index dated in the future, and an index that is older than one that
    /// the mirror served before.
    pub fn update(&mut self, sources: &Sources, now_s: u64) -> Result<(), Error> {
        let mut suites = Vec::new();
        let all = || {
            sources.sources.iter().flat_map(|source| source.suites.iter().map(move |named| (source, named)))
        };
        // The suite that the world names comes first, because its archive contains the package with the keys. The
        // archives of the other suites, such as the security updates, may lack this package.
        let (first, others): (Vec<_>, Vec<_>) = all().partition(|(_, named)| **named == sources.suite);
        for (source, named) in first.into_iter().chain(others) {
            suites.extend(update::update(&self.folder, &self.fetcher, source, named, now_s)?);
        }
        if suites.is_empty() {
            let reason = String::from("none of its sources has an index of packages");
            return Err(apt::Error::Lists { suite: self.suite.clone(), reason }.into());
        }
        Suite::sweep(&self.folder, &suites);
        self.suites = suites;
        Ok(())
    }

    /// Returns the newest kernel package on which `requested` depends, or else `requested` itself. Prefers the versions
    /// in `pins`.
    ///
    /// # Errors
    /// Returns an error if the suite has no such kernel package.
    pub fn kernel(&self, requested: &str, pins: &[Exact]) -> Result<Exact, Error> {
        let found = self.find(&|name| name == requested || name.starts_with(kernel::PREFIX))?;
        let packages: Vec<&Listed> = found.iter().map(|(_, listed)| listed).collect();
        let chosen = kernel::choose(&packages, requested, pins);
        let chosen = chosen.ok_or_else(|| apt::Error::Unknown {
            package: requested.to_owned(),
            suite: self.suite.clone(),
        })?;
        Ok(chosen.package.clone())
    }

    /// Finds the file of each package on the mirrors, and the file's digest.
    ///
    /// # Errors
    /// Returns an error if the mirrors do not have one of the versions.
    pub fn locate(&mut self, packages: &[Exact]) -> Result<Vec<Remote>, Error> {
        let names: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
        self.located = self.find(&|name| names.contains(name))?;
        packages.iter().map(|wanted| self.located(wanted).map(|(_, listed)| remote(listed))).collect()
    }

    /// Downloads packages into `into`, each under its [`Remote::file`]. [`Self::locate`] must have found them before.
    /// Calls `progress` with the number of bytes that have arrived.
    ///
    /// # Errors
    /// Returns an error if a mirror cannot be reached, or if a file does not match its digest.
    pub fn download(
        &self,
        packages: &[Remote],
        into: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let mut done = 0;
        for package in packages {
            let (base, listed) = self.located(&package.package)?;
            let path = into.join(&package.file);
            let address = format!("{base}/{}", listed.file.path);
            if listed.file.bytes > PACKAGE_BYTES_MAX {
                return Err(Error::TooLong { address, most: PACKAGE_BYTES_MAX });
            }
            let mut file = File::create(&path).map_err(file_error(&path))?;
            let mut arrived = |bytes| progress(done + bytes);
            self.fetcher.fetch(&address, &listed.file, (&mut file, &path), &mut arrived)?;
            done += listed.file.bytes;
        }
        Ok(())
    }

    /// Fetches files into `into`, each under its [`ArchiveFile::name`]. Needs no package lists. If no archive has a
    /// file with the expected content, the file is missing afterwards. A file whose expected length exceeds
    /// [`PACKAGE_BYTES_MAX`] is not fetched. Calls `progress` with the number of bytes that have arrived.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub(crate) fn fetch(
        &self,
        sources: &Sources,
        files: &[ArchiveFile],
        into: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let mut done = 0;
        for file in files.iter().filter(|file| file.bytes <= PACKAGE_BYTES_MAX) {
            let path = into.join(file.name());
            for address in sources.addresses(&file.path) {
                let mut to = File::create(&path).map_err(file_error(&path))?;
                let mut arrived = |bytes| progress(done + bytes);
                match self.fetcher.fetch(
                    &update::base(&address, &self.fetcher)?,
                    file,
                    (&mut to, &path),
                    &mut arrived,
                ) {
                    Ok(()) => {
                        done += file.bytes;
                        break;
                    }
                    Err(Error::Package(error)) => return Err(error.into()),
                    Err(_) => fs::remove_file(&path).map_err(file_error(&path))?,
                }
            }
        }
        Ok(())
    }

    fn located(&self, wanted: &Exact) -> Result<&(String, Listed), Error> {
        let found = self.located.iter().find(|(_, listed)| listed.package == *wanted).ok_or_else(|| {
            let Exact { name: package, version } = wanted.clone();
            apt::Error::Gone { package, version, suite: self.suite.clone() }
        })?;
        if !matches!(found.1.architecture.as_str(), ARCHITECTURE | "all") {
            let (package, architecture) = (wanted.name.clone(), found.1.architecture.clone());
            return Err(apt::Error::Architecture { package, architecture }.into());
        }
        Ok(found)
    }

    /// Returns the packages of all suites whose names `wants` accepts. Each has the base address of its archive.
    fn find(&self, wants: &dyn Fn(&str) -> bool) -> Result<Vec<(String, Listed)>, Error> {
        let mut found = Vec::new();
        for suite in &self.suites {
            found.extend(suite.find(wants)?.into_iter().map(|listed| (suite.base.clone(), listed)));
        }
        Ok(found)
    }
}

/// Converts an entry of a list to a [`Remote`] with the file name that apt would give to the package.
fn remote(listed: &Listed) -> Remote {
    let Listed { package, architecture, file, .. } = listed;
    let name = format!("{}_{}_{architecture}.deb", package.name, package.version.replace(':', "%3a"));
    let ArchiveFile { path, bytes, sha256 } = file.clone();
    Remote { package: package.clone(), file: name, path: Some(path), bytes, sha256 }
}

#[cfg(test)]
pub(crate) mod tests;

//! Provides an image's packages: through the host's apt or, on a host without apt, from the mirror directly.

use std::path::Path;

use everett_remote::Access;

use super::{Error, ImageSpec};
use crate::apt::{self, Apt, ArchiveFile, Exact, Remote, sources::Sources};
use crate::cache::Cache;
use crate::mirror::Mirror;

/// A provider of packages. Methods that look up names or versions need up-to-date lists: call [`Provider::update`]
/// first.
pub(super) struct Provider<'a> {
    way: Way<'a>,
    sources: Sources,
    /// The host's clock, in seconds since 1970.
    clock_s: u64,
    has_lists: bool,
}

enum Way<'a> {
    Apt(Apt),
    Mirror(Mirror<'a>),
}

impl<'a> Provider<'a> {
    /// Opens a provider for the mirrors that the image uses.
    pub(super) fn open(
        spec: &ImageSpec,
        cache: &Cache,
        access: &'a dyn Access,
    ) -> Result<Provider<'a>, Error> {
        let sources = Sources::of_host(&spec.suite, spec.mirror.as_deref());
        // Each set of sources has its own state folder, so that lists of another mirror are never used.
        let name = blake3::hash(sources.to_string().as_bytes()).to_hex();
        let folder = cache.folder().join("apt").join(&name.as_str()[..16]);
        let way = match Apt::is_on_host() {
            true => Way::Apt(Apt::open(&folder, &sources)?),
            false => Way::Mirror(Mirror::open(&folder.join("mirror"), &sources, access)?),
        };
        Ok(Provider { way, sources, clock_s: spec.clock_s, has_lists: false })
    }

    /// Fetches the package lists at the first call. Later calls do nothing.
    pub(super) fn update(&mut self) -> Result<(), Error> {
        if !self.has_lists {
            match &mut self.way {
                Way::Apt(apt) => apt.update()?,
                Way::Mirror(mirror) => mirror.update(&self.sources, self.clock_s)?,
            }
            self.has_lists = true;
        }
        Ok(())
    }

    /// Fetches files into `into`, each under its [`ArchiveFile::name`]. Needs no package lists. If no archive has a
    /// file with the expected content, the file is missing afterwards. On a host without apt, calls `progress` with the
    /// number of bytes that have arrived; apt does not report this number.
    pub(super) fn fetch(
        &self,
        files: &[ArchiveFile],
        into: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        match &self.way {
            Way::Apt(apt) => Ok(apt.fetch(files, into)?),
            Way::Mirror(mirror) => Ok(mirror.fetch(&self.sources, files, into, progress)?),
        }
    }

    /// Returns the kernel package on which `requested` depends, or else `requested` itself. `pins` are preferred
    /// versions.
    pub(super) fn kernel(&self, requested: &str, pins: &[Exact], suite: &str) -> Result<Exact, Error> {
        let apt = match &self.way {
            Way::Apt(apt) => apt,
            Way::Mirror(mirror) => return Ok(mirror.kernel(requested, pins)?),
        };
        let closure = apt.resolve(&[requested.to_owned()], pins)?;
        let is_image =
            |package: &&Exact| package.name != requested && package.name.starts_with("linux-image-");
        let chosen = closure.iter().find(is_image);
        let chosen = chosen.or_else(|| closure.iter().find(|package| package.name == requested));
        let unknown = || apt::Error::Unknown { package: requested.to_owned(), suite: suite.to_owned() };
        Ok(chosen.cloned().ok_or_else(unknown)?)
    }

    /// Returns the packages with these names and all their dependencies, in the order in which apt would unpack them.
    /// On a host without apt, returns an error.
    pub(super) fn closure(&self, names: &[String], pins: &[Exact]) -> Result<Vec<Exact>, Error> {
        match &self.way {
            Way::Apt(apt) => Ok(apt.resolve(names, pins)?),
            Way::Mirror(_) => Err(apt::Error::NoApt { program: "apt-get" }.into()),
        }
    }

    /// Finds the file of each package on the mirror, and the file's digest.
    pub(super) fn locate(&mut self, packages: &[Exact]) -> Result<Vec<Remote>, Error> {
        match &mut self.way {
            Way::Apt(apt) => Ok(apt.locate(packages)?),
            Way::Mirror(mirror) => Ok(mirror.locate(packages)?),
        }
    }

    /// Downloads these packages into `into`, each under its [`Remote::file`]. On a host without apt, calls `progress`
    /// with the number of bytes that have arrived; apt does not report this number.
    pub(super) fn download(
        &mut self,
        packages: &[Remote],
        into: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        match &self.way {
            Way::Apt(apt) => Ok(apt.download(packages, into)?),
            Way::Mirror(mirror) => Ok(mirror.download(packages, into, progress)?),
        }
    }
}

//! From what a world asks for to the files that its machines boot.

mod kernel;
mod layers;
mod packages;
mod root;

use crate::cache::{self, Cache, Entry};
use crate::configure::{self, Configure};
use crate::lock::{self, Lock};
use crate::progress::Progress;
use crate::{apt, archive, debian, squashfs};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The kernel of an image unless its world says otherwise.
pub const DEFAULT_KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";

/// The time of an image unless its world says otherwise: 2026-01-01T00:00:00Z.
pub const DEFAULT_TIME_S: u64 = 1_767_225_600;

/// What an image is made from.
#[derive(Debug, Clone)]
pub struct ImageSpec {
    /// Debian's suite, for example `bookworm`.
    pub suite: String,
    /// The only mirror to use; the host's own, else Debian's, when absent. A snapshot's address works too.
    pub mirror: Option<String>,
    /// The kernel.
    pub kernel: KernelSource,
    /// The root filesystem.
    pub root: RootSource,
    /// Kernel modules to load besides the machine's own.
    pub modules: Vec<String>,
    /// Where `world.lock` is, or is to be written; none is used when absent.
    pub lock: Option<PathBuf>,
    /// The clock while packages are configured, and the latest time of a file, in seconds since 1970.
    pub time_s: u64,
}

impl ImageSpec {
    /// An image of Debian's default kernel and these packages.
    #[must_use]
    pub fn of_packages(suite: &str, packages: Vec<String>) -> Self {
        ImageSpec {
            suite: suite.to_owned(),
            mirror: None,
            kernel: KernelSource::Package(String::from(DEFAULT_KERNEL_PACKAGE)),
            root: RootSource::Packages(packages),
            modules: Vec::new(),
            lock: None,
            time_s: DEFAULT_TIME_S,
        }
    }
}

/// Where a kernel is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// A package of the suite, or a package that depends on one.
    Package(String),
    /// A `vmlinux` or `bzImage`.
    File {
        /// The file.
        path: PathBuf,
        /// Its `/lib/modules/RELEASE`; a kernel without needs all of its drivers built in.
        modules: Option<PathBuf>,
    },
}

/// Where a root filesystem is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootSource {
    /// None: machines stay in the initramfs.
    None,
    /// Debian's essential packages and these, with all that they depend on.
    Packages(Vec<String>),
    /// A folder that is a root filesystem, with the owners that its files have.
    Folder(PathBuf),
    /// A tar archive of one, packed or not.
    Tar(PathBuf),
}

/// What machines boot.
#[derive(Debug, Clone)]
pub struct Image {
    /// The kernel: an ELF.
    pub vmlinux: Entry,
    /// The initramfs: agent and modules.
    pub initramfs: Entry,
    /// The root filesystem, a SquashFS; none when machines stay in the initramfs.
    pub root: Option<Entry>,
    /// BLAKE3 over all of these, in hexadecimal: what a world's identity takes of its image.
    pub digest: String,
    /// The packages that it was made from.
    pub lock: Lock,
}

/// Why an image was not built.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is the error of the part that it names")]
pub enum Error {
    #[error(transparent)]
    Apt(#[from] apt::Error),
    #[error(transparent)]
    Cache(#[from] cache::Error),
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error(transparent)]
    Kernel(#[from] crate::kernel::Error),
    #[error(transparent)]
    Modules(#[from] crate::kernel::modules::Error),
    #[error(transparent)]
    Debian(#[from] debian::Error),
    #[error(transparent)]
    Squashfs(#[from] squashfs::Error),
    #[error("configuring the packages failed: {0}")]
    Configure(#[from] configure::Error),
    /// The layer of base packages cannot be written or read.
    #[error("cannot use the layer of base packages: {0}")]
    Layer(archive::Error),
    /// The guest's changes cannot be read.
    #[error("what the machine packed cannot be read: {0}")]
    Packed(archive::Error),
    /// The root filesystem that was given cannot be read.
    #[error("cannot read the root filesystem {path}: {source}")]
    RootArchive {
        /// The archive.
        path: String,
        /// Why.
        source: archive::Error,
    },
    /// The archive that was given is no file, or too long.
    #[error("cannot read the root filesystem {0}")]
    RootFile(#[from] everett_input::file::Error),
    /// The folder that was given cannot be read.
    #[error("cannot read the root filesystem {path}: {source}")]
    RootFolder {
        /// The file or folder.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The root filesystem has no program to run.
    #[error("{path} is no root filesystem: it has neither /bin nor /usr/bin")]
    NotARoot {
        /// Where it is from.
        path: String,
    },
    /// A value of the world file is not what it should be.
    #[error("{value:?} is no {what}")]
    Value {
        /// The value.
        value: String,
        /// What it should be: "name of a package", "suite", "address of a mirror".
        what: &'static str,
    },
    /// A package has no kernel in it.
    #[error("the package {package} has no kernel in /boot")]
    NoKernel {
        /// The package.
        package: String,
    },
}

/// What goes into apt's command lines and files must not be anything else than it seems.
fn check(spec: &ImageSpec) -> Result<(), Error> {
    let fail = |value: &str, what| Err(Error::Value { value: value.to_owned(), what });
    let plain = |text: &str, more: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphanumeric())
            && chars.all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    if !plain(&spec.suite, "-./") {
        return fail(&spec.suite, "suite");
    }
    if let Some(mirror) = &spec.mirror
        && !(plain(mirror, "-._~:/?#@!$&()*+,;=%") && mirror.contains(":/"))
    {
        return fail(mirror, "address of a mirror");
    }
    let kernel = match &spec.kernel {
        KernelSource::Package(name) => Some(name),
        KernelSource::File { .. } => None,
    };
    let packages = match &spec.root {
        RootSource::Packages(names) => names.as_slice(),
        _ => &[],
    };
    // A colon and an architecture are let through: apt knows best whether it is there.
    match packages.iter().chain(kernel).find(|name| !plain(name, "+-.:")) {
        Some(name) => fail(name, "name of a package"),
        None => Ok(()),
    }
}

/// Builds an image, or takes its parts from the cache.
///
/// # Errors
/// The first thing that is wrong, in one line.
pub fn build(
    spec: &ImageSpec,
    cache: &Cache,
    machine: &mut dyn Configure,
    progress: &mut dyn Progress,
) -> Result<Image, Error> {
    check(spec)?;
    let old = spec.lock.as_deref().map(Lock::read).transpose()?.flatten();
    let old = old.filter(|lock| lock.suite == spec.suite);
    let mut packages = packages::Packages::new(spec, cache, old);

    let kernel = kernel::build(spec, cache, &mut packages, progress)?;
    let root = root::build(spec, cache, &mut packages, &kernel, machine, progress)?;

    let lock = packages.into_lock();
    let any = lock.kernel.is_some() || !lock.packages.is_empty();
    if let Some(path) = spec.lock.as_deref().filter(|_| any) {
        lock.write(path)?;
    }
    let kernel::Kernel { vmlinux, initramfs } = kernel;
    let parts: BTreeMap<&str, Option<&Entry>> =
        [("vmlinux", Some(&vmlinux)), ("initramfs", Some(&initramfs)), ("root", root.as_ref())].into();
    let mut hasher = blake3::Hasher::new();
    for (name, entry) in parts {
        let digest = entry.map_or("none", |entry| entry.blake3.as_str());
        hasher.update(format!("{name} {digest}\n").as_bytes());
    }
    let digest = hasher.finalize().to_hex().to_string();
    Ok(Image { vmlinux, initramfs, root, digest, lock })
}

//! Builds images: the files from which a world's machines boot, according to the world's request.

mod kernel;
mod layers;
mod packages;
mod provider;
mod root;

use crate::cache::{self, Cache, CacheEntry};
use crate::configure::{self, Configure};
use crate::lock::{self, Lock, LockedImage};
use crate::progress::{BuildProgress, Stage};
use crate::{apt, archive, debian, mirror, squashfs};
use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use everett_remote::Access;

/// Kernel package of an image if the world names no kernel.
pub const DEFAULT_KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";

/// Default of [`ImageSpec::time_s`]: 2026-01-01T00:00:00Z, in seconds since 1970.
pub const DEFAULT_TIME_S: u64 = 1_767_225_600;

/// Request for an image.
#[derive(Debug, Clone)]
pub struct ImageSpec {
    /// Debian suite, for example `bookworm`.
    pub suite: String,
    /// Address of the only mirror to use, which may be a snapshot. If absent, Everett uses the host's mirrors, or
    /// Debian's if the host has none.
    pub mirror: Option<String>,
    /// Origin of the kernel.
    pub kernel: KernelSource,
    /// Origin of the root filesystem.
    pub root: RootSource,
    /// Kernel modules to load in addition to the modules that every machine loads.
    pub modules: Vec<String>,
    /// Path of `world.lock`. The build reads the lock if it exists, and writes it at the end. If absent, there is no
    /// lock.
    pub lock: Option<PathBuf>,
    /// Container images of the world that came from registries. The build writes them to the lock.
    pub images: Vec<LockedImage>,
    /// Time at which the machine that configures the packages starts its clock, and latest modification time of any
    /// file of the image, in seconds since 1970.
    pub time_s: u64,
    /// The host's clock in seconds since 1970, for checks whether signatures have expired. It does not affect the
    /// image.
    pub clock_s: u64,
}

impl ImageSpec {
    /// Returns the specification of an image with Debian's default kernel and these packages.
    #[must_use]
    pub fn of_packages(suite: &str, packages: Vec<String>, clock_s: u64) -> Self {
        ImageSpec {
            suite: suite.to_owned(),
            mirror: None,
            kernel: KernelSource::Package(String::from(DEFAULT_KERNEL_PACKAGE)),
            root: RootSource::Packages(packages),
            modules: Vec::new(),
            lock: None,
            images: Vec::new(),
            time_s: DEFAULT_TIME_S,
            clock_s,
        }
    }
}

/// Origin of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// A kernel package of the suite, or a package that depends on one.
    Package(String),
    /// A `vmlinux` or `bzImage`.
    File {
        /// Path of the kernel's file.
        path: PathBuf,
        /// Path of the kernel's folder `/lib/modules/RELEASE`. A kernel without the folder needs all drivers built in.
        modules: Option<PathBuf>,
    },
}

/// Origin of a root filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootSource {
    /// No root filesystem: machines stay in the initramfs.
    None,
    /// These packages and Debian's essential ones, with all their dependencies.
    Packages(Vec<String>),
    /// A folder with a root filesystem. The image's files have the owners that they have in the folder.
    Folder(PathBuf),
    /// A tar archive of a root filesystem, compressed or not.
    Tar(PathBuf),
}

/// The files that a machine boots from.
#[derive(Debug, Clone)]
pub struct BuiltImage {
    /// The kernel, an ELF file.
    pub vmlinux: CacheEntry,
    /// The initramfs with the kernel modules and the agent, Everett's program in the guest.
    pub initramfs: CacheEntry,
    /// The root filesystem, a SquashFS; `None` if machines stay in the initramfs.
    pub root: Option<CacheEntry>,
    /// BLAKE3 of the digests of the kernel, the initramfs and the root filesystem, in hexadecimal. The digest
    /// represents the image in a world's identity.
    pub digest: String,
    /// Lock with the image's packages.
    pub lock: Lock,
}

/// Reason why an image was not built.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is the error of the part that it names")]
pub enum Error {
    #[error(transparent)]
    Apt(#[from] apt::Error),
    #[error(transparent)]
    Mirror(#[from] mirror::Error),
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
    #[error("configuring the packages failed")]
    Configure(#[from] configure::Error),
    /// The layer of base packages cannot be written or read.
    #[error("cannot use the layer of base packages")]
    Layer(#[source] archive::Error),
    /// The archive of changed files cannot be read. The machine that configures the packages makes this archive.
    #[error("cannot read the changes that the machine packed")]
    Packed(#[source] archive::Error),
    /// The root filesystem's archive cannot be read.
    #[error("cannot read the root filesystem {path}")]
    RootArchive {
        /// Path of the archive.
        path: String,
        /// Cause of the failure.
        source: archive::Error,
    },
    /// The root filesystem's archive is not a regular file, or the archive is too long.
    #[error("cannot read the root filesystem {}", path.display())]
    RootFile {
        /// Path of the archive.
        path: PathBuf,
        /// Cause of the failure.
        source: everett_input::file::Reason,
    },
    /// The root filesystem's folder cannot be read.
    #[error("cannot read the root filesystem {path}")]
    RootFolder {
        /// Path of the file or folder.
        path: String,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The root filesystem has neither `/bin` nor `/usr/bin`.
    #[error("{path} is not a root filesystem: it has neither /bin nor /usr/bin")]
    NotARoot {
        /// Path of the root filesystem's archive or folder.
        path: String,
    },
    /// A value from the world file is malformed.
    #[error("{value:?} is not a {what}")]
    Value {
        /// The value.
        value: String,
        /// Expected kind of value: "package name", "suite" or "mirror address".
        what: &'static str,
    },
    /// A kernel package contains no kernel.
    #[error("the package {package} has no kernel in /boot")]
    NoKernel {
        /// Name of the package.
        package: String,
    },
}

/// Checks the names, the suite and the mirror. apt's command lines and files contain them, and no value may act as an
/// option or as an additional line.
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
        return fail(mirror, "mirror address (key mirror, or EVERETT_MIRROR)");
    }
    let kernel = match &spec.kernel {
        KernelSource::Package(name) => Some(name),
        KernelSource::File { .. } => None,
    };
    let packages = match &spec.root {
        RootSource::Packages(names) => names.as_slice(),
        _ => &[],
    };
    // A name may end with a colon and an architecture. apt reports whether the architecture is available.
    match packages.iter().chain(kernel).find(|name| !plain(name, "+-.:")) {
        Some(name) => fail(name, "package name"),
        None => Ok(()),
    }
}

/// Builds an image, or takes its parts from the cache. On a host without apt, `access` fetches the packages.
///
/// # Errors
/// Returns the first error. Its message is one line.
pub fn build(
    spec: &ImageSpec,
    cache: &Cache,
    access: &dyn Access,
    machine: &mut dyn Configure,
    progress: &mut dyn BuildProgress,
) -> Result<BuiltImage, Error> {
    check(spec)?;
    let old = spec.lock.as_deref().map(Lock::read).transpose()?.flatten();
    let old = old.filter(|lock| lock.suite == spec.suite);
    let mut packages = packages::Packages::new(spec, cache, access, old);
    packages.check()?;

    let source = kernel::fetch(spec, &mut packages, progress)?;
    // A thread unpacks the kernel while other packages are downloaded.
    let (kernel, fetched) = thread::scope(|scope| {
        let kernel = scope.spawn(|| source.build(spec, cache));
        let fetched = root::fetch(spec, &mut packages, progress);
        progress.at(Stage::Kernel, 0, 1);
        let kernel = kernel.join().unwrap_or_else(|panic| resume_unwind(panic));
        progress.at(Stage::Kernel, 1, 1);
        (kernel, fetched)
    });
    let (kernel, fetched) = (kernel?, fetched?);
    let root = root::build(spec, cache, &fetched, &kernel, machine, progress)?;

    let mut lock = packages.into_lock();
    lock.images.clone_from(&spec.images);
    let any = lock.kernel.is_some() || !lock.packages.is_empty() || !lock.images.is_empty();
    if let Some(path) = spec.lock.as_deref().filter(|_| any) {
        lock.write(path)?;
    }
    let kernel::Kernel { vmlinux, initramfs } = kernel;
    let digest = digest(&vmlinux, &initramfs, root.as_ref());
    Ok(BuiltImage { vmlinux, initramfs, root, digest, lock })
}

/// Returns the digest of the image that has these files.
#[must_use]
pub fn digest(vmlinux: &CacheEntry, initramfs: &CacheEntry, root: Option<&CacheEntry>) -> String {
    let parts: BTreeMap<&str, Option<&CacheEntry>> =
        [("vmlinux", Some(vmlinux)), ("initramfs", Some(initramfs)), ("root", root)].into();
    let mut hasher = blake3::Hasher::new();
    for (name, entry) in parts {
        let digest = entry.map_or("none", |entry| entry.blake3.as_str());
        hasher.update(format!("{name} {digest}\n").as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

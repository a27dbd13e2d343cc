//! Reads and writes `world.lock`, the list of the exact packages of an image.
//!
//! Everett writes the file beside the world file, and the user should keep both together. While the lock exists,
//! Everett uses the same versions again, and refuses a package whose content differs from the recorded digest. A lock
//! also names each package's file in the archive, so Everett can fetch the file without the mirror's package lists.

use std::io::{self, Write as _};
use std::path::Path;

use everett_input::file as input;
use serde::{Deserialize, Serialize};

use crate::apt::{ArchiveFile, Exact, Remote, is_path};
use crate::cache;

/// Version of the file format. A lock of another version is refused.
const VERSION: u32 = 1;

/// Maximum number of container images in a lock. A world needs at most 64, one for each machine.
const IMAGES_MAX: usize = 1_000;

/// Maximum length of a lock, in bytes. A package takes about 250 bytes, so a lock has room for 67,000 packages.
const LOCK_BYTES_MAX: u64 = 16 << 20;

const HEADER: &str = "# The exact packages of this world's image. Written by `everett image build`; keep it with the world.\n\
     # Delete it to take today's versions.\n";

/// Reason why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] input::Error),
    /// The file cannot be written.
    #[error("cannot use {path}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The file is not a valid lock.
    #[error("{path} is not a lock that this version understands: {problem}")]
    Format {
        /// Path of the file.
        path: String,
        /// Description of the defect.
        problem: String,
    },
    /// A package differs from the locked one.
    #[error(
        "the package {package} {version} is not the one in world.lock: its SHA-256 is {found}, and {expected} was \
         locked"
    )]
    Mismatch {
        /// Name of the package.
        package: String,
        /// Version of the package.
        version: String,
        /// The digest in the lock.
        expected: String,
        /// The digest of the file.
        found: String,
    },
}

/// A locked package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// SHA-256 of the package's file, in hexadecimal.
    pub sha256: String,
    /// Path of the file below the base address of its archive. Absent in locks that older versions of Everett wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Length of the file in bytes. Absent if `path` is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Locked {
    /// Returns the entry of a lock for a package on a mirror.
    #[must_use]
    pub(crate) fn of(remote: &Remote) -> Locked {
        let Remote { package: Exact { name, version }, path, bytes, sha256, .. } = remote.clone();
        Locked { name, version, sha256, bytes: path.is_some().then_some(bytes), path }
    }

    /// Returns the package's file in the archive. `None` if the lock has no path.
    #[must_use]
    pub(crate) fn file(&self) -> Option<ArchiveFile> {
        Some(ArchiveFile { path: self.path.clone()?, bytes: self.bytes?, sha256: self.sha256.clone() })
    }

    /// Returns the name and version, without the digest.
    #[must_use]
    pub fn exact(&self) -> Exact {
        Exact { name: self.name.clone(), version: self.version.clone() }
    }
}

/// Content of a lock: the packages of an image, and the world's container images.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// Debian suite of the packages.
    pub suite: String,
    /// Packages that the world requested. If the world requests different packages later, apt resolves them again and
    /// prefers the locked versions.
    #[serde(default)]
    pub requested: Vec<String>,
    /// Name of the kernel package that the world requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_requested: Option<String>,
    /// Package of the kernel. Absent if the world names a kernel file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Locked>,
    /// Container images that came from registries.
    #[serde(default, rename = "image", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<LockedImage>,
    /// Packages of the root filesystem, in the order in which Everett unpacks them.
    #[serde(default, rename = "package")]
    pub packages: Vec<Locked>,
}

/// A locked container image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedImage {
    /// The image's reference, as the world file gives it.
    pub name: String,
    /// Digest of the image's manifest in the registry: `sha256:HEX`.
    pub digest: String,
}

impl Lock {
    /// Returns a lock of this version that has no packages.
    #[must_use]
    pub fn new(suite: &str) -> Self {
        Lock { version: VERSION, suite: suite.to_owned(), ..Lock::default() }
    }

    /// Returns the digest of the container image with this name, if the lock has the image.
    #[must_use]
    pub fn image(&self, name: &str) -> Option<&str> {
        self.images.iter().find(|image| image.name == name).map(|image| image.digest.as_str())
    }

    /// Reads a lock. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a valid lock.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let name = || path.display().to_string();
        let text = match input::read_text(path, LOCK_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let format = |problem: String| Error::Format { path: name(), problem };
        let lock: Lock = toml::from_str(&text).map_err(|error| format(error.message().to_owned()))?;
        if lock.version != VERSION {
            return Err(format(format!(
                "its version is {}, but only version {VERSION} is known",
                lock.version
            )));
        }
        for package in lock.packages.iter().chain(&lock.kernel) {
            check(package).map_err(format)?;
        }
        if lock.images.len() > IMAGES_MAX {
            return Err(format(format!("more than {IMAGES_MAX} images")));
        }
        Ok(Some(lock))
    }

    /// Writes the lock, unless the file already has the same content.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |source: io::Error| Error::File { path: path.display().to_string(), source };
        let text = toml::to_string(self).map_err(|error| failed(io::Error::other(error)))?;
        let text = format!("{HEADER}\n{text}");
        if input::read_text(path, LOCK_BYTES_MAX).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let mut file = tempfile::NamedTempFile::new_in(input::folder_of(path)).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        cache::persist(file, path).map_err(failed)
    }
}

/// Checks a package's name, version, digest and path, because commands, paths and addresses contain them.
fn check(package: &Locked) -> Result<(), String> {
    if !is_name(&package.name) {
        return Err(format!("{:?} is not a package name", package.name));
    }
    if !is_version(&package.version) {
        return Err(format!("{:?} is not a valid version of {}", package.version, package.name));
    }
    if package.sha256.len() != 64 || !package.sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
        return Err(format!("the SHA-256 of {} is not 64 hexadecimal digits", package.name));
    }
    match &package.path {
        Some(path) if !is_path(path) => {
            Err(format!("{path:?} is not a path of {} in an archive", package.name))
        }
        path if path.is_some() != package.bytes.is_some() => {
            Err(format!("{} has a path without a length, or a length without a path", package.name))
        }
        _ => Ok(()),
    }
}

/// True if the text has only characters that a package's name may have.
pub(crate) fn is_name(text: &str) -> bool {
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(of_name)
}

/// True if the text has only characters that a version may have (deb-version(7)).
pub(crate) fn is_version(text: &str) -> bool {
    let of_version = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '~' | ':');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(of_version)
}

#[cfg(test)]
mod tests {
    use super::{Error, Lock, Locked, LockedImage};

    fn locked(name: &str) -> Locked {
        Locked {
            name: name.to_owned(),
            version: String::from("5:7.0-1~deb12u7"),
            sha256: "0f".repeat(32),
            path: Some(format!("pool/{name}.deb")),
            bytes: Some(12),
        }
    }

    fn lock() -> Lock {
        let mut lock = Lock::new("bookworm");
        lock.requested = vec![String::from("redis-server")];
        lock.kernel_requested = Some(String::from("linux-image-cloud-amd64"));
        lock.kernel = Some(locked("linux-image-6.1.0-50-cloud-amd64"));
        let of_older_version = Locked { path: None, bytes: None, ..locked("libc6") };
        lock.packages = vec![of_older_version, locked("redis-server")];
        lock
    }

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.lock");
        assert_eq!(Lock::read(&path).unwrap(), None);
        lock().write(&path).unwrap();
        assert_eq!(Lock::read(&path).unwrap(), Some(lock()));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# The exact packages"), "{text}");
        assert!(!text.contains("image ="), "{text}");
        let image = |name: &str| LockedImage { name: name.to_owned(), digest: "sha256:00".to_owned() };
        let with_images = Lock { images: vec![image("redis:7"), image("docker://x/y")], ..lock() };
        with_images.write(&path).unwrap();
        assert_eq!(Lock::read(&path).unwrap().unwrap().image("docker://x/y"), Some("sha256:00"));
        assert_eq!(with_images.image("x/y"), None);
    }

    #[test]
    fn invalid_locks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.lock");
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            match Lock::read(&path) {
                Err(Error::Format { problem, .. }) => problem,
                other => panic!("{text}: {other:?}"),
            }
        };
        assert!(refused("version = 2\nsuite = \"a\"\n").contains("version is 2"));
        assert!(refused("version = 1\nsuite = \"a\"\nextra = 1\n").contains("extra"));
        assert!(refused("version =").contains("value"));
        let package = |name: &str, version: &str, sha256: &str| {
            format!(
                "version = 1\nsuite = \"a\"\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsha256 = \"{sha256}\"\n"
            )
        };
        let digest = "ab".repeat(32);
        assert!(refused(&package("--option", "1", &digest)).contains("not a package name"));
        assert!(refused(&package("a", "../x", &digest)).contains("not a valid version"));
        assert!(refused(&package("a", "1", "../../x")).contains("SHA-256"));
        let file = |lines: &str| format!("{}{lines}", package("a", "1", &digest));
        for path in ["../x", "/x", "pool//x", "pool/./x", "pool/x y", "pool/x?y", "pool/x'", "pool/x\\n", ""]
        {
            let problem = refused(&file(&format!("path = \"{path}\"\nbytes = 1\n")));
            assert!(problem.contains("is not a path of a in an archive"), "{problem}");
        }
        assert!(refused(&file("path = \"pool/x\"\n")).contains("a path without a length"));
        assert!(refused(&file("bytes = 1\n")).contains("a length without a path"));
        assert!(refused(&file("path = \"pool/x\"\nbytes = -1\n")).contains("-1"));
    }
}

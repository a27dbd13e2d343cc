//! Reads the table `[image]`: the kernel and the root filesystem.

use std::path::PathBuf;

use serde::Serialize;

use super::cursor::{Item, Table};
use super::error::Error;
use super::{confinement, paths, seal};

/// Maximum number of packages in a list.
const PACKAGES_MAX: usize = 1_000;
/// Maximum length of the text that a world adds to the kernel's command line, in bytes. Everett's own part comes first,
/// and x86 allows 2048 bytes for both parts.
const EXTRA_CMDLINE_BYTES_MAX: usize = 1_024;

/// Kernel and root filesystem of a world's nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageConfig {
    /// Path of a `vmlinux` or `bzImage`. `None` means the cloud kernel of the Debian suite. The world's identity (the
    /// digest of everything that determines its timelines) does not contain the path. It contains the digest of the
    /// built image, which covers the kernel's content.
    #[serde(skip)]
    pub kernel: Option<PathBuf>,
    /// Path of the kernel's folder `lib/modules/RELEASE`. `None` if all drivers are built into the kernel.
    #[serde(skip)]
    pub kernel_modules: Option<PathBuf>,
    /// Address of the package mirror. `None` means the variable `EVERETT_MIRROR`, or else the host's own mirrors. The
    /// address is not part of the world's identity: the image's digest covers the packages.
    #[serde(skip)]
    pub mirror: Option<String>,
    /// Source of the root filesystem. It is not part of the world's identity: the image's digest covers the content.
    #[serde(skip)]
    pub root: Root,
    /// Text appended to the kernel's command line.
    pub cmdline: String,
}

/// Source of a root filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// Debian packages with all their dependencies.
    Packages {
        /// Suite of the distribution.
        suite: String,
        /// Packages that every node gets, in addition to the node's own packages.
        packages: Vec<String>,
    },
    /// Path on the host of a folder or of a tar archive.
    Path(PathBuf),
}

pub(super) fn read(table: Option<Table<'_>>) -> Result<ImageConfig, Error> {
    let Some(table) = table else {
        let root = Root::Packages { suite: "bookworm".to_owned(), packages: Vec::new() };
        return Ok(ImageConfig {
            kernel: None,
            kernel_modules: None,
            mirror: None,
            root,
            cmdline: String::new(),
        });
    };
    table.only(&["suite", "mirror", "kernel", "kernel_modules", "rootfs", "packages", "cmdline"], &[])?;
    let kernel = match table.get("kernel") {
        None => None,
        Some(item) => {
            let path = paths::of_image(&item)?;
            if !path.is_file() && !seal::has_images() {
                return Err(
                    item.error(format!("{} is not a file; name a vmlinux or a bzImage", path.display()))
                );
            }
            Some(path)
        }
    };
    let kernel_modules = match table.get("kernel_modules") {
        None => None,
        Some(item) if kernel.is_none() => {
            return Err(item.error("this has no effect without kernel; remove it"));
        }
        Some(item) => {
            let path = paths::of_image(&item)?;
            if !path.is_dir() && !seal::has_images() {
                return Err(
                    item.error(format!("{} is not a folder; name a lib/modules/RELEASE", path.display()))
                );
            }
            Some(path)
        }
    };
    let mirror = table.get("mirror").map(|item| mirror(&item)).transpose()?;
    let root = match table.get("rootfs") {
        Some(item) => {
            for other in ["suite", "packages"] {
                if let Some(other) = table.get(other) {
                    return Err(other.error("this has no effect with rootfs; remove one of them"));
                }
            }
            Root::Path(paths::of_image(&item)?)
        }
        None => {
            let suite = match table.get("suite") {
                None => "bookworm".to_owned(),
                Some(item) => suite_name(&item)?,
            };
            let packages = match table.get("packages") {
                None => Vec::new(),
                Some(item) => packages(&item)?,
            };
            Root::Packages { suite, packages }
        }
    };
    let cmdline = match table.get("cmdline") {
        None => String::new(),
        Some(item) => {
            let text = item.str()?;
            if text.len() > EXTRA_CMDLINE_BYTES_MAX || !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
                return Err(
                    item.error(format!("at most {EXTRA_CMDLINE_BYTES_MAX} printable ASCII characters"))
                );
            }
            text.trim().to_owned()
        }
    };
    Ok(ImageConfig { kernel, kernel_modules, mirror, root, cmdline })
}

fn mirror(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    let known = ["http://", "https://", "file:/"].iter().any(|scheme| text.starts_with(scheme));
    if !known || text.len() > 1024 || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(item.error(format!(
            "\"{text}\" is not the address of a mirror, such as \"https://deb.debian.org/debian\""
        )));
    }
    if !text.starts_with("http") && seal::is_sealed() {
        return Err(item.error("a finding file takes packages from mirrors with http:// or https:// alone"));
    }
    if text.starts_with("file:") && confinement::is_compose(item.source_file()) {
        return Err(item.error("a mirror outside of the compose file's folder; name it in a world file"));
    }
    Ok(text.to_owned())
}

fn suite_name(item: &Item<'_>) -> Result<String, Error> {
    let text = item.str()?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
        return Err(item.error(format!("\"{text}\" is not the name of a Debian suite, such as \"bookworm\"")));
    }
    Ok(text.to_owned())
}

/// Reads a list of Debian package names. Sorts it and removes duplicates. `name=version` selects a version.
pub(super) fn packages(item: &Item<'_>) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for element in item.list(PACKAGES_MAX)? {
        let text = element.str()?;
        if !is_package(text) {
            return Err(element.error(format!("\"{text}\" is not the name of a Debian package")));
        }
        names.push(text.to_owned());
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Returns true if a text is a Debian package's name, with or without a version (Debian Policy 5.6.1 and 5.6.12).
pub(super) fn is_package(text: &str) -> bool {
    let (name, version) = text.split_once('=').unwrap_or((text, "0"));
    // apt gets the name as an argument, so the name may not start with a dash.
    let name_ok = name.len() >= 2
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c));
    let version_ok = version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".+-:~".contains(c));
    name_ok && version_ok && text.len() <= 256
}

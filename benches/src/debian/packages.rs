//! Files from the Debian packages of an image.

use everett_guest_image::Cache;
use everett_guest_image::debian::package::Package;
use everett_guest_image::lock::Lock;
use everett_input::causes::with_causes;
use std::io::{self, Read as _};

/// Package of a static busybox, for an initramfs without a C library.
pub(super) const BUSYBOX: &str = "busybox-static";
/// Package of unsquashfs, which unpacks the root file system for native runs.
pub(super) const UNPACKER: &str = "squashfs-tools";
/// Possible paths of busybox in the package. The second is for Debian releases with a merged `/usr`.
const PATHS: [&str; 2] = ["bin/busybox", "usr/bin/busybox"];
/// Maximum size of busybox, in bytes. The actual size is 2 MiB.
const BYTES_MAX: u64 = 16 << 20;

/// Opens a package that an image's lock (its list of packages with their digests) names.
///
/// # Errors
/// Returns a one-line message if the lock does not name the package, or if the package cannot be read.
pub(super) fn open(lock: &Lock, cache: &Cache, name: &str) -> Result<Package, String> {
    let locked = lock.packages.iter().find(|locked| locked.name == name);
    let locked = locked.ok_or_else(|| format!("the image has no package {name}"))?;
    let path = cache.packages().join(format!("{}.deb", locked.sha256));
    Package::open(&path).map_err(|error| with_causes(&error))
}

/// Returns busybox from its package.
///
/// # Errors
/// Returns a one-line message if the package is missing or damaged.
pub(super) fn busybox(lock: &Lock, cache: &Cache) -> Result<Vec<u8>, String> {
    let package = open(lock, cache, BUSYBOX)?;
    let read = read(&package).map_err(|error| format!("{BUSYBOX}: {}", with_causes(&error)))?;
    read.ok_or_else(|| format!("there is no busybox in the package {BUSYBOX}"))
}

fn read(package: &Package) -> io::Result<Option<Vec<u8>>> {
    for entry in tar::Archive::new(package.data()?).entries()? {
        let entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type().is_file() && PATHS.contains(&path.trim_start_matches("./")) {
            let mut program = Vec::new();
            entry.take(BYTES_MAX).read_to_end(&mut program)?;
            return Ok(Some(program));
        }
    }
    Ok(None)
}

//! Static busybox from Debian's package, for an initramfs without a C library.

use everett_guest_image::Cache;
use everett_guest_image::debian::package::Package;
use everett_guest_image::lock::Lock;
use everett_input::causes::with_causes;
use std::io::{self, Read as _};

const PACKAGE: &str = "busybox-static";
/// Possible paths of busybox in the package. The second is for Debian releases with a merged `/usr`.
const PATHS: [&str; 2] = ["bin/busybox", "usr/bin/busybox"];
/// Maximum size of busybox, in bytes. The actual size is 2 MiB.
const BYTES_MAX: u64 = 16 << 20;

/// Returns busybox from the package that an image's lock (its list of packages with their digests) names.
///
/// # Errors
/// Returns a one-line message if the package is missing or its content differs from the lock.
pub(super) fn of(lock: &Lock, cache: &Cache) -> Result<Vec<u8>, String> {
    let missing = || format!("there is no busybox in the package {PACKAGE}");
    let locked = lock.packages.iter().find(|locked| locked.name == PACKAGE).ok_or_else(missing)?;
    let path = cache.packages().join(format!("{}.deb", locked.sha256));
    let package = Package::open(&path).map_err(|error| with_causes(&error))?;
    read(&package).map_err(|error| format!("{PACKAGE}: {}", with_causes(&error)))?.ok_or_else(missing)
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

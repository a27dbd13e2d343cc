//! Parses a suite's list of packages (`Packages`).

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::release::is_sha256;
use crate::apt::{ArchiveFile, Exact, is_path};
use crate::compression::Format;
use crate::debian::control::Control;
use crate::lock;

/// Maximum length of a line of a list, in bytes.
const INDEX_LINE_BYTES_MAX: u64 = 1 << 20;
/// Maximum length of a package's entry in a list, in bytes.
const ENTRY_BYTES_MAX: usize = 4 << 20;

/// A package in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Name and version.
    pub(super) package: Exact,
    /// Debian architecture of the package.
    pub(super) architecture: String,
    /// Packages on which the package depends, in the syntax of Debian's field `Depends`.
    pub(super) depends: String,
    /// The package's file. Its path is below the archive's base address.
    pub(super) file: ArchiveFile,
}

/// Reads the packages whose names `wants` accepts, in the order of the list. The list in `path` must have
/// `unpacked_bytes` bytes when it is decompressed.
pub(super) fn read(
    path: &Path,
    unpacked_bytes: u64,
    wants: &dyn Fn(&str) -> bool,
) -> io::Result<Vec<Listed>> {
    let file = BufReader::with_capacity(1 << 20, everett_input::file::open(path)?.0);
    let format = path.extension().and_then(|end| Format::of_name(&format!("x.{}", end.to_string_lossy())));
    let unpacked = match format {
        Some(format) => format.reader_of_all(file)?,
        None => Box::new(file),
    };
    of_text(
        BufReader::with_capacity(1 << 20, unpacked.take(unpacked_bytes.saturating_add(1))),
        unpacked_bytes,
        wants,
    )
}

fn of_text(
    mut text: impl BufRead,
    unpacked_bytes: u64,
    wants: &dyn Fn(&str) -> bool,
) -> io::Result<Vec<Listed>> {
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let (mut found, mut entry, mut line) = (Vec::new(), String::new(), Vec::new());
    let (mut wanted, mut bytes) = (false, 0);
    loop {
        line.clear();
        let length = text.by_ref().take(INDEX_LINE_BYTES_MAX).read_until(b'\n', &mut line)? as u64;
        bytes += length;
        if length == INDEX_LINE_BYTES_MAX {
            return Err(broken("a line is too long"));
        }
        if bytes > unpacked_bytes {
            return Err(broken("it is longer than its index says"));
        }
        if length == 0 || line == b"\n" {
            if wanted {
                found.push(listed(&Control::parse(&entry)).ok_or_else(|| broken("an entry is malformed"))?);
            }
            (wanted, entry) = (false, String::new());
            if length == 0 {
                break;
            }
        } else if let Some(name) = line.strip_prefix(b"Package: ") {
            wanted = wants(&String::from_utf8_lossy(name.trim_ascii_end()));
        }
        // `Package` is the first field of an entry, so `wanted` is already set for the lines after it.
        if wanted {
            entry.push_str(&String::from_utf8_lossy(&line));
            if entry.len() > ENTRY_BYTES_MAX {
                return Err(broken("an entry is too long"));
            }
        }
    }
    if bytes != unpacked_bytes {
        return Err(broken("it is shorter than its index says"));
    }
    Ok(found)
}

/// Returns the package that an entry describes. `None` if the entry is malformed.
fn listed(entry: &Control) -> Option<Listed> {
    let field = |name: &str| entry.field(name).map(str::to_owned);
    let package = Exact { name: field("Package")?, version: field("Version")? };
    let named = ArchiveFile {
        path: field("Filename")?,
        bytes: field("Size")?.parse().ok()?,
        sha256: field("SHA256")?,
    };
    let fits = lock::is_name(&package.name)
        && lock::is_version(&package.version)
        && is_path(&named.path)
        && is_sha256(&named.sha256);
    fits.then(|| Listed {
        package,
        architecture: field("Architecture").unwrap_or_default(),
        depends: field("Depends").unwrap_or_default(),
        file: named,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(name: &str, path: &str) -> String {
        format!(
            "Package: {name}\nVersion: 1:6.1-1\nArchitecture: amd64\nDescription: x\n more\nFilename: {path}\n\
             Size: 12\nSHA256: {}\n\n",
            "0f".repeat(32)
        )
    }

    fn of(text: &str) -> io::Result<Vec<Listed>> {
        of_text(text.as_bytes(), text.len() as u64, &|name| name.starts_with("linux-"))
    }

    #[test]
    fn wanted_packages_are_read() {
        let text = [
            entry("linux-a", "pool/a_1%3a6.1-1.deb"),
            entry("other", "../x"),
            entry("linux-b", "pool/b.deb"),
        ]
        .concat();
        let found = of(&text).unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.package.name.as_str()).collect();
        assert_eq!(names, ["linux-a", "linux-b"]);
        assert_eq!((found[0].file.path.as_str(), found[0].file.bytes), ("pool/a_1%3a6.1-1.deb", 12));
        // No empty line is needed after the last entry.
        assert_eq!(of(text.trim_end()).unwrap(), found);
        assert_eq!(of("").unwrap(), []);
    }

    #[test]
    fn paths_stay_below_the_archive() {
        for path in
            ["../x.deb", "/etc/passwd", "pool/../../x", "pool//x", "pool/x?y", "http://other/x", "pool/x y"]
        {
            assert!(of(&entry("linux-a", path)).is_err(), "{path}");
        }
        assert!(of(&entry("linux-a", "pool/x").replace("1:6.1-1", "../1")).is_err());
        assert!(of(&entry("linux-a", "pool/x").replace("0f0f", "..0f")).is_err());
        assert!(of(&entry("linux-../a", "pool/x")).is_err());
    }

    #[test]
    fn the_length_is_that_of_the_index() {
        let text = entry("linux-a", "pool/x");
        let of = |length: usize| of_text(text.as_bytes(), length as u64, &|_| true).unwrap_err().to_string();
        assert_eq!(of(text.len() - 1), "it is longer than its index says");
        assert_eq!(of(text.len() + 1), "it is shorter than its index says");
        let long = "x".repeat(usize::try_from(INDEX_LINE_BYTES_MAX).unwrap() + 1);
        assert!(of_text(long.as_bytes(), u64::MAX - 1, &|_| true).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(Package|Version|Filename|Size|SHA256|x|\n|: | |[a-f0-9]{64}|\\PC){0,60}") {
            let _ = of_text(text.as_bytes(), text.len() as u64, &|_| true);
        }
    }
}

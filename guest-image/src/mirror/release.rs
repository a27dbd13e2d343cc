//! Parses the index of a suite (`InRelease`): its dates, and the digests of its lists of packages.

use std::time::UNIX_EPOCH;

use super::error::Error;
use crate::apt::{ARCHITECTURE, ArchiveFile};
use crate::debian::control::Control;

/// Maximum time by which the date of an index may be in the future, in seconds, because clocks differ.
const CLOCKS_DIFFER_S: u64 = 3_600;

/// The index of a suite.
#[derive(Debug)]
pub(super) struct Release {
    /// Fields of the index, for example `Codename`.
    fields: Control,
    /// Date of the index, in seconds since 1970.
    pub(super) date_s: u64,
}

/// Entry of the index for the suite's list of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackageList {
    /// The list's file. A compressed file is preferred.
    pub(super) file: ArchiveFile,
    /// Length of the decompressed list in bytes.
    pub(super) unpacked_bytes: u64,
    /// Path at which the archive keeps this version of the file, relative to the folder of the index. `None` if the
    /// archive has no such path.
    pub(super) by_hash: Option<String>,
}

impl Release {
    /// Parses an index. Errors name the index by `address`.
    pub(super) fn parse(text: &str, address: &str) -> Result<Release, Error> {
        let fields = Control::parse(text);
        let date = fields.field("Date").unwrap_or_default();
        let date_s = seconds(date).ok_or_else(|| Error::Format {
            address: address.to_owned(),
            problem: format!("its date {date:?} is no date"),
        })?;
        Ok(Release { fields, date_s })
    }

    /// Checks that this is the index of `suite` and that it is valid at `now_s`, the host's clock in seconds since
    /// 1970.
    pub(super) fn check(&self, suite: &str, address: &str, now_s: u64) -> Result<(), Error> {
        let address = || address.to_owned();
        let field = |name: &str| self.fields.field(name).unwrap_or_default().to_owned();
        // Old security suites have the name `buster/updates`, but their index has the code name `buster`.
        let plain = suite.strip_suffix("/updates").unwrap_or(suite);
        if ["Suite", "Codename"].iter().all(|name| field(name) != suite && field(name) != plain) {
            let problem = format!("this is the index of {}, and not of {suite}", field("Codename"));
            return Err(Error::Format { address: address(), problem });
        }
        if self.date_s > now_s.saturating_add(CLOCKS_DIFFER_S) {
            return Err(Error::Future { address: address(), date: field("Date") });
        }
        let until = field("Valid-Until");
        if until.is_empty() {
            return Ok(());
        }
        match seconds(&until) {
            Some(until_s) if until_s >= now_s => Ok(()),
            Some(_) => Err(Error::Expired { address: address(), date: until }),
            None => Err(Error::Format { address: address(), problem: format!("{until:?} is no date") }),
        }
    }

    /// Returns the index's date as text.
    pub(super) fn date(&self) -> &str {
        self.fields.field("Date").unwrap_or_default()
    }

    /// Returns the entry for the suite's list of packages. `None` if there is no list for amd64.
    pub(super) fn packages(&self) -> Option<PackageList> {
        let plain = format!("main/binary-{ARCHITECTURE}/Packages");
        let unpacked_bytes = self.file(&plain)?.bytes;
        let file = [".xz", ".gz", ""].iter().find_map(|end| self.file(&format!("{plain}{end}")))?;
        let folder = plain.trim_end_matches("Packages");
        let has_hashes = self.fields.field("Acquire-By-Hash") == Some("yes");
        let by_hash = has_hashes.then(|| format!("{folder}by-hash/SHA256/{}", file.sha256));
        Some(PackageList { file, unpacked_bytes, by_hash })
    }

    fn file(&self, wanted: &str) -> Option<ArchiveFile> {
        self.fields.field("SHA256")?.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (sha256, bytes, path) = (words.next()?, words.next()?, words.next()?);
            if path != wanted || !is_sha256(sha256) {
                return None;
            }
            Some(ArchiveFile { path: path.to_owned(), bytes: bytes.parse().ok()?, sha256: sha256.to_owned() })
        })
    }
}

/// True if the text is a SHA-256 of 64 lower-case hexadecimal digits, as archives write it.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Parses a date such as `Sat, 11 Jul 2026 10:16:37 UTC`. Returns seconds since 1970.
fn seconds(date: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(&date.replace("UTC", "GMT")).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_800_000_000; // 2027-01-15 08:00:00 UTC

    fn text(more: &str) -> String {
        let digest = |c: &str| c.repeat(64);
        format!(
            "Origin: Debian\r\nSuite: oldstable\r\nCodename: bookworm\r\nDate: Fri, 15 Jan 2027 07:00:00 UTC\r\n{more}\
             SHA256:\r\n {} 50060337 main/binary-amd64/Packages\r\n {} 12084798 main/binary-amd64/Packages.gz\r\n \
             {} 8790396 main/binary-amd64/Packages.xz\r\n {} 1 main/binary-arm64/Packages.xz\r\n",
            digest("a"),
            digest("b"),
            digest("c"),
            digest("d"),
        )
    }

    fn release(more: &str) -> Release {
        Release::parse(&text(more), "http://m/InRelease").unwrap()
    }

    #[test]
    fn the_list_of_packages_is_found() {
        let list = release("Acquire-By-Hash: yes\r\n").packages().unwrap();
        assert_eq!((list.file.path.as_str(), list.file.bytes), ("main/binary-amd64/Packages.xz", 8_790_396));
        assert_eq!(list.unpacked_bytes, 50_060_337);
        assert_eq!(list.by_hash.unwrap(), format!("main/binary-amd64/by-hash/SHA256/{}", "c".repeat(64)));
        assert_eq!(release("").packages().unwrap().by_hash, None);
        let other = text("").replace("binary-amd64", "binary-riscv64");
        assert_eq!(Release::parse(&other, "x").unwrap().packages(), None);
        let broken = text("").replace(&"c".repeat(64), "../../etc/passwd");
        assert_eq!(
            Release::parse(&broken, "x").unwrap().packages().unwrap().file.path,
            "main/binary-amd64/Packages.gz"
        );
    }

    #[test]
    fn dates_and_suites_are_checked() {
        let checked =
            |more: &str, suite: &str, now_s: u64| release(more).check(suite, "http://m/InRelease", now_s);
        checked("", "bookworm", NOW_S).unwrap();
        checked("", "oldstable", NOW_S).unwrap();
        checked("", "bookworm/updates", NOW_S).unwrap();
        let said = |result: Result<(), Error>| result.unwrap_err().to_string();
        assert_eq!(
            said(checked("", "trixie", NOW_S)),
            "http://m/InRelease: this is the index of bookworm, and not of trixie"
        );
        assert!(said(checked("", "bookworm", NOW_S - 3 * 3_600)).contains("in the future"));
        let until = "Valid-Until: Fri, 15 Jan 2027 08:00:00 UTC\r\n";
        checked(until, "bookworm", NOW_S).unwrap();
        let error = said(checked(until, "bookworm", NOW_S + 1));
        assert!(error.contains("expired on Fri, 15 Jan 2027 08:00:00 UTC"), "{error}");
        assert!(said(checked("Valid-Until: soon\r\n", "bookworm", NOW_S)).contains("is no date"));
        assert!(Release::parse("Codename: bookworm\n", "x").is_err());
    }
}

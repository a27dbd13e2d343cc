//! Keys that may sign an index: those of the host, else Debian's own, known by their fingerprints.
//!
//! Everett contains fingerprints, not keys. It takes the keys from the archive's package `debian-archive-keyring`,
//! which it reads before anything is verified: of the keys in there, it keeps those that have the fingerprints.

use std::io::Read as _;
use std::path::Path;

use super::error::{Error, file_error};
use super::fetch::Fetcher;
use super::keys::{Keys, Signed};
use super::release::Release;
use super::suite::Suite;
use crate::apt::sources;
use crate::archive;
use crate::cache;
use crate::debian::package::Package;
use crate::debian::version::compare;

/// Package with the keys of Debian's archives.
const PACKAGE: &str = "debian-archive-keyring";
/// Path of the keys in the package, without its ending: `.gpg`, since Debian 13 `.pgp`.
const IN_PACKAGE: &str = "usr/share/keyrings/debian-archive-keyring";

/// Maximum length of the package, in bytes. Debian's has 170 KB.
const PACKAGE_BYTES_MAX: u64 = 8 << 20;
/// Maximum length of the package's content, in bytes.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of a file with keys, in bytes. Debian's has 56 KB.
const KEYS_BYTES_MAX: u64 = 4 << 20;

/// The index that is to be trusted.
pub(super) struct Place<'p> {
    /// Folder of the state.
    pub(super) folder: &'p Path,
    pub(super) fetcher: &'p Fetcher,
    /// Base address of the archive.
    pub(super) base: &'p str,
    /// Name of the suite.
    pub(super) suite: &'p str,
    /// Address of the index.
    pub(super) address: &'p str,
}

/// Verifies a signed index; returns its text. `signed_by` is the source's file with keys, or the keys themselves.
pub(super) fn verify(
    place: &Place<'_>,
    signed_by: Option<&str>,
    bytes: &[u8],
    now_s: u64,
) -> Result<String, Error> {
    let refused = |reason| Error::Signature { address: place.address.to_owned(), reason };
    let signed = Signed::parse(bytes).map_err(refused)?;
    let mut why = None;
    if let Some(signed_by) = signed_by {
        match of_host(signed_by)?.verify(&signed, now_s) {
            Ok(()) => return Ok(signed.text()),
            // The host's own copy of Debian's keys may be too old.
            Err(reason) if sources::is_keyring(signed_by) => why = Some(reason),
            Err(reason) => return Err(refused(reason)),
        }
    }
    let stored = place.folder.join("keyring.pgp");
    if let Ok(bytes) = everett_input::file::read(&stored, KEYS_BYTES_MAX)
        && let Ok(keys) = Keys::parse(&bytes)
        && keys.of_debian().verify(&signed, now_s).is_ok()
    {
        return Ok(signed.text());
    }
    let bytes = match fetched(place, &signed)? {
        Some(bytes) => bytes,
        None => {
            let reason = why.unwrap_or_else(|| {
                format!("the archive has no {PACKAGE}; put its keys into {}", sources::KEYRINGS[0])
            });
            return Err(refused(reason));
        }
    };
    let bad = |reason| Error::Keys { path: format!("{PACKAGE} of {}", place.base), reason };
    let keys = Keys::parse(&bytes).map_err(bad)?.of_debian();
    if keys.is_empty() {
        return Err(bad("none of them is a key of Debian that Everett knows".to_owned()));
    }
    keys.verify(&signed, now_s).map_err(refused)?;
    let mut file = tempfile::NamedTempFile::new_in(place.folder).map_err(file_error(place.folder))?;
    std::io::Write::write_all(&mut file, &bytes).map_err(file_error(&stored))?;
    cache::persist(file, &stored).map_err(file_error(&stored))?;
    Ok(signed.text())
}

/// Reads keys that the host's configuration names: a file, or the keys themselves in armor.
fn of_host(signed_by: &str) -> Result<Keys, Error> {
    let bad = |path: &str| {
        let path = path.to_owned();
        move |reason| Error::Keys { path, reason }
    };
    if !signed_by.trim_start().starts_with('/') {
        // In a paragraph, each line is indented by a space, and an empty line is a dot.
        let lines = signed_by.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        let text: String =
            lines.map(|line| if line == "." { "\n".to_owned() } else { format!("{line}\n") }).collect();
        return Keys::parse(text.trim_start().as_bytes()).map_err(bad("the host's package sources"));
    }
    let path = signed_by.trim();
    let bytes = everett_input::file::read(Path::new(path), KEYS_BYTES_MAX);
    let bytes = bytes.map_err(|error| bad(path)(error.reason.to_string()))?;
    Keys::parse(&bytes).map_err(bad(path))
}

/// Fetches the archive's own keys by an index that is not verified yet; `None` if the archive has no such package.
fn fetched(place: &Place<'_>, signed: &Signed) -> Result<Option<Vec<u8>>, Error> {
    let Place { folder, fetcher, base, suite, address } = *place;
    let release = Release::parse(&signed.text(), address)?;
    let Some(suite) = Suite::open(folder, fetcher, base, suite, &release)? else { return Ok(None) };
    let found = suite.find(&|name| name == PACKAGE)?;
    let newest = found.iter().max_by(|left, right| compare(&left.package.version, &right.package.version));
    let Some(listed) = newest else { return Ok(None) };
    let address = format!("{base}/{}", listed.file.path);
    if listed.file.bytes > PACKAGE_BYTES_MAX {
        return Err(Error::TooLong { address, most: PACKAGE_BYTES_MAX });
    }
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(file_error(folder))?;
    fetcher.fetch(&address, &listed.file, (file.as_file_mut(), folder), &mut |_| ())?;
    let package = Package::open(file.path())?;
    let tree = |source| crate::debian::Error::Tree { package: PACKAGE.to_owned(), source };
    let mut keys = None;
    let data = package.data().map_err(|error| tree(archive::Error::Read(error)))?;
    archive::each(data, UNPACKED_BYTES_MAX, |entry, _| {
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let end = path.trim_start_matches("./").strip_prefix(IN_PACKAGE);
        // One of the two names can be a link to the other.
        if matches!(end, Some(".gpg" | ".pgp")) && entry.header().entry_type().is_file() {
            let mut bytes = Vec::new();
            entry.take(KEYS_BYTES_MAX).read_to_end(&mut bytes)?;
            keys = Some(bytes);
        }
        Ok::<(), archive::Error>(())
    })
    .map_err(tree)?;
    Ok(keys)
}

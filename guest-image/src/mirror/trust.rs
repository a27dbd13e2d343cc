//! Chooses the keys that may sign a suite's index (`InRelease`): the host's keys, or else Debian's own, identified by
//! their fingerprints.
//!
//! Everett contains only the fingerprints. It takes the keys from the archive's package `debian-archive-keyring`. The
//! package is not verified when Everett reads it, so Everett uses only the keys that have one of the fingerprints.

use std::io::Read as _;
use std::path::Path;

use everett_remote::Access;
use everett_remote::signed::Signed;

use super::error::{Error, file_error};
use super::fetch::Fetcher;
use super::release::Release;
use super::suite::Suite;
use crate::apt::sources;
use crate::archive;
use crate::cache;
use crate::debian::package::Package;
use crate::debian::version::compare;

/// Fingerprints of the primary keys with which Debian signs its archives, from bullseye to trixie. They are in Debian's
/// package `debian-archive-keyring` and at <https://ftp-master.debian.org/keys.html>.
const DEBIAN: [&str; 9] = [
    // Keys of Debian 11: archive, security archive, stable release.
    "1f89983e0081fde018f3cc9673a4f27b8dd47936",
    "ac530d520f2f3269f5e98313a48449044aad5c5d",
    "a4285295fc7b1a81600062a9605c66f00d6c9793",
    // Keys of Debian 12: archive, security archive, stable release.
    "b8b80b5b623eab6ad8775c45b7c5d7d6350947f8",
    "05ab90340c0c5e797f44a8c8254cf3b5aec0a8f0",
    "4d64fec119c2029067d6e791f8d2585b8783d481",
    // Keys of Debian 13: archive, security archive, stable release.
    "04b54c3cdca79751b16bc6b5225629df75b188bd",
    "5e04a1e3223a19a20706e20f9904613d4cce68c6",
    "41587f7db8c774bccf131416762f67a0b2c39de4",
];

/// Package with the keys of Debian's archives.
const PACKAGE: &str = "debian-archive-keyring";
/// Path of the keys in the package, without its ending. The ending is `.gpg`, or `.pgp` since Debian 13.
const IN_PACKAGE: &str = "usr/share/keyrings/debian-archive-keyring";

/// Maximum length of the package, in bytes. Debian's package has 170 KB.
const PACKAGE_BYTES_MAX: u64 = 8 << 20;
/// Maximum length of the package's unpacked content, in bytes.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of a file with keys, in bytes. Debian's file has 56 KB.
const KEYS_BYTES_MAX: u64 = 4 << 20;

/// An index that is not verified yet, with the settings to fetch keys for it.
pub(super) struct IndexLocation<'p> {
    /// Path of the state folder.
    pub(super) folder: &'p Path,
    pub(super) fetcher: &'p Fetcher<'p>,
    /// Base address of the archive.
    pub(super) base: &'p str,
    /// Name of the suite.
    pub(super) suite: &'p str,
    /// Address of the index.
    pub(super) address: &'p str,
}

/// Verifies the signature of an index and returns its text. `signed_by` is the value of `Signed-By` in the apt source
/// of the archive: a path of a file with keys, or the keys themselves.
pub(super) fn verify(
    place: &IndexLocation<'_>,
    signed_by: Option<&str>,
    bytes: &[u8],
    now_s: u64,
) -> Result<String, Error> {
    let refused = |reason| Error::Signature { address: place.address.to_owned(), reason };
    let access = place.fetcher.access;
    let signed = access.signed(bytes).map_err(refused)?;
    let mut why = None;
    if let Some(signed_by) = signed_by {
        match signed.verify(&of_host(access, signed_by)?, None, now_s) {
            Ok(()) => return Ok(signed.text()),
            // The host's own copy of Debian's keys may be too old, so Everett also tries the archive's copy.
            Err(reason) if sources::is_keyring(signed_by) => why = Some(reason),
            Err(reason) => return Err(refused(reason)),
        }
    }
    let stored = place.folder.join("keyring.pgp");
    if let Ok(bytes) = everett_input::file::read(&stored, KEYS_BYTES_MAX)
        && signed.verify(&bytes, Some(&DEBIAN), now_s).is_ok()
    {
        return Ok(signed.text());
    }
    let bytes = match fetched(place, signed.as_ref())? {
        Some(bytes) => bytes,
        None => {
            let reason = why.unwrap_or_else(|| {
                format!("the archive has no {PACKAGE}; put its keys into {}", sources::KEYRINGS[0])
            });
            return Err(refused(reason));
        }
    };
    let bad = |reason| Error::Keys { path: format!("{PACKAGE} of {}", place.base), reason };
    if access.count_certificates(&bytes, Some(&DEBIAN)).map_err(bad)? == 0 {
        return Err(bad("none of them is a key of Debian that Everett knows".to_owned()));
    }
    signed.verify(&bytes, Some(&DEBIAN), now_s).map_err(refused)?;
    let mut file = tempfile::NamedTempFile::new_in(place.folder).map_err(file_error(place.folder))?;
    std::io::Write::write_all(&mut file, &bytes).map_err(file_error(&stored))?;
    cache::persist(file, &stored).map_err(file_error(&stored))?;
    Ok(signed.text())
}

/// Returns the keys that the host's configuration gives: the content of a file, or armored keys in the text itself.
fn of_host(access: &dyn Access, signed_by: &str) -> Result<Vec<u8>, Error> {
    let bad = |path: &str| {
        let path = path.to_owned();
        move |reason| Error::Keys { path, reason }
    };
    let (path, bytes) = if signed_by.trim_start().starts_with('/') {
        let path = signed_by.trim();
        let bytes = everett_input::file::read(Path::new(path), KEYS_BYTES_MAX);
        (path, bytes.map_err(|error| bad(path)(error.reason.to_string()))?)
    } else {
        // In the format deb822(5), each line of the value is indented by a space, and a dot stands for an empty line.
        let lines = signed_by.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        let text: String =
            lines.map(|line| if line == "." { "\n".to_owned() } else { format!("{line}\n") }).collect();
        ("the host's package sources", text.trim_start().as_bytes().to_owned())
    };
    access.count_certificates(&bytes, None).map_err(bad(path))?;
    Ok(bytes)
}

/// Fetches the archive's own keys. Uses the index before it is verified; the caller accepts only keys with known
/// fingerprints. `None` if the archive has no package of keys, or the package has no file with keys.
fn fetched(place: &IndexLocation<'_>, signed: &dyn Signed) -> Result<Option<Vec<u8>>, Error> {
    let IndexLocation { folder, fetcher, base, suite, address } = *place;
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
        // The file with one ending may be a link to the file with the other ending, so links are skipped.
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

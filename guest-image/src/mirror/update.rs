//! Updates a suite: downloads and checks its index (the signed file `InRelease`), and then its list of packages.

use std::fs;
use std::path::Path;

use super::error::{Error, file_error};
use super::fetch::Fetcher;
use super::release::Release;
use super::suite::Suite;
use super::trust;
use crate::apt::sources::Source;

/// Maximum length of an index, in bytes. Debian's indexes have up to 240 KB.
const RELEASE_BYTES_MAX: u64 = 1 << 20;
/// Maximum length of the file that keeps an index's date, in bytes.
const DATE_BYTES_MAX: u64 = 64;

/// Start of the addresses of Debian's mirrors. They serve http and https.
const DEBIAN: &str = "http://deb.debian.org/";
const DEBIAN_HTTPS: &str = "https://deb.debian.org/";

/// Fetches a suite's index. Then fetches the suite's list of packages, unless the state folder `folder` already has the
/// list. Returns `None` if the index names no list for amd64.
pub(super) fn update(
    folder: &Path,
    fetcher: &Fetcher<'_>,
    source: &Source,
    named: &str,
    now_s: u64,
) -> Result<Option<Suite>, Error> {
    let base = base(&source.uri, fetcher)?;
    let address = format!("{base}/dists/{named}/InRelease");
    let bytes = fetcher.read(&address, RELEASE_BYTES_MAX)?;
    let place = trust::IndexLocation { folder, fetcher, base: &base, suite: named, address: &address };
    let text = trust::verify(&place, source.signed_by.as_deref(), &bytes, now_s)?;
    let release = Release::parse(&text, &address)?;
    release.check(named, &address, now_s)?;

    let name = blake3::hash(address.as_bytes()).to_hex();
    let seen = folder.join(format!("{}.date", &name.as_str()[..16]));
    let older =
        everett_input::file::read_text(&seen, DATE_BYTES_MAX).ok().and_then(|text| text.trim().parse().ok());
    if older.is_some_and(|older: u64| release.date_s < older) {
        return Err(Error::Older { address, date: release.date().to_owned() });
    }
    let suite = Suite::open(folder, fetcher, &base, named, &release)?;
    fs::write(&seen, release.date_s.to_string()).map_err(file_error(&seen))?;
    Ok(suite)
}

/// Returns the base address of an archive, without a slash at its end. Behind a proxy, Everett uses https for Debian's
/// own mirrors. The proxy then needs to support only the method `CONNECT`, as `docs/guide.md` says.
pub(super) fn base(uri: &str, fetcher: &Fetcher<'_>) -> Result<String, Error> {
    let uri = uri.trim_end_matches('/');
    if !["http://", "https://", "file:/"].iter().any(|scheme| uri.starts_with(scheme)) {
        return Err(Error::Scheme(uri.to_owned()));
    }
    match uri.strip_prefix(DEBIAN) {
        Some(rest) if fetcher.access.is_proxied(uri) => Ok(format!("{DEBIAN_HTTPS}{rest}")),
        _ => Ok(uri.to_owned()),
    }
}

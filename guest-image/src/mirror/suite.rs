//! Keeps the list of a suite's packages in Everett's state folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Error, file_error};
use super::fetch::Fetcher;
use super::list::{self, Listed};
use super::release::{PackageList, Release};
use crate::cache;

/// Maximum length of a list's file, in bytes. Debian's lists have up to 11 MB, compressed.
const PACKED_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of a decompressed list, in bytes. Debian's lists have up to 65 MB.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// A suite whose list is in the state folder.
pub(super) struct Suite {
    /// Base address of the archive.
    pub(super) base: String,
    list: PackageList,
    /// Path of the list in the state folder.
    path: PathBuf,
}

impl Suite {
    /// Fetches the list of packages that a suite's index names, unless the state folder already has the list. `None` if
    /// the index names no list for amd64.
    pub(super) fn open(
        folder: &Path,
        fetcher: &Fetcher<'_>,
        base: &str,
        named: &str,
        release: &Release,
    ) -> Result<Option<Suite>, Error> {
        let Some(list) = release.packages() else { return Ok(None) };
        let dists = format!("{base}/dists/{named}");
        let address = format!("{dists}/{}", list.by_hash.as_deref().unwrap_or(&list.file.path));
        for (bytes, most) in [(list.file.bytes, PACKED_BYTES_MAX), (list.unpacked_bytes, LIST_BYTES_MAX)] {
            if bytes > most {
                return Err(Error::TooLong { address, most });
            }
        }
        let end = list.file.path.rsplit_once('.').map_or("plain", |(_, end)| end);
        let path = folder.join(format!("{}.{end}", list.file.sha256));
        if cache::sha256_of(&path).ok().as_ref() != Some(&list.file.sha256) {
            let mut file = tempfile::NamedTempFile::new_in(folder).map_err(file_error(folder))?;
            fetcher.fetch(&address, &list.file, (file.as_file_mut(), folder), &mut |_| ())?;
            file.as_file().sync_all().map_err(file_error(folder))?;
            cache::persist(file, &path).map_err(file_error(&path))?;
        }
        Ok(Some(Suite { base: base.to_owned(), list, path }))
    }

    /// Returns the packages whose names `wants` accepts.
    pub(super) fn find(&self, wants: &dyn Fn(&str) -> bool) -> Result<Vec<Listed>, Error> {
        let format = |error: std::io::Error| Error::Format {
            address: format!("{}/{}", self.base, self.list.file.path),
            problem: error.to_string(),
        };
        list::read(&self.path, self.list.unpacked_bytes, wants).map_err(format)
    }

    /// Removes all lists from the folder except those of `suites`.
    pub(super) fn sweep(folder: &Path, suites: &[Suite]) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_list =
                path.extension().is_some_and(|end| ["xz", "gz", "plain"].iter().any(|one| end == *one));
            if is_list && suites.iter().all(|suite| suite.path != path) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

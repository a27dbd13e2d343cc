//! The cache of downloaded and built files. The key of a file is a digest of everything from which the file was made.
//!
//! An entry is a file, with a record beside it that contains the file's length and BLAKE3. Everett uses an entry only
//! if the file matches the record. If the file was truncated or altered, Everett makes the entry again. Everett writes
//! a file under a temporary name, flushes it to the disk and renames it. A crash therefore leaves either no file or a
//! complete file, and several processes may build at once. [`usage`] notes which worlds use which files and folders of
//! the cache, so that unused ones can be removed.

pub mod usage;

use everett_input::file::folder_of;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Environment variable with the path of the cache's folder.
pub const VARIABLE: &str = "EVERETT_CACHE";

/// Reason why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// None of the environment variables gives a location for the cache.
    #[error("there is no place for a cache: set {VARIABLE}, XDG_CACHE_HOME or HOME")]
    NoPlace,
    /// The disk is full, or almost full.
    #[error("no space left in {path}; Everett leaves {} MiB of the disk free", crate::space::RESERVE_BYTES >> 20)]
    NoSpace {
        /// Path on the full disk.
        path: String,
    },
    /// The content of a file does not match the digest under which the file is stored.
    #[error("the file {expected} has another content: its BLAKE3 is {found}")]
    Content {
        /// Expected BLAKE3 in hexadecimal.
        expected: String,
        /// BLAKE3 of the content.
        found: String,
    },
    /// A file cannot be read or written.
    #[error("cannot use the cache at {path}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn of(path: &Path, source: io::Error) -> Self {
        let path = path.display().to_string();
        if source.kind() == io::ErrorKind::StorageFull {
            Error::NoSpace { path }
        } else {
            Error::File { path, source }
        }
    }
}

/// Key of an entry: a digest of all inputs that can change the entry's bytes.
#[derive(Debug, Clone)]
pub struct Key(blake3::Hasher);

impl Key {
    /// Starts a key for one kind of entry. The version of the code that makes the entry must be an input, too.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Key(blake3::Hasher::new()).with(kind)
    }

    /// Adds an input. The input's length is hashed, too, so that two adjacent inputs cannot be mistaken for one.
    #[must_use]
    pub fn with(mut self, input: impl AsRef<[u8]>) -> Self {
        let input = input.as_ref();
        self.0.update(&(input.len() as u64).to_le_bytes());
        self.0.update(input);
        self
    }

    fn hex(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// A file of the cache that matches its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// Path of the file. Never write to the file.
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 of the content, in hexadecimal.
    pub blake3: String,
}

/// Content of the record beside an entry.
#[derive(Serialize, Deserialize)]
struct Record {
    bytes: u64,
    blake3: String,
}

/// A cache: a folder of entries, packages and temporary files.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Opens the cache in this folder, and creates the folder if it does not exist. If this process may not write to
    /// the cache, the process can still read it.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        for part in ["entries", "packages", "temporary", "apt", "uses"] {
            let path = folder.join(part);
            match fs::create_dir_all(&path) {
                Err(error) if usage::is_refusal(&error) && folder.is_dir() => {}
                result => result.map_err(|source| Error::of(&path, source))?,
            }
        }
        // Commands that run in other folders get paths within the cache, so the paths must be absolute.
        let folder = folder.canonicalize().map_err(|source| Error::of(folder, source))?;
        Ok(Cache { folder })
    }

    /// Opens the user's cache: `$EVERETT_CACHE`, else `everett` in `$XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// Returns an error if none of these variables is set, or if the folder cannot be created.
    pub fn of_user() -> Result<Self, Error> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = variable(VARIABLE)
            .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("everett")))
            .or_else(|| variable("HOME").map(|folder| folder.join(".cache/everett")))
            .ok_or(Error::NoPlace)?;
        Cache::open(&folder)
    }

    /// Returns the path of the cache.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder for temporary files. The folder is on the same filesystem as the entries.
    #[must_use]
    pub fn temporary(&self) -> PathBuf {
        self.folder.join("temporary")
    }

    /// Returns the folder of packages. The SHA-256 of a package is its file's name.
    #[must_use]
    pub fn packages(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// Returns the entry for this key if it exists and is intact.
    #[must_use]
    pub fn get(&self, name: &str, key: &Key) -> Option<CacheEntry> {
        let (path, record) = self.paths(name, key);
        let record: Record = serde_json::from_slice(&fs::read(record).ok()?).ok()?;
        if fs::metadata(&path).ok()?.len() != record.bytes {
            return None;
        }
        let (bytes, blake3) = digest(&mut File::open(&path).ok()?).ok()?;
        if bytes != record.bytes || blake3 != record.blake3 {
            return None;
        }
        usage::touch(&path);
        Some(CacheEntry { path, bytes, blake3 })
    }

    /// Makes the entry for this key, and replaces an existing entry. `fill` writes the content.
    ///
    /// # Errors
    /// Returns an error if `fill` fails or the cache cannot be written.
    pub fn put<E: From<Error>>(
        &self,
        name: &str,
        key: &Key,
        fill: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<CacheEntry, E> {
        let (path, record) = self.paths(name, key);
        let failed = |source: io::Error| Error::of(&path, source);
        let mut file = self.temporary_file()?;
        fill(file.as_file_mut())?;
        let (bytes, blake3) = finished(file.as_file_mut()).map_err(failed)?;
        let mut beside = self.temporary_file()?;
        let text = serde_json::to_vec(&Record { bytes, blake3: blake3.clone() }).map_err(io::Error::other);
        beside.write_all(&text.map_err(failed)?).map_err(failed)?;
        beside.as_file().sync_all().map_err(failed)?;
        // After a crash between the two renames, the old record does not match the new file, so Everett makes the entry
        // again.
        persist(file, &path).map_err(failed)?;
        persist(beside, &record).map_err(failed)?;
        Ok(CacheEntry { path, bytes, blake3 })
    }

    /// Returns the entry for this key. If it is missing or damaged, `fill` makes it.
    ///
    /// # Errors
    /// Returns an error if `fill` fails or the cache cannot be written.
    pub fn get_or_put<E: From<Error>>(
        &self,
        name: &str,
        key: &Key,
        fill: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<CacheEntry, E> {
        match self.get(name, key) {
            Some(entry) => Ok(entry),
            None => self.put(name, key, fill),
        }
    }

    /// Returns the intact entry with this content, if there is one. `blake3` is the content's BLAKE3 in hexadecimal.
    #[must_use]
    pub fn content(&self, blake3: &str) -> Option<CacheEntry> {
        self.get(CONTENT, &content_key(blake3)).filter(|entry| entry.blake3 == blake3)
    }

    /// Stores a content under its BLAKE3, or finds the entry that already has the content. Entries that Everett makes
    /// from inputs have keys of other kinds, so content from outside never replaces one of them.
    ///
    /// # Errors
    /// Returns an error if the content's BLAKE3 is not `blake3`, or if the content cannot be read or written.
    pub fn put_content(&self, blake3: &str, content: &mut dyn Read) -> Result<CacheEntry, Error> {
        if let Some(entry) = self.content(blake3) {
            return Ok(entry);
        }
        self.put(CONTENT, &content_key(blake3), |file| {
            let found = copy_sparse(content, file).map_err(|source| Error::of(&self.temporary(), source))?;
            let expected = blake3.to_owned();
            if found == expected { Ok(()) } else { Err(Error::Content { expected, found }) }
        })
    }

    /// Creates a temporary file on the same filesystem as the entries.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn temporary_file(&self) -> Result<NamedTempFile, Error> {
        let folder = self.temporary();
        NamedTempFile::new_in(&folder).map_err(|source| Error::of(&folder, source))
    }

    fn paths(&self, name: &str, key: &Key) -> (PathBuf, PathBuf) {
        let entries = self.folder.join("entries");
        let stem = format!("{}-{name}", key.hex());
        (entries.join(&stem), entries.join(format!("{stem}.json")))
    }
}

/// Kind of the entries that are stored under the BLAKE3 of their content.
const CONTENT: &str = "content";

fn content_key(blake3: &str) -> Key {
    Key::new(CONTENT).with(blake3)
}

/// Length in bytes of the pieces in which [`copy_sparse`] copies. A piece of zeros becomes a hole.
const PIECE_BYTES: usize = 64 << 10;

/// Copies to a file, with holes in place of zeros. Returns the content's BLAKE3 in hexadecimal.
pub fn copy_sparse(from: &mut dyn Read, file: &mut File) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    loop {
        piece.clear();
        if (&mut *from).take(PIECE_BYTES as u64).read_to_end(&mut piece)? == 0 {
            break;
        }
        hasher.update(&piece);
        if piece.iter().all(|byte| *byte == 0) {
            // The cast is exact: a piece has at most PIECE_BYTES.
            file.seek(SeekFrom::Current(piece.len() as i64))?;
        } else {
            file.write_all(&piece)?;
        }
    }
    file.set_len(hasher.count())?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Flushes a written file to the disk. Returns the file's length in bytes and its BLAKE3.
fn finished(file: &mut File) -> io::Result<(u64, String)> {
    file.flush()?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    digest(file)
}

/// Reads a file from its current position to the end. Returns the number of bytes and their BLAKE3.
pub(crate) fn digest(file: &mut impl Read) -> io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((hasher.count(), hasher.finalize().to_hex().to_string())),
            length => hasher.update(&buffer[..length]),
        };
    }
}

/// Returns the SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// Renames a temporary file to `path`, and flushes the folder so that the new name survives a crash.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(permissions)?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::{Cache, Error, Key};
    use std::fs;
    use std::io::Write as _;

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        (folder, cache)
    }

    /// Makes or finds an entry. Adds 1 to `made` each time the entry is made.
    fn entry(cache: &Cache, made: &mut u32) -> super::CacheEntry {
        let fill = |file: &mut fs::File| {
            *made += 1;
            file.write_all(b"content").map_err(|source| Error::of("test".as_ref(), source))
        };
        cache.get_or_put::<Error>("name", &Key::new("test").with("a"), fill).unwrap()
    }

    #[test]
    fn an_entry_is_made_once() {
        let (_folder, cache) = cache();
        let mut made = 0;
        let first = entry(&cache, &mut made);
        assert_eq!(entry(&cache, &mut made), first);
        assert_eq!((made, first.bytes), (1, 7));
        assert_eq!(fs::read(&first.path).unwrap(), b"content");
        assert_eq!(first.blake3, blake3::hash(b"content").to_hex().to_string());
        assert!(cache.get("name", &Key::new("test").with("b")).is_none());
        assert_eq!(fs::read_dir(cache.temporary()).unwrap().count(), 0);
    }

    #[test]
    fn an_entry_that_is_cut_altered_or_without_its_record_is_made_again() {
        let (_folder, cache) = cache();
        let mut made = 0;
        let path = entry(&cache, &mut made).path;
        let (_, record) = cache.paths("name", &Key::new("test").with("a"));
        let damages: [&dyn Fn(); 7] = [
            &|| fs::write(&path, b"conten").unwrap(),
            &|| fs::write(&path, b"Content").unwrap(),
            &|| fs::write(&path, b"content and more").unwrap(),
            &|| fs::remove_file(&path).unwrap(),
            &|| fs::remove_file(&record).unwrap(),
            &|| fs::write(&record, b"{").unwrap(),
            &|| fs::write(&record, b"{\"bytes\":7,\"blake3\":\"00\"}").unwrap(),
        ];
        for (number, damage) in damages.iter().enumerate() {
            damage();
            let again = entry(&cache, &mut made);
            assert_eq!(made as usize, number + 2, "damage {number} was not noticed");
            assert_eq!(fs::read(&again.path).unwrap(), b"content");
        }
    }

    #[test]
    fn a_failed_entry_leaves_nothing() {
        let (_folder, cache) = cache();
        let key = Key::new("test");
        let result = cache.put::<Error>("name", &key, |_| Err(Error::NoPlace));
        assert!(result.is_err() && cache.get("name", &key).is_none());
        assert_eq!(fs::read_dir(cache.temporary()).unwrap().count(), 0);
    }

    #[test]
    fn a_content_is_stored_under_its_digest_alone() {
        let (_folder, cache) = cache();
        let mut content = vec![7; 100];
        content.resize(3 * super::PIECE_BYTES + 5, 0);
        content.push(7);
        let digest = blake3::hash(&content).to_hex().to_string();
        let entry = cache.put_content(&digest, &mut &content[..]).unwrap();
        assert_eq!(fs::read(&entry.path).unwrap(), content);
        assert_eq!(cache.content(&digest), Some(entry));
        let other = blake3::hash(b"other").to_hex().to_string();
        let error = cache.put_content(&other, &mut &content[..]).unwrap_err();
        assert!(matches!(&error, Error::Content { found, .. } if *found == digest), "{error}");
        assert!(cache.content(&other).is_none());
        assert_eq!(fs::read_dir(cache.temporary()).unwrap().count(), 0);
    }

    /// The file matches its record, but the content's digest is not the digest under which the entry is stored.
    #[test]
    fn another_content_under_a_digest_is_not_found() {
        let (_folder, cache) = cache();
        let digest = |content: &[u8]| blake3::hash(content).to_hex().to_string();
        let wanted = digest(b"wanted");
        let entry = cache.put_content(&wanted, &mut &b"wanted"[..]).unwrap();
        let (_, record) = cache.paths(super::CONTENT, &super::content_key(&wanted));
        let written = fs::read_to_string(&record).unwrap();
        fs::write(&entry.path, b"forged").unwrap();
        fs::write(&record, written.replace(&wanted, &digest(b"forged"))).unwrap();
        assert!(cache.get(super::CONTENT, &super::content_key(&wanted)).is_some(), "the entry is intact");
        assert_eq!(cache.content(&wanted), None);
        let entry = cache.put_content(&wanted, &mut &b"wanted"[..]).unwrap();
        assert_eq!(fs::read(entry.path).unwrap(), b"wanted");
    }

    #[test]
    fn inputs_do_not_run_into_one_another() {
        assert_ne!(Key::new("a").with("bc").hex(), Key::new("a").with("b").with("c").hex());
        assert_ne!(Key::new("ab").hex(), Key::new("a").with("b").hex());
    }
}

//! Tests with forged moment files: every checksum is correct, but the data is invalid.
//!
//! The directory of a moment file is its last part. It lists the chunks (compressed data), states and images.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;

use super::head::Directory;
use super::*;
use crate::file::decompress;
use crate::page::PageBytes;

/// A moment file split into its parts, so that a test can change and reassemble them.
#[derive(Clone)]
struct Forged {
    header: MomentHeader,
    chunks: Vec<u8>,
    directory: Vec<u8>,
}

impl Forged {
    fn new(folder: &Path) -> Forged {
        let (pool, path) = (Pool::default(), folder.join("moment"));
        let page = |byte: u8| -> PageBytes { [byte; PAGE] };
        let mut parts = MomentParts::default();
        parts.states.insert("a".into(), Arc::from(vec![9; 300]));
        parts.states.insert("b".into(), Arc::from(vec![8; 10]));
        let mut image = PageImage::zero(300);
        [(0, 1), (2, 2), (5, 1), (299, 3)].into_iter().for_each(|(i, byte)| {
            image.set(&pool, i, &page(byte));
        });
        parts.images.insert("memory".into(), image.clone());
        parts.trees.insert("blocks".into(), image.delta().clone());
        parts.trees.insert("more".into(), Tree::new());
        let header = MomentFile::write(&path, &MomentInfo::default(), &parts).unwrap();
        let bytes = fs::read(&path).unwrap();
        let head = head::read(&path, &bytes).unwrap();
        let (rest, directory) = bytes.split_at(bytes.len() - head.directory.stored as usize);
        let directory = decompress(directory, head.directory.bytes as usize).unwrap();
        Forged { header, chunks: rest[head.bytes as usize..].to_vec(), directory }
    }

    /// Reassembles the file with correct checksums and lengths, and reads it.
    fn read(&self, folder: &Path) -> Result<MomentParts, FileError> {
        let path = folder.join("forged");
        let stored = zstd::bulk::compress(&self.directory, 3).unwrap();
        let hash = *blake3::hash(&stored).as_bytes();
        let directory = Directory { stored: stored.len() as u64, bytes: self.directory.len() as u64, hash };
        let mut header = self.header.clone();
        let head_bytes = head::bytes_for(&header.info.label);
        header.file_bytes = head_bytes + (self.chunks.len() + stored.len()) as u64;
        let head = head::encode(&header, &directory);
        fs::write(&path, [&head, &self.chunks, &stored].map(|part| &part[..]).concat()).unwrap();
        MomentFile::open(&path)?.read(&Pool::default(), |_| None)
    }
}

#[test]
fn a_reassembled_moment_is_read() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Forged::new(folder.path()).read(folder.path()).is_ok());
}

#[test]
fn counts_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let counts: [fn(&mut MomentHeader) -> &mut u64; 3] = [
        |header| &mut header.state_bytes,
        |header| &mut header.delta_pages,
        |header| &mut header.distinct_pages,
    ];
    for count in counts {
        let mut forged = Forged::new(folder.path());
        let right = *count(&mut forged.header);
        for wrong in [0, right - 1, right + 1, right + 64, 1 << 24, (1 << 24) + 1, 1 << 40, u64::MAX] {
            *count(&mut forged.header) = wrong;
            assert!(forged.read(folder.path()).is_err(), "{wrong} instead of {right}");
        }
    }
}

/// Decompression bombs: a directory or chunk that would decompress to too many bytes is refused before memory of that
/// size is allocated.
#[test]
fn bombs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut forged = Forged::new(folder.path());
    forged.directory = vec![0; DIRECTORY_BYTES_MAX as usize + 1];
    let error = forged.read(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("damaged: its head has impossible counts"), "{error}");
    let mut forged = Forged::new(folder.path());
    // A chunk of 1 MiB replaces the first chunk, which has 310 bytes.
    let chunk = zstd::bulk::compress(&vec![0; 1 << 20], 3).unwrap();
    let stored = u32::from_le_bytes(forged.directory[..4].try_into().unwrap()) as usize;
    forged.chunks.splice(..stored, chunk.iter().copied());
    forged.directory[..4].copy_from_slice(&(chunk.len() as u32).to_le_bytes());
    forged.directory[4..36].copy_from_slice(blake3::hash(&chunk).as_bytes());
    let error = forged.read(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("damaged: chunk 0 cannot be decompressed"), "{error}");
}

#[test]
fn parts_beyond_the_limits_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("moment");
    let (info, page) = (MomentInfo::default(), Pool::default().intern(&[1; PAGE]).unwrap());
    let write = |info: &MomentInfo, parts: MomentParts| {
        let error = MomentFile::write(&path, info, &parts).unwrap_err().to_string();
        assert!(!path.exists());
        error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    let label = MomentInfo { label: "x".repeat(5000), ..info.clone() };
    assert_eq!(write(&label, MomentParts::default()), "5000 bytes of label, at most 4096 can be stored");
    let states = BTreeMap::from([("x".repeat(256), Arc::from(&b""[..]))]);
    let error = write(&info, MomentParts { states, ..MomentParts::default() });
    assert_eq!(error, "256 bytes of a part's name, at most 255 can be stored");
    let tree: Tree = [(u64::MAX, crate::tree::Entry::Page(page))].into_iter().collect();
    let error =
        write(&info, MomentParts { trees: BTreeMap::from([("t".into(), tree)]), ..MomentParts::default() });
    assert_eq!(error, "18446744073709551615 pages of an image, at most 4294967296 can be stored");
    let states = (0..=PARTS_MAX).map(|i| (i.to_string(), Arc::from(&b""[..]))).collect();
    let error = write(&info, MomentParts { states, ..MomentParts::default() });
    assert_eq!(error, "4097 parts of a kind, at most 4096 can be stored");
}

/// A changed directory is refused, unless a writer could have made it. Reading it never panics.
#[test]
fn hostile_directories_are_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Forged::new(folder.path());
    // Size of the list of chunks in bytes: two chunks with 36 bytes each. The chunk hashes in the list reveal each
    // change to the list, so the test makes most changes after the list.
    let lines = 2 * 36;
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0u8..4, prop::bool::weighted(0.05));
    let changes = proptest::collection::vec(change, 1..6);
    proptest!(ProptestConfig::with_cases(3000), |(changes in changes)| {
        let mut forged = whole.clone();
        for (index, value, act, anywhere) in changes {
            let from = if anywhere { 0 } else { lines.min(forged.directory.len()) };
            let at = from + index.index(forged.directory.len() - from + 1);
            match act {
                0 => forged.directory.truncate(at),
                1 => forged.directory.insert(at, value),
                _ => if let Some(byte) = forged.directory.get_mut(at) { *byte = value },
            }
        }
        if let Ok(parts) = forged.read(folder.path()) {
            let again = folder.path().join("again");
            let header = MomentFile::write(&again, &forged.header.info, &parts).unwrap();
            prop_assert_eq!(header.distinct_pages, forged.header.distinct_pages);
            prop_assert!(MomentFile::open(&again).is_ok());
        }
    });
}

//! Run directories that somebody made to do harm: memory and time are bounded, and nothing outside of the folder is touched.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::run::frame;
use crate::run::media::{Media, Source};
use crate::run::scan::Scan;

/// A file that repeats some bytes, of which only so many can be read.
#[derive(Debug)]
struct Metered {
    bytes: Vec<u8>,
    length: u64,
    left: AtomicU64,
}

impl Media for Metered {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let most = bytes.len().min((self.length - offset) as usize);
        let enough =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(most as u64));
        enough.map_err(|_| io::Error::other("too much was read"))?;
        let from = offset as usize % self.bytes.len();
        let (mut to, mut part) = (&mut bytes[..most], &self.bytes[from..]);
        while !to.is_empty() {
            let next = to.len().min(part.len());
            to[..next].copy_from_slice(&part[..next]);
            (to, part) = (&mut to[next..], &self.bytes);
        }
        Ok(most)
    }

    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        unreachable!("a scan only reads")
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        unreachable!("a scan only reads")
    }

    fn sync(&self) -> io::Result<()> {
        unreachable!("a scan only reads")
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }
}

/// What a scan says of a file of `length` bytes that repeats `bytes`, of which it can read `most`.
fn scanned(bytes: &[u8], length: u64, most: u64) -> String {
    let file = Metered { bytes: bytes.repeat(1 << 16), length, left: AtomicU64::new(most) };
    let source = Source { file: Arc::new(file), path: "branches.bin".into() };
    match Scan::new(source, length).next() {
        Ok(Ok(frame)) => format!("record {}", frame.number),
        Ok(Err(tail)) => format!("{} records in {} bytes", tail.records, tail.bytes),
        Err(error) => told(&error, File::new("RUN")),
    }
}

/// Places that look like records, and damage that is longer than what a crash leaves.
#[test]
fn the_search_behind_damage_is_bounded() {
    let damaged =
        |said: &str| said.starts_with("branches.bin: record 1 is damaged, which no crash explains: it");
    let most = 2 * limits::SEARCH_BYTES_MAX;
    let magic = scanned(&frame::MAGIC, 1 << 20, most);
    assert!(damaged(&magic), "{magic}");
    // Nothing is searched where there is too much.
    let long = scanned(&[7], limits::SEARCH_BYTES_MAX + 1, 4 << 20);
    assert!(damaged(&long), "{long}");
    let short = scanned(&[7], 1 << 20, most);
    assert_eq!(short, format!("0 records in {} bytes", 1 << 20));
}


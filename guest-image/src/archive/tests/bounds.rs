//! Tests of archives that exceed a bound, or that claim a length above a bound.

use super::super::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTES_BYTES_MAX, ENTRIES_MAX, Error, Mode, RECORDS_BYTES_MAX,
    SPARSE_MAP_BYTES_MAX, SPARSE_MAPS_BYTES_MAX, Store, TARGET_BYTES_MAX, unpack,
};
use crate::tree::{ATTRIBUTE_BYTES, CONTENT_BYTES_MAX, INODES_MAX, NAMES_BYTES_MAX, Spool, Tree};
use everett_input::causes::with_causes;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use tar::{Builder, EntryType, Header};

const TERABYTE: u64 = 1 << 40;

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_path("srv/claim").unwrap();
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    header
}

/// Unpacks an archive, and copies the contents to the spool, a temporary file. Returns the error.
fn spooled(archive: impl Read) -> Error {
    let mut spool = Spool::new(&std::env::temp_dir(), CONTENT_BYTES_MAX).unwrap();
    let store = Store::Spool(&mut spool);
    unpack(archive, &mut Tree::default(), store, Mode::Plain, |path| Some(path.to_vec())).unwrap_err()
}

/// Unpacks an archive whose contents stay in its file. Returns the error.
fn in_place(archive: impl Read) -> Error {
    let mut spool = Spool::new(&std::env::temp_dir(), CONTENT_BYTES_MAX).unwrap();
    let store = Store::InPlace(Arc::new(File::open("/dev/null").unwrap()), &mut spool);
    unpack(archive, &mut Tree::default(), store, Mode::Plain, |path| Some(path.to_vec())).unwrap_err()
}

fn too_long() -> String {
    format!("srv/claim: with this file the archive has more than {CONTENT_BYTES_MAX} bytes, holes included")
}

/// Returns an archive with a sparse file of eight terabytes that is a single hole.
fn sparse() -> Vec<u8> {
    let mut header = header(EntryType::GNUSparse, 0);
    let gnu = header.as_gnu_mut().unwrap();
    let octal = |field: &mut [u8; 12], value: u64| {
        field.copy_from_slice(format!("{value:011o}\0").as_bytes());
    };
    // Eleven octal digits express less than eight GiB, so the size is binary (GNU tar, "Extensions to the archive
    // format").
    let binary = |field: &mut [u8; 12], value: u64| {
        field.fill(0);
        field[0] = 0x80;
        field[4..].copy_from_slice(&value.to_be_bytes());
    };
    binary(&mut gnu.sparse[0].offset, 8 * TERABYTE);
    octal(&mut gnu.sparse[0].numbytes, 0);
    binary(&mut gnu.realsize, 8 * TERABYTE);
    header.set_cksum();
    [header.as_bytes().as_slice(), &[0; 1024]].concat()
}

#[test]
fn a_sparse_file_of_terabytes_is_refused_with_its_name() {
    assert_eq!(with_causes(&spooled(sparse().as_slice())), too_long());
    assert_eq!(in_place(sparse().as_slice()).to_string(), too_long());
}

#[test]
fn contents_are_bounded_before_they_are_read() {
    let claim = header(EntryType::Regular, CONTENT_BYTES_MAX + 1);
    let archive = || claim.as_bytes().as_slice().chain(io::repeat(0).take(1 << 20));
    assert_eq!(with_causes(&spooled(archive())), too_long());
    assert_eq!(in_place(archive()).to_string(), too_long());
    // The bound also holds for the sum of all files.
    let half = header(EntryType::Regular, CONTENT_BYTES_MAX / 2 + 1);
    let skipped = |length| half.as_bytes().as_slice().chain(io::repeat(0).take(length));
    let rounded = (CONTENT_BYTES_MAX / 2 + 1).next_multiple_of(512);
    let error = in_place(skipped(rounded).chain(skipped(0))).to_string();
    assert_eq!(error, too_long());
}

#[test]
fn a_spool_takes_no_more_than_its_bound() {
    let mut spool = Spool::new(&std::env::temp_dir(), 1000).unwrap();
    let archive = || {
        header(EntryType::Regular, 600).as_bytes().to_vec().into_iter().chain([7; 1024]).collect::<Vec<u8>>()
    };
    let mut unpack_archive = |tree: &mut Tree| {
        let bytes = archive();
        unpack(bytes.as_slice(), tree, Store::Spool(&mut spool), Mode::Plain, |path| Some(path.to_vec()))
    };
    let mut tree = Tree::default();
    unpack_archive(&mut tree).unwrap();
    assert_eq!(
        with_causes(&unpack_archive(&mut tree).unwrap_err()),
        "srv/claim: with this file the contents have more than 1000 bytes"
    );
}

#[test]
fn records_of_names_and_attributes_are_bounded() {
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let claim = header(kind, 64 * RECORDS_BYTES_MAX);
        let archive = claim.as_bytes().as_slice().chain(io::repeat(b'x').take(64 * RECORDS_BYTES_MAX));
        let error = spooled(archive.chain(header(EntryType::Regular, 0).as_bytes().as_slice()));
        assert!(matches!(error, Error::Records), "{error}");
    }
}

/// Reader of an endless archive. `make` returns the bytes of the entry with the given number.
struct Endless<F> {
    make: F,
    number: u64,
    bytes: Vec<u8>,
    given: usize,
}

impl<F: Fn(u64) -> Vec<u8>> Read for Endless<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.bytes.len() {
            (self.bytes, self.given) = ((self.make)(self.number), 0);
            self.number += 1;
        }
        let length = buffer.len().min(self.bytes.len() - self.given);
        buffer[..length].copy_from_slice(&self.bytes[self.given..self.given + length]);
        self.given += length;
        Ok(length)
    }
}

fn endless<F: Fn(u64) -> Vec<u8>>(make: F) -> Endless<F> {
    Endless { make, number: 0, bytes: Vec::new(), given: 0 }
}

#[test]
fn entries_are_counted() {
    let entry = header(EntryType::Fifo, 0).as_bytes().to_vec();
    let error = with_causes(&spooled(endless(|_| entry.clone())));
    assert_eq!(error, format!("the archive has more than {ENTRIES_MAX} entries"));
}

#[test]
fn folders_that_an_archive_implies_are_counted() {
    let deep = "/d".repeat(240);
    let entry = |number: u64| {
        let mut builder = Builder::new(Vec::new());
        let mut header = header(EntryType::Fifo, 0);
        builder.append_data(&mut header, format!("f{number}{deep}"), io::empty()).unwrap();
        let mut bytes = builder.into_inner().unwrap();
        bytes.truncate(bytes.len() - 1024);
        bytes
    };
    let error = with_causes(&spooled(endless(entry)));
    assert!(error.ends_with(&format!(": more than {INODES_MAX} files and folders")), "{error}");
}

/// Returns an archive with one file that has these PAX records. The archive's end is missing.
fn file_with(records: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    let records = records.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
    builder.append_pax_extensions(records).unwrap();
    let mut bytes = builder.into_inner().unwrap();
    bytes.truncate(bytes.len() - 1024);
    [bytes.as_slice(), header(EntryType::Regular, 0).as_bytes()].concat()
}

#[test]
fn attributes_are_charged_the_memory_that_they_take() {
    const EACH: usize = 4000;
    let records: Vec<_> =
        (0..EACH).map(|number| (format!("SCHILY.xattr.user.{number}"), Vec::new())).collect();
    let entry = file_with(&records);
    let made = Cell::new(0);
    let error = spooled(endless(|number| {
        made.set(number as usize + 1);
        entry.clone()
    }));
    let expected = format!("with this path, names and attributes have more than {NAMES_BYTES_MAX} bytes");
    assert!(with_causes(&error).ends_with(&expected), "{error}");
    assert!(made.get() <= NAMES_BYTES_MAX / (EACH * ATTRIBUTE_BYTES) + 1, "{} files", made.get());
}

#[test]
fn attributes_beyond_the_kernels_bounds_are_refused() {
    let of = |name: &str| format!("SCHILY.xattr.user.{name}");
    let refused = |records: &[(String, Vec<u8>)]| with_causes(&spooled(file_with(records).as_slice()));
    assert_eq!(
        refused(&[(of(&"n".repeat(ATTRIBUTE_NAME_BYTES_MAX)), vec![])]),
        "srv/claim: an extended attribute with a name of more than 255 bytes"
    );
    assert_eq!(
        refused(&[(of("a"), vec![0; ATTRIBUTES_BYTES_MAX + 1])]),
        "srv/claim: an extended attribute of more than 65536 bytes"
    );
    let many: Vec<_> = (0..700).map(|number| (of(&format!("{number:0>100}")), vec![])).collect();
    assert_eq!(refused(&many), "srv/claim: a list of extended attributes of more than 65536 bytes");
}

#[test]
fn targets_beyond_the_kernels_bound_are_refused() {
    for kind in [EntryType::Symlink, EntryType::Link] {
        let mut builder = Builder::new(Vec::new());
        let target = "a/".repeat(TARGET_BYTES_MAX / 2 + 1);
        builder.append_link(&mut header(kind, 0), "srv/claim", target).unwrap();
        let error = with_causes(&spooled(builder.into_inner().unwrap().as_slice()));
        assert_eq!(error, "srv/claim: a link whose target has more than 4095 bytes");
    }
}

/// Returns an archive with an empty sparse file. `blocks` blocks after the header contain the file's map, and all
/// pieces are empty.
fn in_pieces(blocks: usize) -> Vec<u8> {
    let mut header = header(EntryType::GNUSparse, 0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.realsize.copy_from_slice(b"00000000000\0");
    gnu.isextended[0] = u8::from(blocks > 0);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    for number in 1..=blocks {
        let mut block = b"00000000000\0".repeat(42);
        block.push(u8::from(number < blocks));
        block.resize(512, 0);
        bytes.extend(block);
    }
    bytes
}

#[test]
fn maps_of_sparse_files_are_bounded() {
    let most = SPARSE_MAP_BYTES_MAX as usize / 512;
    let refused = |bytes: u64| {
        format!(
            "srv/claim: with this file, the maps of sparse files have more than {bytes} bytes; pack it without --sparse"
        )
    };
    assert_eq!(with_causes(&spooled(in_pieces(most + 1).as_slice())), refused(SPARSE_MAP_BYTES_MAX));
    let entry = in_pieces(most);
    let files = Cell::new(0);
    let error = spooled(endless(|number| {
        files.set(number);
        entry.clone()
    }));
    assert_eq!(with_causes(&error), refused(SPARSE_MAPS_BYTES_MAX));
    assert_eq!(files.get(), SPARSE_MAPS_BYTES_MAX / SPARSE_MAP_BYTES_MAX);
}

#[test]
fn sparse_files_of_pax_are_unpacked_and_bounded() {
    let archive = |size: &str, map: &str| {
        let mut builder = Builder::new(Vec::new());
        let records = [("GNU.sparse.size", size), ("GNU.sparse.map", map), ("GNU.sparse.name", "srv/real")];
        builder.append_pax_extensions(records.map(|(key, value)| (key, value.as_bytes()))).unwrap();
        let mut header = header(EntryType::Regular, 2);
        builder.append_data(&mut header, "GNUSparseFile.0/x", b"ab".as_slice()).unwrap();
        builder.into_inner().unwrap()
    };
    let mut spool = Spool::new(&std::env::temp_dir(), CONTENT_BYTES_MAX).unwrap();
    let mut tree = Tree::default();
    let keep = |path: &[u8]| Some(path.to_vec());
    unpack(archive("5", "2,2").as_slice(), &mut tree, Store::Spool(&mut spool), Mode::Plain, keep).unwrap();
    spool.flush().unwrap();
    assert_eq!(tree.file(b"srv/real").unwrap().read(10).unwrap(), b"\0\0ab\0");
    assert!(tree.find(b"GNUSparseFile.0").is_none());
    let error = with_causes(&spooled(archive(&(8 * TERABYTE).to_string(), "2,2").as_slice()));
    assert!(error.starts_with("GNUSparseFile.0/x: with this file the archive has more than"), "{error}");
    let error = with_causes(&spooled(archive("3", "2,2").as_slice()));
    assert_eq!(error, "GNUSparseFile.0/x: the map of a sparse file is damaged");
}

//! Tests with malicious run directories. Memory and time are bounded, and no file outside the folder is touched.

use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::coverage::Numbers;
use crate::coverage::limits::STATE_BYTES_MAX;
use crate::run::frame;
use crate::run::index::{Index, Undecoded};
use crate::run::media::{Media, Source};
use crate::run::scan::Scan;
use crate::run::stored;
use crate::run::string_table::{NewPoint, StringRef};

/// File that repeats `bytes`. Reads fail after `left` bytes were read.
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

/// Scans a file of `length` bytes that repeats `bytes`, and returns the result as text. The file allows reads of at
/// most `most` bytes in total.
fn scanned(bytes: &[u8], length: u64, most: u64) -> String {
    let file = Metered { bytes: bytes.repeat(1 << 16), length, left: AtomicU64::new(most) };
    let source = Source { file: Arc::new(file), path: "branches.bin".into() };
    match Scan::new(source, length).next() {
        Ok(Ok(frame)) => format!("record {}", frame.number),
        Ok(Err(tail)) => format!("{} records in {} bytes", tail.records, tail.bytes),
        Err(error) => message(&error, File::new("RUN")),
    }
}

/// After a damaged record, the reader searches the rest of the file (the tail) for whole records. The search reads a
/// bounded number of bytes, even if many positions look like records, or if the tail is longer than a crash can leave.
#[test]
fn the_search_after_damage_is_bounded() {
    let damaged = |said: &str| {
        said.starts_with("branches.bin: record 1 is damaged, and a crash cannot have done this: it")
    };
    let most = 2 * limits::SEARCH_BYTES_MAX;
    let magic = scanned(&frame::MAGIC, 1 << 20, most);
    assert!(damaged(&magic), "{magic}");
    // A tail that is too long is not searched.
    let long = scanned(&[7], limits::SEARCH_BYTES_MAX + 1, 4 << 20);
    assert!(damaged(&long), "{long}");
    let short = scanned(&[7], 1 << 20, most);
    assert_eq!(short, format!("0 records in {} bytes", 1 << 20));
}

/// Returns a file with a single branch record, which stores the texts of `new_points`. The record refers to the
/// coverage points of its branch by `numbers`. If `numbers` is `None`, the record keeps the points of a valid record.
fn with_points(new_points: Vec<NewPoint>, numbers: Option<Numbers>) -> Vec<u8> {
    let record = &row(1)[0];
    let mut input = MergeInput::new(record.clone(), &Dictionary::default()).unwrap();
    input.numbers = numbers.unwrap_or(input.numbers);
    frame::encode(0, 1, 0, &stored::encode(record, &input, new_points).unwrap()).unwrap()
}

/// A file stores each text of a coverage point once, and points refer to the text by its number. In memory, each point
/// has its own copy of the text, so the length of a text is bounded.
#[test]
fn texts_of_points_are_bounded() {
    let run = written(&[]);
    let read = |file: Vec<u8>| {
        fs::write(branches(run.path()), file).unwrap();
        Reading::open_merged(run.path()).map(drop).map_err(|error| message(&error, run.path()))
    };
    let new_point = |bytes: usize| vec![NewPoint::State(StringRef::New("x".repeat(bytes)))];
    assert_eq!(read(with_points(new_point(STATE_BYTES_MAX), None)), Ok(()));
    let error = read(with_points(new_point(STATE_BYTES_MAX + 1), None)).unwrap_err();
    let long = "record 1 is damaged, and a crash cannot have done this: it has a text of a point that is longer \
                than 1024 bytes";
    assert!(error.contains(long), "{error}");
    // A point without a number is stored with its full texts.
    let unnumbered = |bytes: usize| {
        let point = state(&"x".repeat(bytes));
        Some(Numbers::of_unnumbered(point))
    };
    assert_eq!(read(with_points(Vec::new(), unnumbered(STATE_BYTES_MAX))), Ok(()));
    let error = read(with_points(Vec::new(), unnumbered(STATE_BYTES_MAX + 1))).unwrap_err();
    assert!(error.contains(long), "{error}");
    // The writer also refuses a text that is too long.
    let record =
        Record { delta: delta(&[(state(&"x".repeat(STATE_BYTES_MAX + 1)), 1)]), ..row(1)[0].clone() };
    fs::write(branches(run.path()), "").unwrap();
    let error = message(&resumed(run.path()).append(record).unwrap_err(), run.path());
    assert!(error.starts_with("the record of choice 0 cannot be written: a text of point "), "{error}");
    assert!(error.ends_with(" is longer than 1024 bytes"), "{error}");
}

/// A hit (violation) is named by its property and its signature, a text that is equal for equal violations. If these
/// texts are too long, the index of a run's records and the writer of the file shorten them to the same length, so a
/// hit has the same name in the index and in the file.
#[test]
fn names_of_findings_are_bounded() {
    let long = "x".repeat(limits::SIGNATURE_BYTES_MAX * 4);
    let records = row(2).into_iter().map(|record| Record { hits: vec![hit(&long, &long, 1)], ..record });
    let records: Vec<Record> = records.collect();
    let mut input = MergeInput::new(records[0].clone(), &Dictionary::default()).unwrap();
    input.record.hits.clone_from(&records[0].hits);
    let new_points = vec![NewPoint::State(StringRef::New("s0".to_owned()))];
    let text = stored::encode(&records[0], &input, new_points).unwrap();
    let run = written(&[]);
    fs::write(branches(run.path()), frame::encode(0, 1, 0, &text).unwrap()).unwrap();
    let mut journal = resumed(run.path());
    journal.append(records[1].clone()).unwrap();
    let second = Reading::open(run.path()).unwrap().get(1).unwrap().unwrap();
    assert_eq!(
        second.hits[0].evidence,
        Evidence::default(),
        "the index finds the first hit by its cut names"
    );
}

/// A reader merges records in the order in which the explorer chose the branches. The record of the first branch is the
/// last one in the file, so all other records wait for it. The records are long, so only few
/// of them fit into memory.
#[test]
fn long_records_in_any_order_are_merged() {
    let text = "x".repeat(limits::TEXT_BYTES_MAX);
    let hits = (0..limits::HITS_MAX).map(|n| Hit { text: text.clone(), ..hit("p", &n.to_string(), 1) });
    let hits: Vec<Hit> = hits.collect();
    let records: Vec<Record> =
        row(16).into_iter().map(|record| Record { hits: hits.clone(), ..record }).collect();
    let run = written(&[]);
    let mut journal = resumed(run.path());
    append(&mut journal, &records[1..]);
    append(&mut journal, &records[..1]);
    drop(journal);
    let (reading, merged) = Reading::open_merged(run.path()).unwrap();
    let length = fs::metadata(branches(run.path())).unwrap().len();
    assert!((reading.len(), merged.branches()) == (16, 16) && length > 6 << 20, "{length} bytes");
    let mut plain = Merged::default();
    for record in records {
        plain.merge(record).unwrap();
    }
    assert_eq!(merged.digest(), plain.digest());
}

#[test]
fn a_visitor_that_breaks_ends_the_reading() {
    let run = written(&row(300));
    let file = fs::read(branches(run.path())).unwrap();
    for most in [1, 7, 299] {
        let source =
            Source { file: Arc::new(fs::File::open(branches(run.path())).unwrap()), path: "b".into() };
        let mut seen = 0;
        let mut visitor = |_: &Dictionary, _: Undecoded, _: &[u8]| {
            seen += 1;
            if seen < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let (index, tail) = Index::of(source, file.len() as u64, SCHEMA_VERSION, Some(&mut visitor)).unwrap();
        assert_eq!((seen, index.len(), tail.records, tail.damage), (most, most, 0, None));
    }
}

/// Only regular files are accepted. A link would lead out of the folder, and opening a FIFO would wait for its other
/// end.
#[test]
fn files_of_a_run_are_regular_ones() {
    let outside = tempdir().unwrap();
    let precious = outside.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    let fifo = outside.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // Keep the other end of the FIFO open. If the check were missing, the test would then fail instead of hanging.
    let _end = fs::File::options().read(true).write(true).open(&fifo).unwrap();
    for (name, other, what) in [
        (names::BRANCHES, &precious, "this is a symbolic link, and a regular file is needed"),
        ("lock", &precious, "this is a symbolic link, and a regular file is needed"),
        (names::FINDINGS, &outside.path().to_owned(), "this is not a folder, and a folder is needed"),
    ] {
        for is_run in [true, false] {
            let run = written(&row(2));
            let place = run.path().join(name);
            if place.is_dir() { fs::remove_dir(&place) } else { fs::remove_file(&place) }.unwrap();
            symlink(other, &place).unwrap();
            if !is_run {
                fs::remove_file(run.path().join(names::HEADER)).unwrap();
                fs::write(branches(run.path()), "").ok().filter(|()| name != names::BRANCHES);
                fs::write(&precious, "precious").unwrap();
            }
            let opened = match is_run {
                true => Journal::resume(run.path(), &header()),
                false => Journal::create(run.path(), &header()),
            };
            assert_eq!(message(&opened.unwrap_err(), run.path()), format!("cannot open {name}: {what}"));
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        }
    }
    for name in [names::BRANCHES, "lock"] {
        let run = written(&row(2));
        let place = run.path().join(name);
        fs::remove_file(&place).unwrap();
        fs::hard_link(&fifo, &place).unwrap();
        let error = message(&Journal::resume(run.path(), &header()).unwrap_err(), run.path());
        assert_eq!(error, format!("cannot open {name}: this is a FIFO, and a regular file is needed"));
    }
}

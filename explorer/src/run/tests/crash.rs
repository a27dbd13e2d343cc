//! Tests of run directories whose writers were killed, or whose files were damaged.

use super::*;
use crate::run::frame::{self, HEAD_BYTES, Head};

/// Returns the offset of each record in a file, and the offset at which the last record ends.
pub(super) fn places(bytes: &[u8]) -> Vec<usize> {
    let mut places = vec![0];
    while let Some(head) = bytes[*places.last().unwrap()..].first_chunk::<HEAD_BYTES>() {
        let length = Head::parse(head).unwrap().length as usize;
        places.push(places.last().unwrap() + HEAD_BYTES + length);
    }
    places
}

/// If a writer is killed at any byte, the file contains the records that end before that byte. A resumed run then
/// completes the file.
#[test]
fn killed_at_any_byte() {
    let records = row(3);
    let run = written(&records);
    let whole = fs::read(branches(run.path())).unwrap();
    let places = places(&whole);
    for length in 0..=whole.len() {
        fs::write(branches(run.path()), &whole[..length]).unwrap();
        let kept = places.iter().filter(|place| **place > 0 && **place <= length).count();
        assert_eq!(all(run.path()), records[..kept], "{length}");
        assert_eq!(
            fs::metadata(branches(run.path())).unwrap().len(),
            length as u64,
            "a reader changes nothing"
        );
        let mut journal = resumed(run.path());
        assert_eq!(journal.len(), kept as u64, "{length}");
        let cut = journal.cut().map(|cut| (cut.record, cut.more, cut.bytes));
        let behind = (length - places[kept]) as u64;
        assert_eq!(cut, Some((kept as u64 + 1, 0, behind)).filter(|_| behind > 0), "{length}");
        append(&mut journal, &records);
        drop(journal);
        assert_eq!(all(run.path()), records, "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A flipped bit in a durable record (a record that was synced to disk) is an error with the record's position. If
    /// the bit is in a later record, that record and all records after it are cut off, because a crash may have damaged
    /// them.
    #[test]
    fn a_flipped_bit_is_found(at: prop::sample::Index, bit in 0..8u32, synced in 0..5usize) {
        let records = row(5);
        let run = written(&records[..synced]);
        // Resuming the run makes its records durable.
        append(&mut resumed(run.path()), &records[synced..]);
        let mut bytes = fs::read(branches(run.path())).unwrap();
        let places = places(&bytes);
        let at = at.index(bytes.len());
        let record = places.iter().filter(|place| **place <= at).count();
        bytes[at] ^= 1 << bit;
        fs::write(branches(run.path()), &bytes).unwrap();
        match Journal::resume(run.path(), &header()) {
            Err(RunError::Damaged { record: found, offset, .. }) => {
                prop_assert!(record <= synced, "record {record} is reported as damaged, but only {synced} were synced");
                prop_assert_eq!((found, offset), (record as u64, places[record - 1] as u64));
                // The run can be resumed in the way that the error message describes.
                bytes.truncate(offset as usize);
                fs::write(branches(run.path()), &bytes).unwrap();
                prop_assert_eq!(resumed(run.path()).len(), record as u64 - 1);
            }
            Err(other) => prop_assert!(false, "{}", other),
            Ok(journal) => {
                prop_assert!(record > synced, "damage to record {record} is not reported, and {synced} were synced");
                let cut = journal.cut().unwrap();
                prop_assert_eq!((cut.record, cut.more), (record as u64, (records.len() - record) as u64));
                prop_assert_eq!(all(run.path()), &records[..record - 1]);
            }
        }
    }

    /// A file of arbitrary bytes gives whole records, or an error of one line that names the file.
    #[test]
    fn random_files_are_read_or_refused(parts in prop::collection::vec(prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        Just(frame::MAGIC.to_vec()),
        (any::<u64>(), 1..3u32, prop::collection::vec(0..4u8, 0..99))
            .prop_map(|(at, number, text)| frame::encode(at % 40, number, 0, &text).unwrap()),
        prop::collection::vec(0..9u8, 0..99).prop_map(|text| frame::encode(0, 1, 0, &text).unwrap()),
    ], 0..6)) {
        let run = written(&[]);
        fs::write(branches(run.path()), parts.concat()).unwrap();
        let read = Reading::open(run.path()).and_then(|reading| reading.merged(u64::MAX));
        let merged = Reading::open_merged(run.path());
        if let (Ok(read), Ok((_, merged))) = (&read, &merged) {
            prop_assert_eq!(read.digest(), merged.digest());
        }
        for error in [read.map(drop), merged.map(drop)].into_iter().filter_map(Result::err) {
            let error = message(&error, run.path());
            prop_assert!(error.starts_with("branches.bin: record ") && !error.contains('\n'), "{}", error);
        }
    }
}

/// Returns a file whose second record has the content `text` and a valid checksum.
fn with_second(whole: &[u8], text: &[u8]) -> Vec<u8> {
    let places = places(whole);
    let mut bytes = whole[..places[1]].to_vec();
    bytes.extend(frame::encode(places[1] as u64, 2, 0, text).unwrap());
    let third = &whole[places[2] + HEAD_BYTES..places[3]];
    bytes.extend(frame::encode(bytes.len() as u64, 3, 0, third).unwrap());
    bytes
}

#[test]
fn damage_is_reported_with_file_and_record() {
    let run = written(&row(3));
    let whole = fs::read(branches(run.path())).unwrap();
    let places = places(&whole);
    let first = &whole[HEAD_BYTES..places[1]];
    let second = &whole[places[1] + HEAD_BYTES..places[2]];
    let damaged = |what: &str| {
        format!(
            "record 2 is damaged, and a crash cannot have done this: {what}; to resume the run, truncate the file \
             to {} bytes and remove end.json if there is one",
            places[1]
        )
    };
    // The first record with the branch number 1 instead of 0. It introduces a coverage point that the original first
    // record has already introduced.
    let again: Vec<u8> = [&[1][..], &first[1..]].concat();
    for (text, error) in [
        (&[][..], damaged("Hit the end of buffer, expected more data")),
        (first, damaged("it introduces a point that has a number already, or for which no number is left")),
        (&again, damaged("it introduces a point that has a number already, or for which no number is left")),
        (&[1, 1, 1, 0, 9, 0], damaged("it names a text by a number that no earlier text has")),
    ] {
        fs::write(branches(run.path()), with_second(&whole, text)).unwrap();
        let found = Journal::resume(run.path(), &header()).unwrap_err();
        assert_eq!(message(&found, run.path()), format!("branches.bin: {error}"));
        let found = Reading::open(run.path()).unwrap_err();
        assert_eq!(message(&found, run.path()), format!("branches.bin: {error}"));
    }
    // Two records of branch 0: the first byte of a record is the branch's number (`choice`).
    let mut twice = second.to_vec();
    twice[0] = 0;
    fs::write(branches(run.path()), with_second(&whole, &twice)).unwrap();
    let found = Journal::resume(run.path(), &header()).unwrap_err();
    assert_eq!(message(&found, run.path()), "branches.bin: records 1 and 2 are both of choice 0");
    // Some damage is detected only when the whole record is decoded. It is reported when the record is read.
    let mut other = second.to_vec();
    // The trail consists of the bytes 00 and ff. Its length, 2, comes before it.
    let trail = other.windows(4).position(|bytes| bytes == [0, 2, 0, 0xff]).unwrap();
    other[trail + 3] ^= 1;
    fs::write(branches(run.path()), with_second(&whole, &other)).unwrap();
    let reading = Reading::open(run.path()).unwrap();
    assert!(reading.get(0).unwrap().is_some());
    let found = message(&reading.get(1).unwrap_err(), run.path());
    assert_eq!(found, format!("branches.bin: {}", damaged("its digest does not match its contents")));
    assert_eq!(reading.get(2).unwrap().unwrap(), row(3)[2]);
}

//! Tests of run directories (stored results of an exploration) whose exploration has ended. All records of branches are
//! then durable, so a crash cannot have damaged or removed a record.

use super::crash::places;
use super::*;

/// Returns the run directory of an exploration that has ended, with all `records`. Its `end.json` counts only the
/// branches of the first `merged` choices. The explorer makes one choice for each branch: where the branch starts.
fn ended(records: &[Record], merged: u64) -> TempDir {
    let run = written(records);
    let end = Reading::open(run.path()).unwrap().merged(merged).unwrap().end(EndReason::Branches, 1);
    assert_eq!(end.branches, merged);
    resumed(run.path()).finish(&end).unwrap();
    run
}

/// Returns the results of reading a run, of reading and merging it, and of resuming it. Each result is a number of
/// records or branches, or the error.
fn said(run: &File) -> [Result<u64, String>; 3] {
    [
        Reading::open(run).map(|reading| reading.len()),
        Reading::open_merged(run).map(|(_, merged)| merged.branches()),
        Journal::resume(run, &header()).map(|journal| journal.len()),
    ]
    .map(|result| result.map_err(|error| message(&error, run)))
}

/// If a record is damaged or cut off, opening the run gives an error that names the record, and changes nothing. The
/// run can be resumed in the way that the message describes.
#[test]
fn damage_in_a_finished_run_is_an_error() {
    let records = row(40);
    let run = ended(&records, 40);
    let whole = fs::read(branches(run.path())).unwrap();
    let end = fs::read(run.path().join(names::END)).unwrap();
    let places = places(&whole);
    for record in [1, 2, 20, 40] {
        let (begin, next) = (places[record - 1], places[record]);
        let mut flipped = whole.clone();
        flipped[begin + 40] ^= 1;
        let sum = "its checksum does not match its bytes";
        let gone = "it is missing, although the run ended with more records";
        for (bytes, damage) in [
            (flipped, sum),
            (whole[..next - 1].to_vec(), "the file ends within it"),
            (whole[..begin].to_vec(), gone),
        ] {
            fs::write(branches(run.path()), &bytes).unwrap();
            let expected = format!(
                "branches.bin: record {record} is damaged, and a crash cannot have done this: {damage}; to resume the \
                 run, truncate the file to {begin} bytes and remove end.json if there is one"
            );
            assert_eq!(said(run.path()), [(); 3].map(|()| Err(expected.clone())), "{record}");
            assert!(fs::read(branches(run.path())).unwrap() == bytes, "nothing is cut off");
            assert!(fs::read(run.path().join(names::END)).unwrap() == end);
        }
        fs::write(branches(run.path()), &whole[..begin]).unwrap();
        fs::remove_file(run.path().join(names::END)).unwrap();
        let mut journal = resumed(run.path());
        assert_eq!((journal.len(), journal.cut()), (record as u64 - 1, None));
        append(&mut journal, &records);
        drop(journal);
        assert_eq!(all(run.path()), records);
        fs::write(branches(run.path()), &whole).unwrap();
        fs::write(run.path().join(names::END), &end).unwrap();
    }
    assert_eq!(said(run.path()).map(Result::unwrap), [40; 3]);
}

/// Records are in the order in which branches ended, which can differ from the order of choices. Records can also
/// follow the last record that `end.json` counts.
#[test]
fn records_after_those_that_the_end_counts() {
    let mut records = row(6);
    records.swap(2, 3);
    let run = ended(&records, 3);
    let whole = fs::read(branches(run.path())).unwrap();
    let places = places(&whole);
    let cut = |record: usize| fs::write(branches(run.path()), &whole[..places[record - 1] + 40]).unwrap();
    // Choice 2 is the fourth record. Without it, the file has only two of the three choices that `end.json` counts.
    cut(4);
    assert!(
        said(run.path()).iter().all(|said| said.as_ref().is_err_and(|error| error.contains("record 4 ")))
    );
    // Record 6 is incomplete. Another process could have resumed the run after the reader read `end.json`, and could be
    // writing this record. The reader therefore needs only the records that `end.json` counts.
    cut(6);
    let [read, merged, resumed] = said(run.path());
    assert_eq!((read, merged), (Ok(5), Ok(3)));
    assert!(resumed.unwrap_err().contains("record 6 is damaged"));
    // All three calls fail if `end.json` counts more branches than a run can have.
    fs::write(branches(run.path()), &whole).unwrap();
    let end = fs::read_to_string(run.path().join(names::END)).unwrap();
    let end = end.replace("\"branches\": 3", &format!("\"branches\": {}", u64::MAX));
    fs::write(run.path().join(names::END), end).unwrap();
    assert!(said(run.path()).iter().all(Result::is_err));
}

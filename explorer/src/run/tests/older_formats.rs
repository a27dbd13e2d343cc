//! Tests of run directories in older formats: Everett can read them, but not continue them.

use super::*;
use crate::run::string_table::{NewPoint, StringRef};
use crate::run::{frame, stored};

/// Returns records of two branches with checks. The second record has the cost of its final phase, i.e. of the time
/// from the branch's end to the end of the checks. The first record lacks this cost.
fn checked() -> [Record; 2] {
    let [first, second] = [1, 2].map(|child| record(child - 1, None, &format!("{ROOT_NS}.{child}")));
    let span = |instructions| Span { instructions, vtime_ns: 7 };
    let final_phase = Some(FinalPhase { calm: span(2), checks: span(5) });
    [Record { checked: true, ..first }, Record { checked: true, final_phase, ..second }]
}

/// Writes a run with one record. The record is encoded in format version `encoded`, and the header claims `version`.
fn run_of(record: &Record, encoded: u32, version: u32) -> TempDir {
    let folder = written(&[]);
    let header = fs::read_to_string(folder.path().join("run.json")).unwrap();
    let named = format!("\"schema_version\": {version}");
    fs::write(folder.path().join("run.json"), header.replace("\"schema_version\": 4", &named)).unwrap();
    let input = MergeInput::new(record.clone(), &Dictionary::default()).unwrap();
    let new_points = vec![NewPoint::State(StringRef::New("s0".to_owned()))];
    let text = match encoded {
        3 => stored::encode_version_3(record, &input, new_points),
        _ => stored::encode(record, &input, new_points),
    };
    fs::write(branches(folder.path()), frame::encode(0, 1, 0, &text.unwrap()).unwrap()).unwrap();
    folder
}

#[test]
fn a_run_of_version_3_is_read_and_not_continued() {
    let [record, _] = checked();
    let run = run_of(&record, 3, 3);
    assert_eq!(all(run.path()), std::slice::from_ref(&record));
    let (reading, merged) = Reading::open_merged(run.path()).unwrap();
    assert_eq!((reading.header().schema_version, merged.branches()), (3, 1));
    let finals = merged.totals().final_phases;
    assert_eq!((finals.branches, finals.unknown, finals.longest), (0, 1, None));
    // The result equals the result of a run in the current format, including the digest.
    let now = written(&[record]);
    assert_eq!(Reading::open_merged(now.path()).unwrap().1.digest(), merged.digest());
    // A replay compares the header that Everett would write today with the header of the run. The comparison ignores
    // the format version.
    assert_eq!(reading.header().same_exploration(&header()), Ok(()));
    let error = message(&Journal::resume(run.path(), &header()).unwrap_err(), run.path());
    let expected = "run.json: its format version is 3; an exploration continues only in a run of version 4: name another folder";
    assert_eq!(error, expected);
}

#[test]
fn final_phases_are_summed_and_not_part_of_digests() {
    let [first, second] = checked();
    let of = |records: &[Record]| Reading::open_merged(written(records).path()).unwrap().1;
    let merged = of(&[first.clone(), second.clone()]);
    let FinalPhases { branches, unknown, sum, longest } = merged.totals().final_phases;
    assert_eq!((branches, unknown, sum.instructions(), sum.vtime_ns()), (1, 1, 7, 14));
    assert_eq!(longest.map(|longest| longest.branch), Some(1));
    assert_eq!(merged.digest(), of(&[first, Record { final_phase: None, ..second }]).digest());
}

/// If a record is encoded in another format version than the header names, reading the record gives an error with the
/// record's number.
#[test]
fn a_version_that_is_not_that_of_the_records_is_damage() {
    let [first, second] = checked();
    for (record, encoded, version) in [(&first, 3, 4), (&first, 4, 3), (&second, 3, 4), (&second, 4, 3)] {
        let run = run_of(record, encoded, version);
        let error = match Reading::open(run.path()).unwrap().get(record.choice) {
            Err(error) => message(&error, run.path()),
            Ok(record) => panic!("{encoded} read as {version}: {record:?}"),
        };
        assert!(error.starts_with("branches.bin: record 1 is damaged"), "{error}");
    }
}

#[test]
fn a_final_phase_is_not_longer_than_its_branch() {
    let [_, mut record] = checked();
    record.instructions = 7;
    assert_eq!(record.check(), Ok(()));
    record.instructions = 6;
    let error = record.check().unwrap_err().to_string();
    assert_eq!(error, "its final phase has more instructions than the whole branch");
    let span = Span { instructions: u64::MAX, vtime_ns: u64::MAX };
    record.final_phase = Some(FinalPhase { calm: span, checks: span });
    assert!(record.check().is_err());
}

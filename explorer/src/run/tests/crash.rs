//! Writers that were killed, and files that were damaged.

use super::*;

/// Whatever byte a writer was killed at: what is there is a beginning, and going on makes it whole.
#[test]
fn killed_at_any_byte() {
    let records = row(3);
    let run = written(&records);
    let whole = fs::read(branches(run.path())).unwrap();
    for length in 0..=whole.len() {
        fs::write(branches(run.path()), &whole[..length]).unwrap();
        let lines = whole[..length].iter().filter(|b| **b == b'\n').count();
        assert_eq!(all(run.path()), records[..lines], "{length}");
        assert_eq!(
            fs::metadata(branches(run.path())).unwrap().len(),
            length as u64,
            "who looks changes nothing"
        );
        let mut journal = resumed(run.path());
        assert_eq!(journal.len(), lines as u64, "{length}");
        records.iter().for_each(|record| journal.append(record).unwrap());
        drop(journal);
        assert_eq!(fs::read(branches(run.path())).unwrap(), whole, "{length}");
    }
}

/// The pages of a file need not get to the disk in their order.
#[test]
fn a_last_line_with_a_hole_is_torn() {
    let records = row(3);
    let run = written(&records);
    let mut bytes = fs::read(branches(run.path())).unwrap();
    let end = bytes.len();
    bytes[end - 200..end - 100].fill(0);
    fs::write(branches(run.path()), &bytes).unwrap();
    assert_eq!(resumed(run.path()).len(), 2);
    assert_eq!(all(run.path()), records[..2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any change of any byte is told with its line, or is taken for the last one's end.
    #[test]
    fn a_flipped_bit_is_found(at: prop::sample::Index, bit in 0..8u32) {
        let records = row(4);
        let run = written(&records);
        let mut bytes = fs::read(branches(run.path())).unwrap();
        let at = at.index(bytes.len());
        let line = bytes[..at].iter().filter(|b| **b == b'\n').count();
        // Two lines in one are the last if the second of them is.
        let joined = usize::from(bytes[at] == b'\n');
        bytes[at] ^= 1 << bit;
        fs::write(branches(run.path()), &bytes).unwrap();
        let read = Journal::resume(run.path(), &header()).map(|_| all(run.path()));
        match read {
            Err(RunError::Damaged { line: found, .. }) => prop_assert_eq!(found, line as u64 + 1),
            Err(other) => prop_assert!(false, "{}", other),
            Ok(read) => {
                prop_assert!(line + joined >= 3, "line {line}");
                prop_assert_eq!(read, &records[..line]);
            }
        }
    }

    /// Whatever is in the file, if it is not what a journal writes: no records, or one line that names the file.
    #[test]
    fn no_file_is_too_odd(text in prop::collection::vec("\\{\"sum\":\"[0-9a-f]{16}\",\"record\":\\{?\\}|\\PC{0,9}|[\n\0]", 0..9)) {
        let run = written(&[]);
        fs::write(branches(run.path()), text.concat()).unwrap();
        match Reading::open(run.path()).and_then(|reading| reading.merged(u64::MAX)) {
            Ok(_) => prop_assert_eq!(all(run.path()), []),
            Err(error) => {
                let error = told(&error, run.path());
                prop_assert!(error.starts_with("branches.jsonl: line ") && !error.contains('\n'), "{}", error);
            }
        }
    }
}

#[test]
fn damage_is_told_with_file_and_line() {
    let run = written(&row(3));
    let good = fs::read_to_string(branches(run.path())).unwrap();
    let lines: Vec<&str> = good.split_inclusive('\n').collect();
    let sum = |json: &str| {
        format!("{{\"sum\":\"{}\",\"record\":{json}}}\n", &blake3::hash(json.as_bytes()).to_hex()[..16])
    };
    let hint = "; cut off there, the run can be resumed";
    for (second, error) in [
        (
            lines[1].replace("00ff", "00fe"),
            format!("line 2 is damaged: its checksum is not that of its text{hint}"),
        ),
        ("\n".to_owned(), format!("line 2 is damaged: it does not have a record's form{hint}")),
        (sum("{}"), format!("line 2 is damaged: missing field `choice` at line 1 column 2{hint}")),
        (lines[0].to_owned(), "line 2 is of choice 0, and so is line 1".to_owned()),
    ] {
        fs::write(branches(run.path()), [lines[0], &second, lines[2]].concat()).unwrap();
        let found = Journal::resume(run.path(), &header()).unwrap_err();
        assert_eq!(told(&found, run.path()), format!("branches.jsonl: {error}"));
        let found = Reading::open(run.path()).unwrap_err();
        assert_eq!(told(&found, run.path()), format!("branches.jsonl: {error}"));
    }
    // What only the whole record shows is told when it is read.
    for (json, error) in [
        ("{\"choice\":1}", "missing field `path` at line 1 column 12"),
        ("{\"choice\":1,\"no\\nsuch\":1}", "unknown field `no\\nsuch`, expected one of"),
        (&lines[1][35..lines[1].len() - 2].replace("\"s1\"", "\"s9\""), "is not the one with that id"),
        (
            &lines[1][35..lines[1].len() - 2].replace("\"from\":null", "\"from\":1"),
            "it goes on from choice 1, which is no earlier one",
        ),
    ] {
        fs::write(branches(run.path()), [lines[0], &sum(json), lines[2]].concat()).unwrap();
        let reading = Reading::open(run.path()).unwrap();
        assert!(reading.get(0).unwrap().is_some());
        for found in [reading.get(1).unwrap_err(), reading.merged(9).unwrap_err()] {
            let found = told(&found, run.path());
            assert!(
                found.starts_with("branches.jsonl: line 2 is damaged: ") && found.contains(error),
                "{found}"
            );
        }
        assert_eq!(reading.get(2).unwrap().unwrap(), row(3)[2]);
    }
}

/// A disk that is full for a while.
#[test]
fn a_line_that_could_not_be_written_is_no_line() {
    let records = row(2);
    let run = written(&records[..1]);
    let mut journal = resumed(run.path());
    let mut part = fs::read(branches(run.path())).unwrap();
    part.extend_from_slice(b"{\"sum\":\"a part of a longer line than the next one is");
    part.extend_from_slice(&[b'x'; 4000]);
    fs::write(branches(run.path()), part).unwrap();
    journal.pretend_torn();
    journal.append(&records[1]).unwrap();
    drop(journal);
    assert_eq!(all(run.path()), records);
}

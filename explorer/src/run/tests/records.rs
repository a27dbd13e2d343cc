//! Tests that records (results of branches) are cut to their bounds, and that invalid records are refused.

use super::*;

fn long(length: usize) -> impl Strategy<Value = String> {
    prop_oneof![4 => "\\PC{0,5}", 1 => Just("é".repeat(length)), 1 => Just("x".repeat(length * 2))]
}

fn hits() -> impl Strategy<Value = Vec<Hit>> {
    let list =
        || prop::collection::vec(long(limits::EVIDENCE_LINE_BYTES_MAX), 0..limits::EVIDENCE_LINES_MAX * 2);
    let evidence =
        (list(), list(), list()).prop_map(|(lines, packets, faults)| Evidence { lines, packets, faults });
    let texts =
        (long(limits::NAME_BYTES_MAX), long(limits::SIGNATURE_BYTES_MAX), long(limits::TEXT_BYTES_MAX));
    let one = (texts, any::<u64>(), prop::option::of(long(limits::NAME_BYTES_MAX)), evidence).prop_map(
        |((property, signature, text), vtime_ns, node, evidence)| Hit {
            property,
            signature,
            text,
            vtime_ns,
            node,
            evidence,
        },
    );
    prop::collection::vec(one, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_within_bounds_are_not_changed(
        hits in hits(), sometimes in prop::collection::vec(long(limits::NAME_BYTES_MAX), 0..9),
        broken in prop::option::of(long(limits::TEXT_BYTES_MAX)), trail in long(limits::TRAIL_BYTES_MAX),
    ) {
        let given = Record { hits, sometimes, broken, trail, ..row(1)[0].clone() };
        let mut once = given.clone();
        once.bound();
        let mut twice = once.clone();
        twice.bound();
        prop_assert_eq!(&twice, &once);
        for hit in &once.hits {
            let Evidence { lines, packets, faults } = &hit.evidence;
            for list in [lines, packets, faults] {
                prop_assert!(list.len() <= limits::EVIDENCE_LINES_MAX);
                prop_assert!(list.iter().all(|line| line.len() <= limits::EVIDENCE_LINE_BYTES_MAX));
            }
            prop_assert!(hit.text.len() <= limits::TEXT_BYTES_MAX && hit.property.len() <= limits::NAME_BYTES_MAX);
            prop_assert!(hit.signature.len() <= limits::SIGNATURE_BYTES_MAX);
            prop_assert!(hit.node.as_ref().is_none_or(|node| node.len() <= limits::NAME_BYTES_MAX));
        }
        prop_assert!(once.sometimes.is_sorted() && once.trail.len() <= limits::TRAIL_BYTES_MAX);
        // The file contains `once`, the record that was cut to its bounds, although the test wrote the uncut record.
        let run = written(std::slice::from_ref(&given));
        prop_assert_eq!(all(run.path()), &[once.clone()]);
        let merged = |record| {
            let mut merged = Merged::default();
            merged.merge(record).unwrap();
            (merged.digest(), merged.findings().to_vec())
        };
        prop_assert_eq!(merged(given), merged(once));
    }
}

#[test]
fn the_first_hit_of_each_signature_is_recorded() {
    let mut record = row(1)[0].clone();
    record.hits = vec![hit("p", "a", 1), hit("p", "b", 2), hit("q", "a", 3), hit("p", "a", 4)];
    record.sometimes = ["z", "a", "z"].map(str::to_owned).to_vec();
    record.bound();
    assert_eq!(record.hits, [hit("p", "a", 1), hit("p", "b", 2), hit("q", "a", 3)]);
    assert_eq!(record.sometimes, ["a", "z"]);
    record.hits = (0..limits::HITS_MAX as u64 + 9).map(|i| hit("p", &i.to_string(), i)).collect();
    record.sometimes = (0..limits::SOMETIMES_MAX + 9).map(|i| i.to_string()).collect();
    record.bound();
    assert_eq!((record.hits.len(), record.sometimes.len()), (limits::HITS_MAX, limits::SOMETIMES_MAX));
    assert_eq!(record.hits.last().unwrap().vtime_ns, limits::HITS_MAX as u64 - 1);
}

#[test]
fn invalid_records_are_not_written() {
    let run = written(&[]);
    let mut journal = resumed(run.path());
    for (record, problem) in [
        (record(3, Some(3), "1000.1/2000.1"), "it extends choice 3, which is not an earlier one"),
        (record(3, None, "1000.1/2000.1"), "its path does not extend the path of the branch before it"),
        (record(3, Some(1), "1000.1"), "its path does not extend the path of the branch before it"),
        (record(3, None, ""), "its path does not extend the path of the branch before it"),
    ] {
        let error = journal.append(record).unwrap_err();
        assert_eq!(
            message(&error, run.path()),
            format!("the record of choice 3 cannot be written: {problem}")
        );
    }
    let many: Vec<_> =
        (0..=crate::coverage::limits::DELTA_POINTS_MAX).map(|i| (state(&i.to_string()), 1)).collect();
    let error = journal.append(Record { delta: delta(&many), ..row(1)[0].clone() }).unwrap_err();
    assert_eq!(
        message(&error, run.path()),
        "the record of choice 0 cannot be written: it reached more than 65536 points"
    );
    journal.append(Record { delta: delta(&many[1..]), ..row(1)[0].clone() }).unwrap();
    assert_eq!(all(run.path()).len(), 1);
    let record = record(4, Some(1), "1000.1/2000.3");
    assert_eq!((record.vtime_ns(), record.path.forks().len()), (1_000_000_000, 2));
}

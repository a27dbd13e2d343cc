//! Tests with histories that are known from real systems, and the expected reports.

use super::*;

#[test]
fn concurrent_operations_may_be_in_any_order() {
    let reads = "1 invoke write 1
         2 invoke write 2
         3 invoke read
         3 ok read 2
         3 invoke read
         3 ok read 1\n";
    // Two writes are concurrent. The reads of process 3 fit one order of the writes.
    fine(ModelKind::Register, &format!("{reads} 1 ok write\n 2 ok write\n 3 invoke read\n 3 ok read 1"));
    // The reads of process 3 fit no order of the writes: they return 2, 1, and 2 again.
    assert_eq!(
        said(ModelKind::Register, &format!("{reads} 3 invoke read\n 3 ok read 2")),
        "read of 2 by process 3 of n1 (700ms to 800ms, lines 7 and 8) cannot be: it held 1"
    );
}

#[test]
fn a_stale_read_after_a_partition() {
    assert_eq!(
        said(
            ModelKind::Register,
            "1 invoke write 3
             1 ok write
             1 invoke write 5
             1 ok write
             2 invoke read
             2 ok read 3",
        ),
        "read of 3 by process 2 of n1 (500ms to 600ms, lines 5 and 6) cannot be: it held 5 since 400ms"
    );
}

/// A client reads the old value during a write, although another client has already read the new value.
#[test]
fn a_read_that_goes_back() {
    assert_eq!(
        said(
            ModelKind::Kv,
            "1 invoke put 1
             2 invoke get
             2 ok get 1
             3 invoke get
             3 ok get null
             1 ok put",
        ),
        "read of null by process 3 of n1 (400ms to 500ms, lines 4 and 5) cannot be: it held 1"
    );
}

#[test]
fn a_write_that_is_lost_at_a_fail_over() {
    let text = "1 invoke put 1
         1 ok put
         2 invoke put 2
         2 ok put
         3 invoke get
         3 ok get 1";
    let report = report(ModelKind::Kv, text);
    assert_eq!((report.operations, report.acknowledged, report.failed), (3, 3, 0));
    assert_eq!((report.lost.len(), report.lost_count), (1, 1));
    assert_eq!(
        report.lost[0].to_string(),
        "acknowledged write of 2 by process 2 of n1 (300ms to 400ms, lines 3 and 4) is gone: \
         later read of 1 by process 3 of n1 (500ms to 600ms, lines 5 and 6)"
    );
    assert_eq!(
        violations(&report).next().unwrap().lines(),
        [
            "read of 1 by process 3 of n1 (500ms to 600ms, lines 5 and 6) cannot be: it held 2 since 400ms",
            "a valid order of the 2 operations before it:",
            "  write of 1 by process 1 of n1 (100ms to 200ms, lines 1 and 2)",
            "  write of 2 by process 2 of n1 (300ms to 400ms, lines 3 and 4)",
            "operations that can have produced the value that it saw:",
            "  write of 1 by process 1 of n1 (100ms to 200ms, lines 1 and 2)",
            "after the operations before it: it held 2",
        ]
    );
}

#[test]
fn a_write_of_unknown_outcome_is_seen_late_or_never() {
    let history = |end: &str, reads: &[u32]| {
        let mut text = format!("1 invoke write 1\n 1 ok write\n 2 invoke write 2\n {end}\n");
        for value in reads {
            text += &format!("3 invoke read\n 3 ok read {value}\n");
        }
        said(ModelKind::Register, &text)
    };
    for end in ["2 info write", ""] {
        for reads in [&[1, 1, 1][..], &[1, 1, 2, 2], &[2]] {
            assert_eq!(history(end, reads), "", "{end} {reads:?}");
        }
        // The old value cannot come back.
        assert!(history(end, &[1, 2, 1]).contains("read of 1 by process 3"), "{end}");
    }
    // A failed write is never visible.
    assert_eq!(history("2 fail write", &[1, 1]), "");
    assert!(history("2 fail write", &[1, 2]).contains("read of 2 by process 3"));
}

/// A process continues after an operation of unknown outcome, which may take effect during or after the next operation.
#[test]
fn a_process_continues_after_an_unknown_outcome() {
    fine(
        ModelKind::Register,
        "1 invoke write 1
         1 info write
         1 invoke write 2
         1 ok write 2
         1 invoke read
         1 ok read 1",
    );
}

#[test]
fn an_element_that_is_dequeued_twice() {
    let text = "1 invoke enqueue 7
         1 ok enqueue
         2 invoke dequeue
         3 invoke dequeue
         2 ok dequeue 7
         3 ok dequeue 7";
    let report = report(ModelKind::Queue, text);
    assert_eq!(
        report.lost[0].to_string(),
        "dequeue of 7 by process 3 of n1 (400ms to 600ms, lines 4 and 6): this element came out 2 times, \
         but went in at most 1 times"
    );
    assert_eq!(
        violations(&report).next().unwrap().to_string(),
        "dequeue of 7 by process 3 of n1 (400ms to 600ms, lines 4 and 6) cannot be: it was empty"
    );
    // A second enqueue of unknown outcome would explain the result.
    fine(ModelKind::Queue, &format!("9 invoke enqueue 7\n{text}"));
}

/// Two clients hold the lock, because the lease of the first client has expired.
#[test]
fn a_lock_that_two_processes_hold() {
    let text = "1 invoke acquire
         1 ok acquire
         2 invoke acquire
         2 ok acquire";
    assert_eq!(
        said(ModelKind::Lock, text),
        "acquire by process 2 of n1 (300ms to 400ms, lines 3 and 4) cannot be: \
         process 1 of n1 held it since 200ms"
    );
    // A release of unknown outcome explains the result.
    fine(ModelKind::Lock, &text.replacen("2 invoke", "1 invoke release\n 2 invoke", 1));
}

/// If a history never reads the whole set, the checker judges each element independently. The evidence lists only
/// operations on the element with the violation.
#[test]
fn elements_of_a_set_are_judged_alone() {
    let text = "1 invoke add 1
         1 ok add
         2 invoke add 2
         2 ok add
         3 invoke contains 2
         3 ok contains [2,false]";
    let report = report(ModelKind::Set, text);
    let evidence = violations(&report).next().unwrap();
    assert_eq!((evidence.placed, evidence.order.len()), (1, 1));
    assert_eq!(evidence.order[0].what, "add of 2");
}

/// If several elements have violations, the report names the element whose impossible operation completed first, even
/// if an operation on another element was invoked earlier.
#[test]
fn the_first_of_several_wrong_elements_is_reported() {
    let text = said(
        ModelKind::Set,
        "1 invoke contains 1
         2 invoke contains 2
         2 ok contains [2,true]
         1 ok contains [1,true]",
    );
    assert!(text.starts_with("contains of 2 with true by process 2"), "{text}");
}

//! Tests of the evidence for a violation: the first impossible completion (answer that no order of the operations
//! explains), and the possible states of the object before this completion. If only one state is possible, the evidence
//! also has the position in the history since which the object had this state.

use super::*;

fn evidence(kind: ModelKind, text: &str) -> Evidence {
    violations(&report(kind, text)).next().unwrap().clone()
}

/// The first impossible completion is the read of 7. Later operations do not change this. The evidence lists the later
/// write of 7 as a possible origin of the value.
#[test]
fn the_first_impossible_completion_is_reported() {
    let mut text = "1 invoke write 1\n 1 ok write\n".to_owned();
    for i in 0..40 {
        text += &format!("2 invoke read\n 2 ok read {}\n", if i == 23 { 7 } else { 1 });
    }
    text += "1 invoke write 7\n 1 ok write\n 2 invoke read\n 2 ok read 3";
    let evidence = evidence(ModelKind::Register, &text);
    assert!(evidence.earliest);
    assert_eq!((evidence.operation.invoked.line, evidence.placed), (49, 24));
    assert_eq!(evidence.order.len(), crate::limits::ORDER_SHOWN_MAX);
    let origins: Vec<u64> = evidence.origins.iter().map(|operation| operation.invoked.line).collect();
    assert_eq!(origins, [83]);
    assert_eq!(evidence.since.map(|moment| moment.line), Some(2));
}

/// The search over the whole history gets stuck at the dequeue of `null`, which ends at line 5. The first impossible
/// completion is at line 6. Before line 6, process 2's dequeue may have taken the 1, which explains the empty queue.
#[test]
fn a_search_may_get_stuck_before_the_impossible_operation() {
    let text = "1 invoke enqueue 1
         1 ok enqueue
         2 invoke dequeue
         3 invoke dequeue
         3 ok dequeue null
         2 ok dequeue 2";
    let evidence = evidence(ModelKind::Queue, text);
    assert_eq!(evidence.operation.completed.unwrap().line, 6);
    assert!(evidence.earliest);
    assert_eq!(
        evidence.lines().last().map(String::as_str),
        Some("no operation can have produced the value that it saw")
    );
}

#[test]
fn concurrent_operations_are_listed() {
    let text = "1 invoke write 1
         1 ok write
         2 invoke write 2
         3 invoke read
         4 invoke write 4
         4 info write
         5 invoke read
         3 ok read 9
         2 ok write
         5 ok read 1";
    let evidence = evidence(ModelKind::Register, text);
    let concurrent: Vec<u64> = evidence.concurrent.iter().map(|operation| operation.invoked.line).collect();
    assert_eq!(concurrent, [3, 5, 7]);
    assert_eq!(evidence.possible, ["it held 1", "it held 2", "it held 4"]);
    assert_eq!(evidence.since, None);
}

/// The check searches for the first impossible completion only for a bounded number of violations. It reports further
/// violations without this search.
#[test]
fn many_violations_are_all_reported() {
    let count = crate::limits::FOLLOWED_MAX + 3;
    let lines = |key: usize| of_key(&key.to_string(), written("1 invoke read\n 1 ok read 1"));
    let report = report_on(spec(ModelKind::Register), (0..count).flat_map(lines).collect());
    let earliest: Vec<bool> = violations(&report).map(|evidence| evidence.earliest).collect();
    assert_eq!(earliest.len(), count);
    assert!(earliest.iter().enumerate().all(|(i, earliest)| *earliest == (i < count - 3)));
    let last = violations(&report).last().unwrap();
    assert_eq!(last.lines()[1], "an earlier operation may be the first impossible one");
}

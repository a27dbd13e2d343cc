//! Tests of lost writes, and of writes that only seem to be lost.

use super::*;

/// Returns the lost writes, each as the operation and the line of its invocation.
fn lost(kind: ModelKind, text: &str) -> Vec<String> {
    let report = report(kind, text);
    assert_eq!(report.lost.len() as u64, report.lost_count);
    report
        .lost
        .iter()
        .map(|lost| format!("{} at {}", lost.operation.what, lost.operation.invoked.line))
        .collect()
}

#[test]
fn writes_of_registers() {
    let two = "1 invoke write 1\n 1 ok write\n 2 invoke write 2\n 2 ok write\n";
    let overlapping = "1 invoke write 1\n 2 invoke write 2\n 1 ok write\n 2 ok write\n";
    let register = |text: &str, value: &str| {
        lost(ModelKind::Register, &format!("{text} 3 invoke read\n 3 ok read {value}"))
    };
    let gone = ["write of 2 at 3"];
    assert_eq!(register(two, "1"), gone);
    assert_eq!(register(two, "null"), gone);
    assert_eq!(register(two, "9"), gone);
    assert!(register(two, "2").is_empty());
    assert!(register(overlapping, "1").is_empty() && register(overlapping, "2").is_empty());
    assert_eq!(register(overlapping, "null"), ["write of 2 at 2"]);
    // No write was acknowledged.
    assert!(register("1 invoke write 1\n 1 info write\n", "null").is_empty());
    // A write of unknown outcome may take effect late and overwrite write 2, so write 2 does not count as lost. This
    // holds only if the write of unknown outcome was invoked before the read ended.
    assert!(register(&format!("9 invoke write 9\n{two}"), "9").is_empty());
    let after = format!("{two} 3 invoke read\n 3 ok read 9\n 9 invoke write 9");
    assert_eq!(lost(ModelKind::Register, &after), gone);
    // A read that began before the end of the write does not prove a loss.
    let early = "1 invoke write 1\n 2 invoke read\n 1 ok write\n 2 ok read null";
    assert!(lost(ModelKind::Register, early).is_empty());
    // If there are several reads, one read that does not show the write is enough.
    assert_eq!(
        lost(
            ModelKind::Register,
            &format!("{two} 3 invoke read\n 3 ok read 2\n 3 invoke read\n 3 ok read 1")
        ),
        gone
    );
    // A failed write cannot be lost. A cas and a delete are writes.
    assert!(
        lost(ModelKind::Register, "1 invoke write 1\n 1 fail write\n 1 invoke read\n 1 ok read null")
            .is_empty()
    );
    let cas = "1 invoke cas [null,2]\n 1 ok cas\n 1 invoke read\n 1 ok read null";
    assert_eq!(lost(ModelKind::Cas, cas), ["cas from null to 2 at 1"]);
    let delete = "1 invoke put 1\n 1 ok put\n 1 invoke delete\n 1 ok delete\n 1 invoke get\n 1 ok get 1";
    assert_eq!(lost(ModelKind::Kv, delete), ["delete at 3"]);
}

#[test]
fn elements_of_sets() {
    let set = |text: &str| lost(ModelKind::Set, text);
    let read = |members: &str| format!("9 invoke read\n 9 ok read {members}\n");
    let two = "1 invoke add 1\n 1 ok add\n 1 invoke add 2\n 1 ok add\n";
    assert_eq!(set(&(two.to_owned() + &read("[2]"))), ["add of 1 at 1"]);
    assert_eq!(set(&(two.to_owned() + &read("[]"))), ["add of 1 at 1", "add of 2 at 3"]);
    assert!(set(&(two.to_owned() + &read("[1,2]"))).is_empty());
    // Only the last read matters.
    assert!(set(&(two.to_owned() + &read("[]") + &read("[1,2]"))).is_empty());
    // The result of a `contains` also proves the loss.
    assert_eq!(set(&(two.to_owned() + "9 invoke contains 2\n 9 ok contains [2,false]")), ["add of 2 at 3"]);
    // A concurrent or later remove excuses the loss, even if its outcome is unknown. An earlier remove does not.
    for (remove, is_lost) in [
        ("1 invoke add 1\n 2 invoke remove 1\n 1 ok add\n 2 ok remove\n", false),
        ("1 invoke add 1\n 1 ok add\n 2 invoke remove 1\n 2 info remove\n", false),
        ("2 invoke remove 1\n 2 info remove\n 1 invoke add 1\n 1 ok add\n", false),
        ("2 invoke remove 1\n 2 fail remove\n 1 invoke add 1\n 1 ok add\n", true),
        ("2 invoke remove 1\n 2 ok remove\n 1 invoke add 1\n 1 ok add\n", true),
    ] {
        assert_eq!(!set(&(remove.to_owned() + &read("[]"))).is_empty(), is_lost, "{remove}");
    }
    // An add of unknown outcome may never take effect. A read that began before the end of the add proves nothing.
    assert!(set(&("1 invoke add 1\n 1 info add\n".to_owned() + &read("[]"))).is_empty());
    assert!(set("1 invoke add 1\n 9 invoke read\n 1 ok add\n 9 ok read []").is_empty());
}

#[test]
fn elements_of_queues() {
    let queue = |text: &str| lost(ModelKind::Queue, text);
    let two = "1 invoke enqueue 1\n 1 ok enqueue\n 1 invoke enqueue 2\n 1 ok enqueue\n".to_owned();
    let took = |value: &str| format!("9 invoke dequeue\n 9 ok dequeue {value}\n");
    assert_eq!(queue(&(two.clone() + &took("2") + &took("null"))), ["enqueue of 1 at 1"]);
    assert!(queue(&(two.clone() + &took("1") + &took("2") + &took("null"))).is_empty());
    // No element is missing if no dequeue found the queue empty.
    assert!(queue(&(two.clone() + &took("2"))).is_empty());
    // No element is missing if the dequeue that found the queue empty was invoked before the end of the enqueue.
    assert!(queue("1 invoke enqueue 1\n 9 invoke dequeue\n 1 ok enqueue\n 9 ok dequeue null").is_empty());
    // One dequeue of unknown outcome excuses one missing element, but not two.
    let unknown = "8 invoke dequeue\n 8 info dequeue\n";
    assert!(queue(&(two.clone() + unknown + &took("1") + &took("null"))).is_empty());
    assert_eq!(queue(&(two.clone() + unknown + &took("null"))), ["enqueue of 1 at 1", "enqueue of 2 at 3"]);
    // Two dequeues of an element are an error if the element was enqueued once. They are no error if a second enqueue
    // of the element has an unknown outcome.
    assert_eq!(queue(&(two.clone() + &took("1") + &took("1"))), ["dequeue of 1 at 7"]);
    assert!(queue(&("8 invoke enqueue 1\n".to_owned() + &two + &took("1") + &took("1"))).is_empty());
    // Even a single dequeue of a value is an error if the value was never enqueued.
    assert_eq!(queue(&took("5")), ["dequeue of 5 at 1"]);
}

/// All losses are counted, and the first losses are listed.
#[test]
fn losses_are_bounded() {
    let count = crate::limits::LOST_MAX + 5;
    let adds: String = (0..count).map(|i| format!("1 invoke add {i}\n1 ok add\n")).collect();
    let report = report(ModelKind::Set, &(adds + "1 invoke read\n 1 ok read []"));
    assert_eq!((report.lost.len(), report.lost_count), (count - 5, count as u64));
}

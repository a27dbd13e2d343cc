//! Tests of the causes of violations, i.e. of the texts by which violations are grouped.

use super::*;

/// Returns the causes of lost writes, and the causes of violations of linearizability.
fn causes(kind: ModelKind, text: &str) -> (Vec<String>, Vec<String>) {
    causes_of(&report(kind, text))
}

fn causes_of(report: &Report) -> (Vec<String>, Vec<String>) {
    let losses = report.losses.iter().map(|group| group.cause.clone());
    (losses.collect(), report.causes.iter().map(|group| group.cause.clone()).collect())
}

/// Returns the only cause of the lost writes. Panics if there are several, or if a violation is also reported.
fn loss(kind: ModelKind, text: &str) -> String {
    let (mut losses, violations) = causes(kind, text);
    assert_eq!((losses.len(), violations.len()), (1, 0), "{text}");
    losses.remove(0)
}

/// Returns the only cause of the violations of linearizability. Panics if there are several, or if a lost write is
/// reported.
fn violation(kind: ModelKind, text: &str) -> String {
    let (losses, mut violations) = causes(kind, text);
    assert_eq!((losses.len(), violations.len()), (0, 1), "{text}");
    violations.remove(0)
}

#[test]
fn a_loss_has_one_cause_whichever_read_shows_it() {
    let adds = "1 invoke add 1\n 1 ok add\n 1 invoke add 2\n 1 ok add\n";
    for read in [
        "read\n 9 ok read []",
        "read\n 9 ok read [1]",
        "read\n 9 ok read [2]",
        "contains 2\n 9 ok contains [2,false]",
    ] {
        assert_eq!(
            loss(ModelKind::Set, &format!("{adds} 9 invoke {read}")),
            "set: acknowledged add is gone",
            "{read}"
        );
    }
    let writes = "1 invoke write 1\n 1 ok write\n 2 invoke write 2\n 2 ok write\n";
    for value in ["1", "null", "9"] {
        let text = format!("{writes} 3 invoke read\n 3 ok read {value}");
        assert_eq!(loss(ModelKind::Register, &text), "register: acknowledged write is gone", "{value}");
    }
    let queue = "1 invoke enqueue 1\n 1 ok enqueue\n 1 invoke enqueue 2\n 1 ok enqueue\n";
    for taken in ["", "9 invoke dequeue\n 9 ok dequeue 2\n", "9 invoke dequeue\n 9 ok dequeue 1\n"] {
        let text = format!("{queue}{taken} 9 invoke dequeue\n 9 ok dequeue null");
        assert_eq!(loss(ModelKind::Queue, &text), "queue: acknowledged enqueue is gone", "{taken}");
    }
}

#[test]
fn losses_of_several_kinds_are_all_reported() {
    // One element was dequeued twice, and another element was never dequeued. The causes do not depend on the elements.
    for (twice, never) in [("1", "2"), ("2", "1")] {
        let text = format!(
            "1 invoke enqueue 1\n 1 ok enqueue\n 1 invoke enqueue 2\n 1 ok enqueue\n 9 invoke dequeue\n \
             9 ok dequeue {twice}\n 9 invoke dequeue\n 9 ok dequeue {twice}\n 9 invoke dequeue\n 9 ok dequeue null"
        );
        let report = report(ModelKind::Queue, &text);
        assert_eq!(
            causes_of(&report).0,
            ["queue: acknowledged enqueue is gone", "queue: dequeue more often than it went in"]
        );
        let texts: Vec<&str> = report.losses.iter().map(|group| &*group.first.operation.what).collect();
        assert_eq!(
            texts,
            [format!("enqueue of {never}"), format!("dequeue of {twice}")],
            "each cause has its own loss"
        );
    }
    let taken = "1 invoke enqueue 1\n 1 ok enqueue\n 9 invoke dequeue\n 9 ok dequeue 1\n 9 invoke dequeue\n \
                 9 ok dequeue 1";
    assert_eq!(loss(ModelKind::Queue, taken), "queue: dequeue more often than it went in");
    assert_eq!(
        loss(ModelKind::Queue, "9 invoke dequeue\n 9 ok dequeue 5"),
        "queue: dequeue of what never went in"
    );
}

#[test]
fn causes_distinguish_operations_and_roles() {
    let read = |first: &str, second: &str| {
        // The last write comes after the reads, so the reads do not prove a lost write.
        let text = format!(
            "1 invoke write {first}\n 1 ok write\n 2 invoke write {second}\n 2 ok write\n 3 invoke read\n \
             3 ok read {first}\n 3 invoke read\n 3 ok read {second}\n 1 invoke write 9\n 1 ok write"
        );
        violation(ModelKind::Register, &text)
    };
    assert_eq!(read("1", "2"), "register: read cannot be");
    assert_eq!(read("\"a\"", "[1,2,3]"), read("1", "2"));
    let nobody = "1 invoke write 1\n 2 invoke read\n 2 ok read 7\n 1 ok write";
    assert_eq!(
        violation(ModelKind::Register, nobody),
        "register: read of what nothing left behind cannot be"
    );
    // The initial value does not count as foreign, i.e. as a value that no operation wrote.
    let before =
        "1 invoke write 1\n 1 ok write\n 2 invoke read\n 2 ok read null\n 1 invoke write 2\n 1 ok write";
    assert_eq!(violation(ModelKind::Register, before), "register: read cannot be");
    let two = "1 invoke acquire\n 1 ok acquire\n 2 invoke acquire\n 2 ok acquire";
    assert_eq!(violation(ModelKind::Lock, two), "lock: acquire cannot be");
    assert_eq!(violation(ModelKind::Lock, "1 invoke release\n 1 ok release"), "lock: release cannot be");
    let foreign = "1 invoke add 1\n 1 ok add\n 2 invoke read\n 2 ok read [1,8]";
    assert_eq!(
        causes(ModelKind::Set, foreign),
        (Vec::new(), vec!["set: read of what nothing left behind cannot be".to_owned()])
    );
}

/// Returns a history of several keys from lines of the form `key process type f value`.
fn keyed(text: &str) -> Vec<HistoryLine> {
    let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    lines.flat_map(|(key, line)| of_key(key, written(line))).collect()
}

const LOST: &str = "lost 1 invoke write 1\nlost 1 ok write\nlost 2 invoke write 2\nlost 2 ok write\n\
                    lost 3 invoke read\nlost 3 ok read 1\n";
const STALE: &str = "stale 1 invoke write 1\nstale 1 ok write\nstale 2 invoke read\nstale 2 ok read null\n\
                     stale 2 invoke write 3\nstale 2 ok write\n";
const FOREIGN: &str =
    "foreign 1 invoke write 1\nforeign 1 ok write\nforeign 2 invoke cas [7,8]\nforeign 2 ok cas\n";

/// A lost write or violation on one key does not hide those on other keys. A lost write is not also reported as a
/// violation.
#[test]
fn each_cause_is_reported() {
    let causes = |text: &str| causes_of(&report_on(spec(ModelKind::Kv), keyed(text)));
    let lost = vec!["kv: acknowledged write is gone".to_owned()];
    let (stale, foreign) =
        ("kv: read cannot be".to_owned(), "kv: cas of what nothing left behind cannot be".to_owned());
    assert_eq!(causes(LOST), (lost.clone(), Vec::new()));
    assert_eq!(causes(STALE), (Vec::new(), vec![stale.clone()]));
    assert_eq!(causes(FOREIGN), (Vec::new(), vec![foreign.clone()]));
    let all = (lost, vec![foreign, stale]);
    for order in [[LOST, STALE, FOREIGN], [FOREIGN, LOST, STALE], [STALE, FOREIGN, LOST]] {
        assert_eq!(causes(&order.concat()), all);
    }
    // A cause that occurs on two keys is reported once, with a count of 2.
    let twice = LOST.to_owned() + STALE + &LOST.replace("lost", "gone") + &STALE.replace("stale", "old");
    let report = report_on(spec(ModelKind::Kv), keyed(&twice));
    let counts = (report.losses[0].count, report.causes[0].count);
    assert_eq!((report.losses.len(), report.causes.len(), counts), (1, 1, (2, 2)));
}

/// After more than `LOST_MAX` lost writes of one cause, a lost write of another cause is still reported, and so is a
/// violation on another key.
#[test]
fn many_losses_of_one_cause_hide_no_other() {
    let count = crate::limits::LOST_MAX + 5;
    let enqueue = |i: usize| format!("a 1 invoke enqueue {i}\na 1 ok enqueue\n");
    let mut text: String = (0..count).map(enqueue).collect();
    text += "a 9 invoke dequeue\na 9 ok dequeue null\nb 9 invoke dequeue\nb 9 ok dequeue 5\n";
    text += "c 1 invoke enqueue 1\nc 1 ok enqueue\nc 2 invoke enqueue 2\nc 2 ok enqueue\n";
    text += "c 3 invoke dequeue\nc 3 ok dequeue 2\n";
    let report = report_on(spec(ModelKind::Queue), keyed(&text));
    let lost = ["queue: acknowledged enqueue is gone", "queue: dequeue of what never went in"];
    assert_eq!(
        causes_of(&report),
        (lost.map(str::to_owned).to_vec(), vec!["queue: dequeue cannot be".to_owned()])
    );
    assert_eq!(
        (report.losses[0].count, report.losses[1].count, report.lost.len()),
        (count as u64, 1, count - 5)
    );
    // A lost write replaces the violation of its key, even if the lost write is counted but not listed.
    let lost: String = (0..count).map(|key| LOST.replace("lost", &format!("k{key}"))).collect();
    let report = report_on(spec(ModelKind::Kv), keyed(&lost));
    assert_eq!(causes_of(&report), (vec!["kv: acknowledged write is gone".to_owned()], Vec::new()));
}

/// If the first impossible operation is unknown, the cause names the operation at which the search got stuck, which
/// depends on values. Such an uncertain cause is reported only if no cause is certain, and then only one is reported.
#[test]
fn uncertain_causes_are_reported_only_without_certain_ones() {
    let mut keys: String =
        (0..crate::limits::FOLLOWED_MAX).map(|key| STALE.replace("stale", &format!("k{key}"))).collect();
    // The violations of the first keys are stale reads. They are traced to the first impossible operation, so their
    // cause is certain. The violation of the last key is not traced.
    keys += FOREIGN;
    let report = report_on(spec(ModelKind::Kv), keyed(&keys));
    assert_eq!(violations(&report).filter(|evidence| !evidence.earliest).count(), 1);
    assert_eq!(causes_of(&report).1, ["kv: read cannot be"]);
    let mut uncertain = crate::cause::Violations::new();
    for evidence in violations(&report).filter(|evidence| !evidence.earliest) {
        let mut other = evidence.clone();
        other.foreign = false;
        uncertain.add(ModelKind::Kv, evidence);
        uncertain.add(ModelKind::Kv, &other);
    }
    let causes: Vec<String> = uncertain.all().into_iter().map(|group| group.cause).collect();
    assert_eq!(causes, ["kv: cas cannot be"]);
}

/// Lines that were cut off at different places have the same cause. Equal errors of different processes also have the
/// same cause.
#[test]
fn causes_of_problems_leave_out_places_and_processes() {
    let cause = |text: &str| {
        let (_, problems) = read(spec(ModelKind::Queue), [line(1, text)]);
        problems.first[0].what.cause()
    };
    let whole = r#"{"process":1,"type":"invoke","f":"enqueue","value":"a text"}"#;
    for end in [1, 10, 30, whole.len() - 1] {
        assert_eq!(cause(&whole[..end]), "not JSON");
    }
    for process in ["1", "\"x\""] {
        assert_eq!(
            cause(&format!(r#"{{"process":{process},"type":"ok","f":"enqueue","value":1}}"#)),
            "completion without an invocation"
        );
    }
    assert_eq!(
        cause(r#"{"process":1,"type":"invoke","f":"push","value":1}"#),
        "unknown operation of a queue"
    );
    assert_eq!(
        cause(r#"{"process":1,"type":"invoke","f":"enqueue"}"#),
        "the value of enqueue must be an element, which null is not"
    );
}

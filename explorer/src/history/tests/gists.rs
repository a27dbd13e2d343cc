//! Which violations have one cause.

use super::*;

/// The causes of what is lost, and of what has no order.
fn causes(kind: ModelKind, text: &str) -> (Option<String>, Option<String>) {
    let report = report(kind, text);
    let lost = report.gist_of_losses().map(|gist| gist.cause);
    (lost, report.gist_of_violations().map(|gist| gist.cause))
}

fn loss(kind: ModelKind, text: &str) -> String {
    causes(kind, text).0.unwrap_or_else(|| panic!("nothing is lost: {text}"))
}

fn violation(kind: ModelKind, text: &str) -> String {
    causes(kind, text).1.unwrap_or_else(|| panic!("it has an order: {text}"))
}

#[test]
fn a_loss_is_one_whatever_shows_it() {
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
fn losses_of_several_kinds_are_told_by_the_same_one() {
    // One element came twice and another one never: which value has which does not matter.
    for (twice, never) in [("1", "2"), ("2", "1")] {
        let text = format!(
            "1 invoke enqueue 1\n 1 ok enqueue\n 1 invoke enqueue 2\n 1 ok enqueue\n 9 invoke dequeue\n 9 ok dequeue {twice}\n \
             9 invoke dequeue\n 9 ok dequeue {twice}\n 9 invoke dequeue\n 9 ok dequeue null"
        );
        let told = report(ModelKind::Queue, &text);
        let gist = told.gist_of_losses().expect("a loss");
        assert_eq!(gist.cause, "queue: acknowledged enqueue is gone");
        assert_eq!(gist.first.operation.what, format!("enqueue of {never}"), "the text is of that cause");
    }
    let taken = "1 invoke enqueue 1\n 1 ok enqueue\n 9 invoke dequeue\n 9 ok dequeue 1\n 9 invoke dequeue\n 9 ok dequeue 1";
    assert_eq!(loss(ModelKind::Queue, taken), "queue: dequeue more often than it went in");
    assert_eq!(
        loss(ModelKind::Queue, "9 invoke dequeue\n 9 ok dequeue 5"),
        "queue: dequeue of what never went in"
    );
}

#[test]
fn violations_are_told_apart_by_operation_and_role() {
    let read = |first: &str, second: &str| {
        let text = format!(
            "1 invoke write {first}\n 1 ok write\n 2 invoke write {second}\n 2 ok write\n 3 invoke read\n 3 ok read {first}\n 3 \
             invoke read\n 3 ok read {second}"
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
    // With which it began is not from nowhere.
    let before = "1 invoke write 1\n 1 ok write\n 2 invoke read\n 2 ok read null";
    assert_eq!(violation(ModelKind::Register, before), "register: read cannot be");
    let two = "1 invoke acquire\n 1 ok acquire\n 2 invoke acquire\n 2 ok acquire";
    assert_eq!(violation(ModelKind::Lock, two), "lock: acquire cannot be");
    assert_eq!(violation(ModelKind::Lock, "1 invoke release\n 1 ok release"), "lock: release cannot be");
    let foreign = "1 invoke add 1\n 1 ok add\n 2 invoke read\n 2 ok read [1,8]";
    assert_eq!(
        causes(ModelKind::Set, foreign),
        (None, Some("set: read of what nothing left behind cannot be".to_owned()))
    );
}

/// Lines that were cut off at different places have one cause, and so have those of different processes.
#[test]
fn lines_that_cannot_be_used() {
    let cause = |text: &str| {
        let line = Line { vtime_ns: 1, node: "n1".to_owned(), text: text.to_owned() };
        let (_, problems) = History::read(Spec::new(ModelKind::Queue), [line]);
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

//! Tests of each operation of each model without concurrency: its effect, and the reports on impossible results.

use super::*;

/// Returns the report on a history of one process. Each operation has a name, an argument and a result. The result
/// `fail` means that the operation failed, and `info` that its outcome is unknown. Other results mean success.
fn alone(kind: ModelKind, operations: &[(&str, &str, &str)]) -> String {
    let mut text = String::new();
    for (f, argument, result) in operations {
        let (end, result) = match *result {
            "fail" | "info" => (*result, ""),
            result => ("ok", result),
        };
        text += &format!("1 invoke {f} {argument}\n1 {end} {f} {result}\n");
    }
    said(kind, &text)
}

#[test]
fn registers() {
    let register = |operations: &[_]| alone(ModelKind::Register, operations);
    assert_eq!(
        register(&[("read", "", "null"), ("write", "1", ""), ("read", "", "1"), ("get", "", "1")]),
        ""
    );
    assert_eq!(register(&[("put", "1", "\"OK\""), ("set", "null", "1"), ("read", "", "")]), "");
    assert_eq!(register(&[("write", "1", ""), ("write", "2", "fail"), ("read", "", "1")]), "");
    assert_eq!(
        register(&[("write", "1", ""), ("write", "2", "fail"), ("read", "", "2")]),
        "read of 2 by process 1 of n1 (500ms to 600ms, lines 5 and 6) cannot be: it held 1 since 200ms"
    );
    assert_eq!(
        register(&[("read", "", "0")]),
        "read of 0 by process 1 of n1 (100ms to 200ms, lines 1 and 2) cannot be: it held null"
    );
}

#[test]
fn compare_and_set() {
    let cas = |operations: &[_]| alone(ModelKind::Cas, operations);
    assert_eq!(cas(&[("cas", "[null,1]", ""), ("cas", "[1,2]", "true"), ("read", "", "2")]), "");
    assert_eq!(cas(&[("write", "1", ""), ("cas", "[2,3]", "fail"), ("read", "", "1")]), "");
    // A cas may fail even if the register holds the expected old value.
    assert_eq!(cas(&[("write", "1", ""), ("cas", "[1,3]", "fail"), ("read", "", "1")]), "");
    assert_eq!(
        cas(&[("write", "1", ""), ("cas", "[2,3]", "")]),
        "cas from 2 to 3 by process 1 of n1 (300ms to 400ms, lines 3 and 4) cannot be: it held 1 since 200ms"
    );
    assert_eq!(
        cas(&[("write", "1", ""), ("cas", "[1,3]", ""), ("read", "", "1")]),
        "read of 1 by process 1 of n1 (500ms to 600ms, lines 5 and 6) cannot be: it held 3 since 400ms"
    );
}

#[test]
fn keys_of_a_store() {
    let kv = |operations: &[_]| alone(ModelKind::Kv, operations);
    assert_eq!(kv(&[("put", "1", ""), ("delete", "", ""), ("get", "", "null"), ("del", "", "")]), "");
    assert_eq!(kv(&[("put", "1", ""), ("delete", "", "fail"), ("cas", "[1,2]", ""), ("get", "", "2")]), "");
    assert_eq!(
        kv(&[("put", "1", ""), ("delete", "", ""), ("get", "", "1")]),
        "read of 1 by process 1 of n1 (500ms to 600ms, lines 5 and 6) cannot be: it held null since 400ms"
    );
}

#[test]
fn queues() {
    let queue = |operations: &[_]| alone(ModelKind::Queue, operations);
    let (one, two) = (("enqueue", "1", ""), ("enqueue", "2", ""));
    assert_eq!(queue(&[("dequeue", "", "null"), one, two, ("dequeue", "", "1"), ("dequeue", "", "2")]), "");
    assert_eq!(queue(&[one, one, ("dequeue", "", "1"), ("dequeue", "", "1"), ("dequeue", "", "null")]), "");
    assert_eq!(queue(&[one, two, ("dequeue", "", "fail"), ("dequeue", "", "1")]), "");
    assert_eq!(
        queue(&[one, two, ("dequeue", "", "2")]),
        "dequeue of 2 by process 1 of n1 (500ms to 600ms, lines 5 and 6) cannot be: 1 was first in it"
    );
    assert_eq!(
        queue(&[one, ("dequeue", "", "1"), ("dequeue", "", "1")]),
        "dequeue of 1 by process 1 of n1 (500ms to 600ms, lines 5 and 6) cannot be: it was empty"
    );
    assert_eq!(
        queue(&[one, ("dequeue", "", "null")]),
        "dequeue of nothing by process 1 of n1 (300ms to 400ms, lines 3 and 4) cannot be: 1 was first in it"
    );
}

#[test]
fn sets() {
    let set = |operations: &[_]| alone(ModelKind::Set, operations);
    let (one, two) = (("add", "1", ""), ("add", "2", ""));
    assert_eq!(
        set(&[("read", "", "[]"), one, two, two, ("read", "", "[2,1]"), ("members", "", "[1,2]")]),
        ""
    );
    assert_eq!(set(&[one, ("remove", "1", ""), ("remove", "1", ""), ("contains", "1", "[1,false]")]), "");
    assert_eq!(set(&[one, two, ("remove", "1", ""), ("read", "", "[2]"), ("contains", "2", "[2,true]")]), "");
    assert_eq!(
        set(&[one, ("contains", "1", "[1,false]")]),
        "contains of 1 with false by process 1 of n1 (300ms to 400ms, lines 3 and 4) cannot be: it held 1"
    );
    assert_eq!(
        set(&[one, two, ("read", "", "[2]")]),
        "read of [2] by process 1 of n1 (500ms to 600ms, lines 5 and 6) cannot be: it held [1] as well"
    );
    assert_eq!(
        set(&[one, ("read", "", "[1,3]")]),
        "read of [1, 3] by process 1 of n1 (300ms to 400ms, lines 3 and 4) cannot be: it did not hold [3]"
    );
    assert_eq!(
        set(&[one, ("read", "", "[3]")]),
        "read of [3] by process 1 of n1 (300ms to 400ms, lines 3 and 4) cannot be: \
         it held [1] as well and did not hold [3]"
    );
}

#[test]
fn locks() {
    let lock = |operations: &[_]| alone(ModelKind::Lock, operations);
    assert_eq!(lock(&[("acquire", "", ""), ("release", "", ""), ("lock", "", ""), ("unlock", "", "")]), "");
    assert_eq!(lock(&[("acquire", "", ""), ("acquire", "", "fail"), ("release", "", "")]), "");
    assert_eq!(
        lock(&[("acquire", "", ""), ("acquire", "", "")]),
        "acquire by process 1 of n1 (300ms to 400ms, lines 3 and 4) cannot be: \
         process 1 of n1 held it since 200ms"
    );
    assert_eq!(
        lock(&[("release", "", "")]),
        "release by process 1 of n1 (100ms to 200ms, lines 1 and 2) cannot be: it was free"
    );
    assert_eq!(
        said(ModelKind::Lock, "1 invoke acquire\n 1 ok acquire\n 2 invoke release\n 2 ok release"),
        "release by process 2 of n1 (300ms to 400ms, lines 3 and 4) cannot be: \
         process 1 of n1 held it since 200ms"
    );
}

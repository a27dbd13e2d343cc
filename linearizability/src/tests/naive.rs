//! Oracle for tests of the check: it tries all orders of a history's operations. The history is linearizable if some
//! order explains the results.
//!
//! The oracle shares no code with the checker: it has its own operations, and its objects are JSON values.

use super::*;

/// Operation of the oracle. Its times are line numbers, from 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Naive {
    pub(super) process: u64,
    pub(super) f: &'static str,
    pub(super) argument: Value,
    pub(super) from: usize,
    pub(super) end: End,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// The outcome is unknown. The field is the line of the event `info`, or `None` if no event ends the operation.
    Unknown(Option<usize>),
    Failed(usize),
    Ok(usize, Value),
}

impl Naive {
    pub(super) fn end(&self) -> usize {
        match self.end {
            End::Ok(line, _) => line,
            End::Unknown(_) | End::Failed(_) => usize::MAX,
        }
    }
}

/// Returns the initial state of an object.
pub(super) fn nothing(kind: ModelKind) -> Value {
    if matches!(kind, ModelKind::Queue | ModelKind::Set) { json!([]) } else { Value::Null }
}

/// Returns the state after an operation, and the operation's result. Returns `None` if the operation fails without an
/// effect.
pub(super) fn happen(object: &Value, op: &Naive) -> Option<(Value, Value)> {
    let items = || object.as_array().cloned().unwrap_or_default();
    let argument = &op.argument;
    Some(match (op.f, object) {
        ("write", _) => (argument.clone(), Value::Null),
        ("cas", _) if *object == argument[0] => (argument[1].clone(), Value::Null),
        ("cas", _) => return None,
        ("delete", _) => (Value::Null, Value::Null),
        ("enqueue", _) => ([items(), vec![argument.clone()]].concat().into(), Value::Null),
        ("dequeue", _) => match items().split_first() {
            Some((first, rest)) => (rest.into(), first.clone()),
            None => (json!([]), Value::Null),
        },
        ("add" | "remove", _) => {
            let mut items = items();
            items.retain(|item| item != argument);
            if op.f == "add" {
                items.push(argument.clone());
            }
            items.sort_by_key(Value::to_string);
            (items.into(), Value::Null)
        }
        ("contains", _) => (object.clone(), json!([argument, items().contains(argument)])),
        ("read", _) => (object.clone(), object.clone()),
        ("acquire", Value::Null) => (json!(op.process), Value::Null),
        ("release", holder) if *holder == json!(op.process) => (Value::Null, Value::Null),
        _ => return None,
    })
}

/// True if the operations have a valid order.
pub(super) fn linearizable(kind: ModelKind, operations: &[Naive]) -> bool {
    let left: Vec<&Naive> = operations.iter().filter(|op| !matches!(op.end, End::Failed(_))).collect();
    any_order(&nothing(kind), &left)
}

fn any_order(object: &Value, left: &[&Naive]) -> bool {
    if left.iter().all(|op| matches!(op.end, End::Unknown(_))) {
        return true;
    }
    (0..left.len()).any(|i| {
        let op = left[i];
        if left.iter().any(|other| other.end() < op.from) {
            return false;
        }
        let Some((after, said)) = happen(object, op) else { return false };
        if let End::Ok(_, value) = &op.end
            && *value != said
        {
            return false;
        }
        let rest: Vec<&Naive> = left.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, op)| *op).collect();
        any_order(&after, &rest)
    })
}

/// Returns the operations that were invoked up to a line. Operations that end later have an unknown outcome, except
/// those that fail.
pub(super) fn until(operations: &[Naive], line: usize) -> Vec<Naive> {
    let invoked = operations.iter().filter(|op| op.from <= line).cloned();
    invoked
        .map(|mut op| {
            // An operation that fails after the line counts as failed here, too: the checker drops failed operations
            // before it looks at the part of the history up to a line.
            if let End::Ok(end, _) | End::Unknown(Some(end)) = op.end
                && end > line
            {
                op.end = End::Unknown(None);
            }
            op
        })
        .collect()
}

/// Returns the operations as the lines of a history.
pub(super) fn lines(operations: &[Naive]) -> Vec<HistoryLine> {
    let mut events: Vec<(usize, Value)> = Vec::new();
    for op in operations {
        let event = |kind: &str, value: &Value| json!({"process": op.process, "type": kind, "f": op.f, "value": value});
        events.push((op.from, event("invoke", &op.argument)));
        match &op.end {
            End::Unknown(None) => {}
            End::Unknown(Some(line)) => events.push((*line, event("info", &Value::Null))),
            End::Failed(line) => events.push((*line, event("fail", &Value::Null))),
            End::Ok(line, value) => events.push((*line, event("ok", value))),
        }
    }
    events.sort_by_key(|(line, _)| *line);
    events.into_iter().map(|(at, event)| line(at as u64, event)).collect()
}

#[test]
fn the_oracle_judges_simple_histories() {
    let op = |process, f, argument: Value, from, end| Naive { process, f, argument, from, end };
    let write = op(1, "write", json!(1), 0, End::Ok(2, Value::Null));
    let read = |value: Value| op(2, "read", Value::Null, 1, End::Ok(3, value));
    let late = |value: Value| op(2, "read", Value::Null, 3, End::Ok(4, value));
    let register = |ops: &[Naive]| linearizable(ModelKind::Register, ops);
    assert!(register(&[write.clone(), read(Value::Null)]) && register(&[write.clone(), read(json!(1))]));
    assert!(!register(&[write.clone(), read(json!(2))]));
    assert!(!register(&[write.clone(), late(Value::Null)]) && register(&[write.clone(), late(json!(1))]));
    let open = Naive { end: End::Unknown(Some(2)), ..write };
    assert!(register(&[open.clone(), late(Value::Null)]) && register(&[open, late(json!(1))]));
}

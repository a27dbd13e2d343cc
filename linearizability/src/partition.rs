//! Parts of a history that can be judged independently: a history is linearizable if and only if each part is.
//!
//! A part holds the operations of one key, or, in a set that is never read as a whole, of one element.

use std::collections::BTreeMap;

use super::model::Op;
use super::operation::{Call, Operation};
use super::reader::History;
use super::spec::ModelKind;
use super::values::V;

/// Returns, by number of the key, the operations that did not fail, in the order of invocations.
pub(super) fn by_key(history: &History) -> Vec<Vec<&Operation>> {
    let mut keys: Vec<Vec<&Operation>> = vec![Vec::new(); history.keys()];
    for operation in &history.operations {
        if let Some(key) = keys.get_mut(operation.key as usize)
            && !operation.failed()
        {
            key.push(operation);
        }
    }
    for key in &mut keys {
        // Operations without a known invocation were added at their completion.
        key.sort_by_key(|operation| operation.invoked.line);
    }
    keys
}

/// Returns the parts of a key, in the order in which they appear.
pub(super) fn parts<'h>(kind: ModelKind, operations: &[&'h Operation]) -> Vec<Vec<&'h Operation>> {
    let read_whole =
        |operation: &&Operation| operation.call == Call::Members && operation.completed().is_some();
    if kind != ModelKind::Set || operations.iter().any(read_whole) {
        return vec![operations.to_vec()];
    }
    let mut numbers: BTreeMap<V, usize> = BTreeMap::new();
    let mut parts: Vec<Vec<&Operation>> = Vec::new();
    for operation in operations {
        let (Call::Add(element) | Call::Remove(element) | Call::Contains(element)) = operation.call else {
            continue;
        };
        let number = *numbers.entry(element).or_insert(parts.len());
        if number == parts.len() {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.get_mut(number) {
            part.push(operation);
        }
    }
    parts
}

/// Returns the prefix of the part that ends with `line`: the operations that are acknowledged there, and the open ones
/// that may have changed the object. Both are in the order of invocations.
pub(super) fn until<'h>(part: &[&'h Operation], line: u64) -> (Vec<Op<'h>>, Vec<Op<'h>>) {
    let invoked = part.iter().take_while(|operation| operation.invoked.line <= line);
    let ops = invoked.map(|operation| {
        let open = operation.completed().is_none_or(|moment| moment.line > line);
        Op { operation, open }
    });
    let (open, done): (Vec<Op<'_>>, Vec<Op<'_>>) = ops.partition(|op| op.open);
    (done, open.into_iter().filter(|op| op.call().changes()).collect())
}

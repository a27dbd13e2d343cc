//! Parts of a history that can be checked independently. The history is linearizable if and only if each part is.
//!
//! A part has the operations of one key. In a set that is never read as a whole, a part has the operations of one
//! element.

use super::model::Op;
use super::operation::{Call, Operation};
use super::reader::History;
use super::spec::ModelKind;
use super::values::ByValue;

/// Returns the operations that did not fail, by the number of the key, in the order of invocations.
pub(super) fn by_key(history: &History) -> Vec<Vec<&Operation>> {
    let mut keys: Vec<Vec<&Operation>> = vec![Vec::new(); history.keys()];
    let all = || history.operations.iter().filter(|operation| !operation.failed());
    // If a history lacks the line that starts an operation, the reader adds the operation at its completion. It may
    // have started before all others, so it comes first.
    let stray = all().filter(|operation| operation.invoked.line == 0);
    for operation in stray.chain(all().filter(|operation| operation.invoked.line > 0)) {
        if let Some(key) = keys.get_mut(operation.key as usize) {
            key.push(operation);
        }
    }
    keys
}

/// Returns the parts of a key, in the order in which they first appear.
pub(super) fn parts<'h>(kind: ModelKind, operations: &[&'h Operation]) -> Vec<Vec<&'h Operation>> {
    let read_whole =
        |operation: &&Operation| operation.call == Call::Members && operation.completed().is_some();
    if kind != ModelKind::Set || operations.iter().any(read_whole) {
        return vec![operations.to_vec()];
    }
    let mut parts: ByValue<Vec<&Operation>> = ByValue::default();
    for operation in operations {
        if let Call::Add(element) | Call::Remove(element) | Call::Contains(element) = operation.call {
            parts.of(element).push(operation);
        }
    }
    parts.items
}

/// Returns the operations of the part that were invoked up to `line` of the history. The first list has the operations
/// that were acknowledged up to `line`. The second list has the other (open) operations that may have changed the
/// object. Both are in the order of invocations.
pub(super) fn until<'h>(part: &[&'h Operation], line: u64) -> (Vec<Op<'h>>, Vec<Op<'h>>) {
    let invoked = part.iter().take_while(|operation| operation.invoked.line <= line);
    let ops = invoked.map(|operation| {
        let open = operation.completed().is_none_or(|moment| moment.line > line);
        Op { operation, open }
    });
    let (open, done): (Vec<Op<'_>>, Vec<Op<'_>>) = ops.partition(|op| op.open);
    (done, open.into_iter().filter(|op| op.call().changes()).collect())
}

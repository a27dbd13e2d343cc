//! Lost writes of registers.
//!
//! A final read is a read that was invoked after all acknowledged writes had ended. Two kinds of writes explain a final
//! read of value v. The first is a write of v with unknown outcome. The second is an acknowledged write of v, if no
//! other acknowledged write was invoked after it ended. If no write explains the read, the acknowledged write that was
//! invoked last is lost.

use std::collections::BTreeSet;

use super::{Loss, Tally};
use crate::cause::LossKind;
use crate::operation::{Answer, Operation};
use crate::values::V;

pub(super) fn find(operations: &[&Operation], tally: &mut Tally<'_>) {
    let writes = || operations.iter().filter_map(|operation| Some((*operation, operation.call.leaves()?)));
    let acknowledged = || writes().filter_map(|(write, v)| Some((write, v, write.completed()?.line)));
    let Some((last, ..)) = acknowledged().max_by_key(|(write, ..)| write.invoked.line) else { return };
    let over = acknowledged().map(|(.., end)| end).max().unwrap_or(0);
    let current: BTreeSet<V> =
        acknowledged().filter(|(.., end)| *end >= last.invoked.line).map(|(_, v, _)| v).collect();
    let mut perhaps = writes().filter(|(write, _)| write.completed().is_none()).peekable();
    let mut open: BTreeSet<V> = BTreeSet::new();
    for read in operations.iter().filter(|read| read.invoked.line > over) {
        let (Some(Answer::Value(v)), Some(end)) = (read.answer(), read.completed()) else { continue };
        // A write of unknown outcome that was invoked before the end of a read may explain the read. The loop lets the
        // write also explain all reads that were invoked after this read. This explains too much if such a read ended
        // before the write was invoked. A loss may then be missed, but no false loss is reported.
        while let Some((_, v)) = perhaps.next_if(|(write, _)| write.invoked.line < end.line) {
            open.insert(v);
        }
        if !current.contains(v) && !open.contains(v) {
            tally.add(LossKind::Gone, last, |history| Loss::Replaced { read: history.describe(read) });
            return;
        }
    }
}

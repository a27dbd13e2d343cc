//! Lost and duplicated elements of queues.
//!
//! A value may be enqueued several times, so elements are counted by value. An element was dequeued too often if it has
//! more acknowledged dequeues than enqueues that did not fail.
//!
//! Elements are lost if two conditions hold. First, a dequeue that was invoked after the end of every acknowledged
//! enqueue found the queue empty. Second, more elements lack a dequeue than there are dequeues of unknown outcome.

use super::{Loss, Tally};
use crate::cause::LossKind;
use crate::operation::{Answer, Call, Operation};
use crate::values::{ByValue, NULL};

#[derive(Default)]
struct Element<'h> {
    acknowledged: u64,
    unknown: u64,
    dequeued: u64,
    /// Acknowledged enqueue of the value that was invoked last. `None` if no enqueue was acknowledged.
    enqueue: Option<&'h Operation>,
    /// Acknowledged dequeue of the value that was invoked last. `None` if no dequeue was acknowledged.
    dequeue: Option<&'h Operation>,
}

pub(super) fn find(operations: &[&Operation], tally: &mut Tally<'_>) {
    let mut elements: ByValue<Element<'_>> = ByValue::default();
    let (mut over, mut excused, mut empty) = (0, 0, None);
    for operation in operations {
        match (operation.call, operation.answer()) {
            (Call::Enqueue(v), None) => elements.of(v).unknown += 1,
            (Call::Enqueue(v), Some(_)) => {
                let element = elements.of(v);
                element.acknowledged += 1;
                element.enqueue = Some(operation);
                over = over.max(operation.completed().map_or(0, |moment| moment.line));
            }
            (Call::Dequeue, None) => excused += 1,
            (Call::Dequeue, Some(Answer::Value(NULL))) => empty = Some(*operation),
            (Call::Dequeue, Some(Answer::Value(v))) => {
                let element = elements.of(*v);
                element.dequeued += 1;
                element.dequeue = Some(operation);
            }
            _ => {}
        }
    }
    let stuck = |element: &Element<'_>| element.acknowledged.saturating_sub(element.dequeued);
    let missing: u64 = elements.items.iter().map(stuck).sum();
    let empty = empty.filter(|empty| empty.invoked.line > over && missing > excused);
    for (_, element) in elements.iter() {
        let enqueued = element.acknowledged + element.unknown;
        if let Some(dequeue) = element.dequeue.filter(|_| element.dequeued > enqueued) {
            let dequeued = element.dequeued;
            let kind = if enqueued == 0 { LossKind::NeverIn } else { LossKind::TooOften };
            tally.add(kind, dequeue, |_| Loss::Twice { dequeued, enqueued });
        }
        if let (Some(enqueue), Some(empty), true) = (element.enqueue, empty, stuck(element) > 0) {
            tally.add(LossKind::Gone, enqueue, |history| Loss::Stuck {
                empty: history.describe(empty),
                missing,
                excused,
            });
        }
    }
}

//! Lost elements of sets.
//!
//! After an acknowledged add, an element must be in the set if each of its removes was acknowledged before the add was
//! invoked. The element is lost if a final read says that it is absent: either the last read of the whole set, or the
//! last `contains` with the result false. A read is final if it was invoked after the end of every acknowledged add and
//! remove of the element.

use super::{Loss, Tally};
use crate::cause::LossKind;
use crate::operation::{Answer, Call, Operation};
use crate::values::ByValue;

#[derive(Default)]
struct Element<'h> {
    /// The acknowledged add of the element that was invoked last. `None` if there is none.
    add: Option<&'h Operation>,
    /// Number of the history's line at which the last acknowledged add or remove ended.
    over: u64,
    /// Number of the line at which the last remove ended. `u64::MAX` if the outcome of a remove is unknown.
    removed: u64,
    /// Last `contains` of the element with the result false. `None` if there is none.
    absent: Option<&'h Operation>,
}

pub(super) fn find(operations: &[&Operation], tally: &mut Tally<'_>) {
    let mut elements: ByValue<Element<'_>> = ByValue::default();
    let mut whole = None;
    for operation in operations {
        let end = operation.completed().map(|moment| moment.line);
        match (operation.call, operation.answer()) {
            (Call::Add(v), answer) => {
                let element = elements.of(v);
                if answer.is_some() {
                    element.add = Some(operation);
                    element.over = element.over.max(end.unwrap_or(0));
                }
            }
            (Call::Remove(v), _) => {
                let element = elements.of(v);
                element.removed = element.removed.max(end.unwrap_or(u64::MAX));
                element.over = element.over.max(end.unwrap_or(0));
            }
            (Call::Contains(v), Some(Answer::Holds(false))) => {
                elements.of(v).absent = Some(operation);
            }
            (Call::Members, Some(Answer::Members(members))) => whole = Some((*operation, members)),
            _ => {}
        }
    }
    for (v, element) in elements.iter() {
        let Some(add) = element.add.filter(|add| add.invoked.line > element.removed) else { continue };
        let is_final = |read: &&Operation| read.invoked.line > element.over;
        let not_in = whole.filter(|(_, members)| members.binary_search(&v).is_err()).map(|(read, _)| read);
        if let Some(read) = not_in.filter(is_final).or(element.absent.filter(is_final)) {
            tally.add(LossKind::Gone, add, |history| Loss::Missing { read: history.describe(read) });
        }
    }
}

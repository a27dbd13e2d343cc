//! A plan as an executor walks it: starts and ends in exact order, and a place in them that a moment can hold.

use everett_fault::Fault;
use serde::{Deserialize, Serialize};

use super::calm::Calm;
use super::{Entry, What};

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds of vtime after *ready*.
    pub at_ns: u64,
    /// Which entry of the plan it belongs to, from 0: a start and its end have the same.
    pub id: u32,
    /// What.
    pub what: Happening,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happening {
    /// A fault starts. One that does not last is over with it and has no end.
    Start(Fault),
    /// The fault with this id ends.
    End,
    /// All that can end has ended: the world heals. For how long nothing is done to it, the plan's entry says.
    HealAll,
}

impl Happening {
    /// At one time, faults end before the world heals, and others start after that.
    fn rank(&self) -> u8 {
        match self {
            Happening::End => 0,
            Happening::HealAll => 1,
            Happening::Start(_) => 2,
        }
    }
}

/// All events of a plan, in the order in which they happen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Events {
    list: Vec<Event>,
}

/// A place in the events of a plan: how many of them have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Cursor {
    happened: u64,
}

impl Events {
    pub(super) fn of(entries: &[Entry]) -> Events {
        let calm = Calm::of(entries.iter().enumerate());
        let mut list = Vec::new();
        for (id, entry) in (0u32..).zip(entries) {
            let at_ns = entry.at_ns;
            match &entry.what {
                What::Heal | What::Quiet => list.push(Event { at_ns, id, what: Happening::HealAll }),
                What::Fault(fault) => {
                    list.push(Event { at_ns, id, what: Happening::Start(fault.clone()) });
                    let end = calm.end(at_ns, entry.for_ns, fault);
                    list.extend(end.map(|at_ns| Event { at_ns, id, what: Happening::End }));
                }
            }
        }
        list.sort_by_key(|event| (event.at_ns, event.what.rank(), event.id));
        Events { list }
    }

    /// All of them. An event's index is its sequence number.
    #[must_use]
    pub fn all(&self) -> &[Event] {
        &self.list
    }

    /// Whether what has happened up to this place is the same in both.
    #[must_use]
    pub fn agree_up_to(&self, cursor: &Cursor, other: &Events) -> bool {
        let happened = usize::try_from(cursor.happened).unwrap_or(usize::MAX);
        match (self.list.get(..happened), other.list.get(..happened)) {
            (Some(here), Some(there)) => here == there,
            _ => false,
        }
    }

    /// The event that happens next.
    #[must_use]
    pub fn next(&self, cursor: &Cursor) -> Option<&Event> {
        self.list.get(usize::try_from(cursor.happened).ok()?)
    }

    /// The next event if its time has come, in nanoseconds after *ready*; the cursor passes it. Call until there is none.
    pub fn due(&self, cursor: &mut Cursor, now_ns: u64) -> Option<&Event> {
        let event = self.next(cursor).filter(|event| event.at_ns <= now_ns)?;
        cursor.happened += 1;
        Some(event)
    }
}

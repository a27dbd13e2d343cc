//! Events of a fault plan in the order of execution, and a position in them that moments store. An event is the start
//! of a fault, its end, or a heal, which ends all faults except permanent power losses.

use everett_fault::Fault;
use serde::{Deserialize, Serialize};

use super::quiet_periods::QuietPeriods;
use super::{PlanEntry, What};

/// Start or end of a fault, or a heal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Vtime of the event, in nanoseconds after *ready*, the time at which all services of the world are up.
    pub at_ns: u64,
    /// Index of the event's entry in the plan. A start and its end have the same index.
    pub id: u32,
    /// Kind of the event.
    pub what: Happening,
}

/// Kind of event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happening {
    /// A fault starts. Instantaneous faults have no end event.
    Start(Fault),
    /// The fault of this entry ends.
    End,
    /// The world heals: all faults end, except permanent power losses. A quiet period (a time without faults)
    /// also begins with this event. The plan's entry has the length of the period.
    HealAll,
}

impl Happening {
    /// Returns the order of simultaneous events: faults end, then the world heals, then faults start.
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

/// Position in the events of a plan: the number of events that have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Cursor {
    happened: u64,
}

impl Events {
    pub(super) fn of(entries: &[PlanEntry]) -> Events {
        let periods = QuietPeriods::of(entries.iter().enumerate());
        let mut list = Vec::new();
        for (id, entry) in (0u32..).zip(entries) {
            let at_ns = entry.at_ns;
            match &entry.what {
                What::Heal | What::Quiet => list.push(Event { at_ns, id, what: Happening::HealAll }),
                What::Fault(fault) => {
                    list.push(Event { at_ns, id, what: Happening::Start(fault.clone()) });
                    let end = periods.end(at_ns, entry.for_ns, fault);
                    list.extend(end.map(|at_ns| Event { at_ns, id, what: Happening::End }));
                }
            }
        }
        list.sort_by_key(|event| (event.at_ns, event.what.rank(), event.id));
        Events { list }
    }

    /// Returns all events. A cursor's value is the index of its next event.
    #[must_use]
    pub fn all(&self) -> &[Event] {
        &self.list
    }

    /// Returns the position after the last event.
    #[must_use]
    pub fn end(&self) -> Cursor {
        Cursor { happened: self.list.len() as u64 }
    }

    /// Returns true if both plans have the same events before this cursor. Returns false if the cursor is
    /// beyond the last event of a plan.
    #[must_use]
    pub fn agree_up_to(&self, cursor: &Cursor, other: &Events) -> bool {
        let happened = usize::try_from(cursor.happened).unwrap_or(usize::MAX);
        match (self.list.get(..happened), other.list.get(..happened)) {
            (Some(here), Some(there)) => here == there,
            _ => false,
        }
    }

    /// Returns the event at the cursor, or `None` after the last event.
    #[must_use]
    pub fn next(&self, cursor: &Cursor) -> Option<&Event> {
        self.list.get(usize::try_from(cursor.happened).ok()?)
    }

    /// Returns the next event if it is due at `now_ns`, in nanoseconds after *ready*, and moves the cursor past the
    /// event. The caller repeats the call until it returns `None`.
    pub fn due(&self, cursor: &mut Cursor, now_ns: u64) -> Option<&Event> {
        let event = self.next(cursor).filter(|event| event.at_ns <= now_ns)?;
        cursor.happened += 1;
        Some(event)
    }
}

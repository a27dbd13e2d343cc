//! Clock mode `branch`: at which boundaries a machine looks at what is due, and what its TSC shows from one to the next.
//!
//! A processor cannot be stopped at an exact place for nothing: each such stop costs a signal and a stretch on the soft CPU.
//! So what is due waits for the guest's next exit, and only if it computes [`LATE_NS`] without one it is stopped for that.
//! A stop that somebody else asks for (a horizon, a digest, a moment) is at an exact place too, and nothing is looked at
//! there: it must change nothing.
//!
//! **Invariant.** Where a machine looks is a function of its state, of which this is a part: where and how often its runs
//! stopped shows nowhere.

use serde::{Deserialize, Serialize};

use crate::clock::{NANOS, TSC_HZ};
use crate::engine::TscAnchor;

// The TSC shows nanoseconds.
const _: () = assert!(TSC_HZ == NANOS);

/// How long a guest computes without an exit past something that is due, in nanoseconds of vtime, before it is stopped for it.
pub const LATE_NS: u64 = 10_000_000;

/// Where a machine is between two looks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// Nothing was executed since an exit of the guest's.
    behind_exit: bool,
    /// What the TSC shows, without what the guest added to it.
    tsc: u64,
}

impl Slice {
    /// Whether the machine looks, here and `now`, at what is due; the first of it was due at `next`.
    pub(crate) fn looks(&self, now: u64, next: Option<u64>) -> bool {
        self.behind_exit || next.is_some_and(|next| now >= latest(next))
    }
    /// The machine looks, and its TSC shows this from here on.
    pub(crate) fn look(&mut self, tsc: u64) {
        self.tsc = tsc;
    }
    /// The guest has finished an exit, or goes on.
    pub(crate) fn set_behind_exit(&mut self, behind: bool) {
        self.behind_exit = behind;
    }
    /// What the TSC shows.
    pub(crate) fn tsc(&self) -> TscAnchor {
        TscAnchor { icount: 0, tsc: self.tsc, num: 0, den: 1 }
    }
}

/// When the guest is stopped for something that is due at `next`, if it has no exit before.
pub(crate) fn latest(next: u64) -> u64 {
    next.saturating_add(LATE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_all_of_it() {
        let slice = Slice { behind_exit: true, tsc: 7 };
        let stored = postcard::to_stdvec(&slice).unwrap();
        assert_eq!(postcard::from_bytes::<Slice>(&stored).unwrap(), slice);
    }

    #[test]
    fn it_looks_behind_exits_and_where_something_has_been_due_for_long() {
        let mut slice = Slice::default();
        assert!(!slice.looks(5, None) && !slice.looks(5, Some(5)) && !slice.looks(4 + LATE_NS, Some(5)));
        assert!(slice.looks(5 + LATE_NS, Some(5)));
        slice.set_behind_exit(true);
        assert!(slice.looks(5, None));
    }
}

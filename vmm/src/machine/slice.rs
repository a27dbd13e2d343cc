//! Clock mode `branch`: the boundaries at which a machine dispatches due events, and the TSC values between them.
//!
//! Stopping a processor at an exact place is expensive: each such stop costs a signal and a stretch on the soft CPU.
//! So due events wait for the guest's next exit, and the guest is stopped only if it computes for [`LATE_NS`] without
//! one. A stop that the caller requests (a horizon, a digest, a moment) is at an exact place too, but dispatches no
//! events there, because it must change nothing.
//!
//! **Invariant.** The places where a machine dispatches events are a function of its state, of which this is a part.
//! Where and how often its runs stopped has no influence.

use serde::{Deserialize, Serialize};

use crate::clock::{NANOS, TSC_HZ};
use crate::engine::TscAnchor;

// The TSC counts nanoseconds.
const _: () = assert!(TSC_HZ == NANOS);

/// Time for which a guest may compute past a due event without an exit, in nanoseconds of vtime. Then it is stopped
/// for the event.
pub const LATE_NS: u64 = 10_000_000;

/// State between two places where events are dispatched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// True if nothing was executed since the guest's last exit.
    after_exit: bool,
    /// Value of the TSC, without the offset that the guest added.
    tsc: u64,
}

impl Slice {
    /// True if due events are dispatched here, at `now`. `next` is the time of the first one.
    pub(crate) fn dispatches(&self, now: u64, next: Option<u64>) -> bool {
        self.after_exit || next.is_some_and(|next| now >= latest(next))
    }
    /// Sets the value of the TSC from here on, at a place where events are dispatched.
    pub(crate) fn set_tsc(&mut self, tsc: u64) {
        self.tsc = tsc;
    }
    /// Notes that the guest has finished an exit (true), or continues (false).
    pub(crate) fn set_after_exit(&mut self, after: bool) {
        self.after_exit = after;
    }
    /// Returns the TSC's anchor: a constant value.
    pub(crate) fn tsc(&self) -> TscAnchor {
        TscAnchor { icount: 0, tsc: self.tsc, num: 0, den: 1 }
    }
}

/// Returns the vtime at which the guest is stopped for an event that is due at `next`, unless it has an exit before.
pub(crate) fn latest(next: u64) -> u64 {
    next.saturating_add(LATE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_is_complete() {
        let slice = Slice { after_exit: true, tsc: 7 };
        let stored = postcard::to_stdvec(&slice).unwrap();
        assert_eq!(postcard::from_bytes::<Slice>(&stored).unwrap(), slice);
    }

    #[test]
    fn events_are_dispatched_after_exits_and_when_they_have_been_due_for_long() {
        let mut slice = Slice::default();
        assert!(
            !slice.dispatches(5, None)
                && !slice.dispatches(5, Some(5))
                && !slice.dispatches(4 + LATE_NS, Some(5))
        );
        assert!(slice.dispatches(5 + LATE_NS, Some(5)));
        slice.set_after_exit(true);
        assert!(slice.dispatches(5, None));
    }
}

//! Decides, in clock mode `branch`, when a machine dispatches due events (expired timers, for example), and which TSC
//! value the guest reads until then. In this mode, vtime advances with the guest's retired conditional branches. Events
//! are dispatched only at boundaries, i.e. at points between two instructions where the engine returns control to the
//! machine's run loop.
//!
//! Stopping a processor at an exact branch is expensive: each stop costs a signal and some execution on the soft CPU.
//! Due events therefore wait for the guest's next exit. If the guest computes for [`LATE_NS`] without an exit, the
//! machine stops it for the event. A stop that the caller requests (a horizon, a digest, a moment) is at an exact
//! branch, too. The machine dispatches no events there, because the stop must not change the execution.
//!
//! **Invariant.** The machine's state, which includes [`Slice`], determines when the machine dispatches events. Stops
//! that the caller requests have no influence.

use serde::{Deserialize, Serialize};

use crate::clock::{NANOS, TSC_HZ};
use crate::engine::TscAnchor;

// The TSC counts nanoseconds.
const _: () = assert!(TSC_HZ == NANOS);

/// Maximum time that a guest may compute past a due event without an exit, in nanoseconds of vtime. Then the machine
/// stops the guest for the event.
pub const LATE_NS: u64 = 10_000_000;

/// State between two boundaries at which events are dispatched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// True if the guest has executed nothing since its last exit.
    after_exit: bool,
    /// TSC value, without the offset that the guest added.
    tsc: u64,
}

impl Slice {
    /// True if due events are dispatched at vtime `now`. `next` is the vtime of the next scheduled event.
    pub(crate) fn dispatches(&self, now: u64, next: Option<u64>) -> bool {
        self.after_exit || next.is_some_and(|next| now >= latest(next))
    }
    /// Sets the TSC value from now on. Called when events are dispatched and when the CPU takes an interrupt.
    pub(crate) fn set_tsc(&mut self, tsc: u64) {
        self.tsc = tsc;
    }
    /// Notes that the guest has finished an exit (true) or has executed further (false).
    pub(crate) fn set_after_exit(&mut self, after: bool) {
        self.after_exit = after;
    }
    /// Returns an anchor that makes the TSC constant.
    pub(crate) fn tsc(&self) -> TscAnchor {
        TscAnchor { icount: 0, tsc: self.tsc, num: 0, den: 1 }
    }
}

/// Returns the vtime at which the machine stops the guest for an event that is due at `next`, if no exit comes before.
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

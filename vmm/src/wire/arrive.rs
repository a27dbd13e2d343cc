//! Passes arriving frames from the end of a link to a card.

use super::log::{DropReason, FrameStepKind};
use super::{Delivery, READY_FRAMES_MAX, Wire, is_late, step};

impl Wire {
    /// Returns the vtime, in nanoseconds, of the next arrival that the wire's owner (a world or a test) has not taken.
    /// Returns `None` if there is none, i.e. if each frame on its way is held by a fault or goes to a node that
    /// has no power or whose card is clogged (stopped by a fault). Later calls to the wire may add an earlier arrival.
    #[must_use]
    pub fn next_delivery(&self) -> Option<u64> {
        let state = &self.state;
        let arrives = |to: u8| self.is_attached(to) && !state.faults.clogs(to);
        let on_way = || state.flight.way().find(|(_, item)| arrives(item.to)).map(|(due, _)| due);
        state.flight.ready.front().map(|delivery| delivery.at).or_else(on_way)
    }

    /// Takes the next frame that arrives at `now` or before, in the order of arrival. Frames with the same vtime of
    /// arrival come in the order of sending. The caller repeats the call until it returns `None`.
    pub fn pop_due(&mut self, now: u64) -> Option<Delivery> {
        self.advance(now);
        let ready = &mut self.state.flight.ready;
        if ready.front()?.at > now { None } else { ready.pop_front() }
    }

    /// Decides all arrivals up to vtime `to`: each frame is passed to the wire's owner, held by a fault, or lost.
    pub(super) fn advance(&mut self, to: u64) {
        while let Some((due, item)) = self.state.flight.arrive(to) {
            if !self.is_attached(item.to) {
                self.lose(&item, due, DropReason::Detached);
            } else if self.state.faults.clogs(item.to) {
                if let Err(item) = self.state.flight.held_up.push(item) {
                    self.lose(&item, due, DropReason::Bound);
                }
            } else if self.state.flight.ready.len() >= READY_FRAMES_MAX {
                self.lose(&item, due, DropReason::Bound);
            } else {
                let kind = if item.copy {
                    FrameStepKind::Duplicate
                } else if is_late(item.sent_at, due) {
                    FrameStepKind::Timeout
                } else {
                    FrameStepKind::Deliver
                };
                self.log.push(step(&item, due, kind));
                let delivery = Delivery { at: due, port: item.to, frame: item.frame, bytes: item.bytes };
                self.state.flight.ready.push_back(delivery);
            }
        }
        self.state.now = self.state.now.max(to);
    }
}

//! Changes of a wire: faults begin and end, nodes lose and regain power. A *direction* is the way from one node to
//! another; each direction has its own queue.
//!
//! A change takes effect after the arrivals of the same vtime. A fault applies to frames that are sent while it is
//! active. Partitions, clogs (which stop a node's card) and bandwidth limits also apply to frames that are in a queue
//! when the fault begins. A clogged node receives no frame, whenever the frame was sent. All other frames that have
//! left their queue arrive.

use std::collections::BTreeSet;

use everett_fault::NetworkFault;
use everett_fault::limits::NETWORK_FAULTS_MAX;

use super::active::{Active, Effect, FaultError};
use super::log::DropReason;
use super::{PORTS_MAX, Wire};

impl Wire {
    /// Begins a fault at vtime `at`, with a number that the caller chooses. Faults act in ascending order of their
    /// numbers.
    ///
    /// # Errors
    /// Returns an error if the fault is invalid for this wire, the number is in use, or too many faults are active. The
    /// wire is then unchanged.
    pub fn apply(&mut self, id: u64, fault: &NetworkFault, at: u64) -> Result<(), FaultError> {
        let active = Active::resolve(fault, &self.state.topology)?;
        let faults = &self.state.faults.0;
        if faults.contains_key(&id) {
            return Err(FaultError::Active(id));
        }
        if faults.len() >= NETWORK_FAULTS_MAX {
            return Err(FaultError::TooMany);
        }
        let at = self.change(at);
        self.state.faults.0.insert(id, active.clone());
        match active.effect {
            Effect::Bandwidth(_) => self.requeue(&[active], at),
            Effect::Drop | Effect::Hold | Effect::Clog(_) => self.cut(&active, at),
            _ => (),
        }
        Ok(())
    }

    /// Ends a fault. Frames that only this fault held move on. Returns false if no active fault has this number.
    pub fn heal(&mut self, id: u64, at: u64) -> bool {
        let at = self.change(at);
        let Some(gone) = self.state.faults.0.remove(&id) else { return false };
        self.ended(&[gone], at);
        true
    }

    /// Ends all faults. Frames that they held move on.
    pub fn heal_all(&mut self, at: u64) {
        let at = self.change(at);
        let gone: Vec<Active> = std::mem::take(&mut self.state.faults.0).into_values().collect();
        self.ended(&gone, at);
    }

    /// Iterates over the numbers of the active faults, in ascending order.
    pub fn faults(&self) -> impl Iterator<Item = u64> {
        self.state.faults.0.keys().copied()
    }

    /// Cuts the power of the node at `port`.
    ///
    /// Frames in the node's card are lost; frames on their way continue. From now on the node sends nothing, frames
    /// that arrive for it are lost, and the switch forgets the addresses behind its port.
    pub fn detach(&mut self, port: u8, at: u64) {
        let at = self.change(at);
        self.state.attached &= !(1 << (port % PORTS_MAX as u8));
        self.state.table.forget(port);
        let flight = &mut self.state.flight;
        let mut lost = flight.held_back.take(|item| item.from == port && item.in_card);
        let queues = flight.take_queued(&self.state.topology, |from, _| from == port, at);
        lost.extend(queues.into_values().flatten());
        for item in lost {
            self.lose(&item, at, DropReason::Detached);
        }
    }

    /// Gives the node at `port` power.
    pub fn attach(&mut self, port: u8, at: u64) {
        self.change(at);
        self.state.attached |= 1 << (port % PORTS_MAX as u8);
    }

    /// Advances the wire to a change at `at`, and returns the vtime of the change. Before the change, the wire handles
    /// each frame that arrives up to this vtime: it passes the frame on, holds it or loses it.
    fn change(&mut self, at: u64) -> u64 {
        debug_assert!(at >= self.state.now.max(self.state.last.0), "{at} after {}", self.state.now);
        let at = at.max(self.state.now).max(self.state.last.0);
        self.state.last = (at, 0);
        self.advance(at);
        self.state.flight.settle(at);
        at
    }

    /// Empties the queues of the directions that a fault affects. If the fault is a partition that drops frames, the
    /// frames from these queues are lost. Otherwise the fault holds the frames at their senders' ends.
    fn cut(&mut self, active: &Active, at: u64) {
        let state = &mut self.state;
        let queues =
            state.flight.take_queued(&state.topology, |from, to| active.pairs.contains(from, to), at);
        for mut item in queues.into_values().flatten() {
            if active.effect == Effect::Drop {
                self.lose(&item, at, DropReason::Partition);
                continue;
            }
            item.in_card = self.state.faults.clogs(item.from);
            if let Err(item) = self.state.flight.held_back.push(item) {
                self.lose(&item, at, DropReason::Bound);
            }
        }
    }

    /// Releases the frames that ended faults have held, and adapts queues to the new bandwidth.
    fn ended(&mut self, gone: &[Active], at: u64) {
        self.requeue(gone, at);
        if gone.iter().any(|active| matches!(active.effect, Effect::Hold | Effect::Clog(_))) {
            self.release_up(at);
            self.release_back(at);
        }
    }

    /// Adapts queues to the bandwidth limits among the faults `changed`, which have just begun or ended. Frames in the
    /// queue of a direction with a changed limit leave at the bandwidth that applies from now on.
    fn requeue(&mut self, changed: &[Active], at: u64) {
        let bandwidths: Vec<&Active> =
            changed.iter().filter(|active| matches!(active.effect, Effect::Bandwidth(_))).collect();
        let meant = |from, to| bandwidths.iter().any(|active| active.pairs.contains(from, to));
        let state = &mut self.state;
        for (direction, items) in state.flight.take_queued(&state.topology, meant, at) {
            let link = state.topology.link(direction).bits_per_s;
            let bits_per_s =
                items.first().map_or(link, |first| state.faults.bandwidth(first.from, first.to, link));
            state.flight.requeue(direction, items, at, bits_per_s);
        }
    }

    /// Lets frames that waited at formerly clogged receivers arrive one lookahead (the minimum latency of all links)
    /// from now. Later frames of the same directions arrive no earlier.
    fn release_up(&mut self, at: u64) {
        let state = &mut self.state;
        let faults = &state.faults;
        let floor = at.saturating_add(state.topology.lookahead());
        let items = state.flight.held_up.take(|item| !faults.clogs(item.to));
        let directions: BTreeSet<usize> =
            items.iter().map(|item| state.topology.direction(item.from, item.to)).collect();
        for item in items {
            state.flight.put(floor, item);
        }
        state.flight.not_before(&state.topology, &directions, floor);
    }

    /// Moves frames that no fault holds any more from their senders' ends into the queues. The maximum size of a queue
    /// does not apply to these frames. Frames that a partition drops are lost instead.
    fn release_back(&mut self, at: u64) {
        let faults = &self.state.faults;
        self.state.flight.held_back.leave_cards(|port| faults.clogs(port));
        for item in self.state.flight.held_back.take(|item| !faults.holds(item.from, item.to)) {
            if self.state.faults.cuts(item.from, item.to) {
                self.lose(&item, at, DropReason::Partition);
            } else {
                self.launch(item, at);
            }
        }
    }
}

//! Faults begin and end, nodes lose power and get it back.
//!
//! A change happens after what arrives at its vtime. Faults are about frames that are sent while they last. Partitions, clogs
//! and bandwidth are also about frames that are in a queue when they begin, and a clogged node gets nothing, whenever it was
//! sent. What has left its queue otherwise arrives.

use std::collections::BTreeSet;

use everett_fault::Fault;
use everett_fault::limits::NETWORK_FAULTS_MAX;

use super::active::{Active, Effect, FaultError};
use super::log::Why;
use super::{PORTS_MAX, Wire};

impl Wire {
    /// A fault begins, under a number that is the caller's. Faults act in the order of their numbers.
    ///
    /// # Errors
    /// When it is none for this wire, or too much: why. Then nothing has changed.
    pub fn apply(&mut self, id: u64, fault: &Fault, at: u64) -> Result<(), FaultError> {
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

    /// A fault ends. What only it held goes on. Returns false when there is no such fault.
    pub fn heal(&mut self, id: u64, at: u64) -> bool {
        let at = self.change(at);
        let Some(gone) = self.state.faults.0.remove(&id) else { return false };
        self.ended(&[gone], at);
        true
    }

    /// All faults end.
    pub fn heal_all(&mut self, at: u64) {
        let at = self.change(at);
        let gone: Vec<Active> = std::mem::take(&mut self.state.faults.0).into_values().collect();
        self.ended(&gone, at);
    }

    /// The numbers of the faults that are active.
    pub fn faults(&self) -> impl Iterator<Item = u64> {
        self.state.faults.0.keys().copied()
    }

    /// The node at `port` loses power. What was in its card is lost; what is on its way goes on. From here on it sends
    /// nothing, and what arrives for it is lost. The switch forgets its addresses.
    pub fn detach(&mut self, port: u8, at: u64) {
        let at = self.change(at);
        self.state.attached &= !(1 << (port % PORTS_MAX as u8));
        self.state.table.forget(port);
        let flight = &mut self.state.flight;
        let mut lost = flight.held_back.take(|item| item.from == port && item.in_card);
        let queues = flight.take_queued(&self.state.topology, |from, _| from == port, at);
        lost.extend(queues.into_values().flatten());
        for item in lost {
            self.lose(&item, at, Why::Detached);
        }
    }

    /// The node at `port` has power.
    pub fn attach(&mut self, port: u8, at: u64) {
        self.change(at);
        self.state.attached |= 1 << (port % PORTS_MAX as u8);
    }

    /// Something changes at `at`: what arrives until then has.
    fn change(&mut self, at: u64) -> u64 {
        debug_assert!(at >= self.state.now.max(self.state.last.0), "{at} after {}", self.state.now);
        let at = at.max(self.state.now).max(self.state.last.0);
        self.state.last = (at, 0);
        self.advance(at);
        self.state.flight.settle(at);
        at
    }

    /// Nothing more gets through: what is in queues waits before them, or is lost.
    fn cut(&mut self, active: &Active, at: u64) {
        let state = &mut self.state;
        let queues =
            state.flight.take_queued(&state.topology, |from, to| active.pairs.contains(from, to), at);
        for mut item in queues.into_values().flatten() {
            if active.effect == Effect::Drop {
                self.lose(&item, at, Why::Partition);
                continue;
            }
            item.in_card = self.state.faults.clogs(item.from);
            if let Err(item) = self.state.flight.held_back.push(item) {
                self.lose(&item, at, Why::Bound);
            }
        }
    }

    /// These faults have ended.
    fn ended(&mut self, gone: &[Active], at: u64) {
        self.requeue(gone, at);
        if gone.iter().any(|active| matches!(active.effect, Effect::Hold | Effect::Clog(_))) {
            self.release_up(at);
            self.release_back(at);
        }
    }

    /// What is in queues is sent at another bandwidth from here on, if any of these faults is about that.
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

    /// What waits at receivers that are clogged no longer arrives, and nothing of its directions before it.
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

    /// What waits at senders and need not gets into their queues, which have room for it.
    fn release_back(&mut self, at: u64) {
        let faults = &self.state.faults;
        self.state.flight.held_back.leave_cards(|port| faults.clogs(port));
        for item in self.state.flight.held_back.take(|item| !faults.holds(item.from, item.to)) {
            if self.state.faults.cuts(item.from, item.to) {
                self.lose(&item, at, Why::Partition);
            } else {
                self.launch(item, at);
            }
        }
    }
}

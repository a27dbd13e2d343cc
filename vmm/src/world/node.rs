//! A node of a world: a machine with its clock, its power, and faults of its CPU.

use std::collections::VecDeque;

use chacha20::rand_core::Rng;
use everett_fault::{Distribution, PPM, Ppm};
use everett_streams::Purpose;
use serde::{Deserialize, Serialize};

use super::clock::NodeClock;
use crate::clock::VTIME_MAX;
use crate::machine::{End, Machine, Stop, Until};
use crate::wire::READY_FRAMES_MAX;

/// State of a node except its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    pub(super) clock: NodeClock,
    pub(super) paused: bool,
    pub(super) stalls: Option<Stalls>,
    /// Frames that arrive in this round (the interval of vtime that all nodes run before they exchange frames again).
    /// Each has the world's vtime of arrival; they are in the order of arrival.
    pub(super) arriving: VecDeque<(u64, Vec<u8>)>,
    /// Value of [`Node::retired`] at the node's last power loss; 0 before the first power loss.
    retired_before: u64,
    /// Value of [`Machine::icount`] when the machine last started or lost power. A machine that was restored from a
    /// moment starts with the count of that moment; a new machine starts with 0.
    started_at: u64,
}

/// Fault that stalls the node at random instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stalls {
    every: u64,
    stall: Distribution,
    /// Value of [`Machine::icount`] at which the next stall comes.
    next: u64,
}

/// One node of a world.
pub struct Node {
    pub(super) machine: Machine,
    pub(super) state: NodeState,
    /// Value of [`Node::retired`] at which runs of the world stop. `u64::MAX` if no observer has asked for one.
    stop_at: u64,
}

impl NodeState {
    /// True if a decoded state is valid.
    pub(super) fn is_sound(&self) -> bool {
        let stalls = self.stalls.as_ref();
        stalls.is_none_or(|stalls| stalls.every > 0 && stalls.stall.check().is_ok())
            && self.arriving.len() <= READY_FRAMES_MAX
            && self.arriving.iter().is_sorted_by_key(|(at, _)| *at)
    }
}

impl Node {
    pub(super) fn new(machine: Machine, world_ns: u64) -> Node {
        let clock = NodeClock::started(world_ns);
        let (paused, stalls, arriving) = (false, None, VecDeque::new());
        let state = NodeState { clock, paused, stalls, arriving, retired_before: 0, started_at: 0 };
        Node::of(machine, state)
    }

    /// Returns a node without an observer.
    pub(super) fn of(machine: Machine, state: NodeState) -> Node {
        Node { machine, state, stop_at: u64::MAX }
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }
    /// Returns the machine, to take its output or to act on it.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }
    /// Returns the node's clock relative to the world's.
    pub fn clock(&self) -> &NodeClock {
        &self.state.clock
    }
    /// Returns the world's vtime that the node has reached, in nanoseconds.
    pub fn vtime(&self) -> u64 {
        self.state.clock.world(self.machine.vtime())
    }
    /// Returns the number of instructions that the node has retired, also before power losses. In another clock mode
    /// than the default, counts that mode's unit instead. If a machine was restored from a moment, its count up to that
    /// moment is left out.
    pub fn retired(&self) -> u64 {
        let now = self.machine.icount().saturating_sub(self.state.started_at);
        self.state.retired_before.saturating_add(now)
    }
    /// Makes runs of the world stop with [`Stop::Count`] when [`Node::retired`] reaches `retired`. Each run stops there until
    /// the caller sets a higher count; `u64::MAX` sets none. The stop is not part of the node's state.
    pub fn stop_at(&mut self, retired: u64) {
        self.stop_at = retired;
    }
    /// Returns the count of the current machine at which [`Node::retired`] is `retired`.
    fn count_of(&self, retired: u64) -> u64 {
        let more = retired.saturating_sub(self.state.retired_before);
        if retired == u64::MAX { u64::MAX } else { self.state.started_at.saturating_add(more) }
    }
    /// True if the node has power and its machine has not ended by itself.
    pub fn is_on(&self) -> bool {
        self.machine.end().is_none()
    }
    /// True if the node is paused.
    pub fn is_paused(&self) -> bool {
        self.state.paused
    }

    /// True if the node executes. The world must then wait for it.
    pub(super) fn runs(&self) -> bool {
        self.is_on() && !self.state.paused
    }

    /// Returns the world's vtime before which the node cannot affect other nodes.
    pub(super) fn next_activity(&self) -> u64 {
        if !self.runs() {
            return VTIME_MAX;
        }
        let arrives = self.state.arriving.front().map_or(VTIME_MAX, |&(at, _)| at);
        let own =
            self.machine.idle_until().map_or_else(|| self.vtime(), |local| self.state.clock.world(local));
        own.min(arrives)
    }

    /// Runs to the world's vtime `world_ns`, or until a condition of `until` stops the machine. The count in
    /// `until` refers to [`Node::retired`], not to [`Machine::icount`]. Returns `None` if the node is at `world_ns` or
    /// does not execute.
    pub(super) fn run_to(&mut self, world_ns: u64, until: &Until) -> Option<Stop> {
        let last = self.count_of(until.icount.min(self.stop_at));
        loop {
            self.take_arrived();
            if !self.runs() || self.vtime() >= world_ns {
                return None;
            }
            if self.stall_if_due() {
                // The stall advanced the machine's time. Before the machine executes, its network card gets the
                // frames that arrived during the stall.
                continue;
            }
            let next = self.state.stalls.as_ref().map_or(u64::MAX, |stalls| stalls.next);
            let arrives = self.state.arriving.front().map_or(VTIME_MAX, |&(at, _)| at);
            let vtime = self.state.clock.local(world_ns.min(arrives));
            if self.machine.vtime() >= vtime {
                // The clock is at its maximum and does not advance any more.
                return None;
            }
            let stop = self.machine.run(&Until { vtime, icount: next.min(last), ..*until });
            match stop {
                // An idle machine at the greatest vtime does nothing any more.
                Stop::Idle if vtime == VTIME_MAX => return None,
                Stop::Time | Stop::Idle => {}
                Stop::Count if self.machine.icount() < last => {}
                stop => return Some(stop),
            }
        }
    }

    /// Gives the network card the frames that have arrived by the machine's current vtime. The order of the machine's
    /// events thus does not depend on when the world learned of the frames. The network card of a paused node gets all
    /// frames, because the card keeps working during a pause.
    fn take_arrived(&mut self) {
        let here = self.machine.vtime();
        while let Some((at, _)) = self.state.arriving.front() {
            let local = self.state.clock.local(*at);
            if local > here && !self.state.paused {
                break;
            }
            let Some((_, bytes)) = self.state.arriving.pop_front() else { break };
            self.machine.frame_arrives(local, bytes);
        }
    }

    /// Applies a stall that is due. Returns true if there was one.
    fn stall_if_due(&mut self) -> bool {
        let icount = self.machine.icount();
        let Some(stalls) = self.state.stalls.as_mut().filter(|stalls| stalls.next <= icount) else {
            return false;
        };
        let ns = stalls.stall.draw(self.machine.stream(Purpose::Stalls));
        stalls.next = next_stall(icount, stalls.every, self.machine.stream(Purpose::Stalls));
        self.machine.stall(ns);
        true
    }

    /// Starts stalls at random instructions; `None` ends them.
    pub(super) fn set_stalls(&mut self, stalls: Option<(u64, Distribution)>) {
        let icount = self.machine.icount();
        self.state.stalls = stalls.map(|(every, stall)| {
            let next = next_stall(icount, every, self.machine.stream(Purpose::Stalls));
            Stalls { every, stall, next }
        });
    }

    /// Sets the CPU's speed, in parts per million of its normal speed, from now on.
    pub(super) fn set_speed(&mut self, ppm: Ppm) {
        let whole = u128::from(self.machine.state().clock.cpu_hz());
        self.machine.set_speed(u64::try_from(whole * u128::from(ppm) / u128::from(PPM)).unwrap_or(u64::MAX));
    }

    /// Stops execution until [`Node::resume`].
    pub(super) fn pause(&mut self) {
        self.state.paused = true;
    }

    /// Resumes execution at the world's vtime `world_ns`. The guest sees its time jump ahead by the length of the
    /// pause.
    pub(super) fn resume(&mut self, world_ns: u64) {
        if std::mem::take(&mut self.state.paused) {
            let missed = self.state.clock.local(world_ns).saturating_sub(self.machine.vtime());
            self.machine.stall(missed);
        }
    }

    /// Ends the machine because its power was cut. The power cut also ends pauses and stalls.
    pub(super) fn power_off(&mut self, end: End) {
        self.state.retired_before = self.retired();
        self.state.started_at = self.machine.icount();
        self.machine.end_by_host(end);
        self.state.paused = false;
        self.state.stalls = None;
        self.state.arriving.clear();
    }

    /// Replaces the machine. The new machine has the watchpoints and breakpoints of the old one. If the old machine kept a
    /// journal of what its CPU and devices exchange, the new machine keeps a journal, too.
    pub fn replace(&mut self, mut machine: Machine) {
        machine.observe_like(&self.machine);
        machine.keep_journal(self.machine.journal().is_some());
        self.machine = machine;
    }

    /// Starts the clock of a new or restored machine at the world's vtime `world_ns`.
    pub(super) fn started(&mut self, world_ns: u64) {
        self.state.clock = NodeClock::started(world_ns);
        self.state.started_at = self.machine.icount();
        self.state.paused = false;
        self.state.stalls = None;
    }
}

/// Returns the machine's count at which the next stall comes: `icount` plus a random number from 1 to 2 * `every`.
fn next_stall(icount: u64, every: u64, rng: &mut impl Rng) -> u64 {
    let span = every.clamp(1, u64::MAX / 2) * 2;
    let drawn = ((u128::from(rng.next_u64()) * u128::from(span)) >> 64) as u64;
    icount.saturating_add(1).saturating_add(drawn)
}

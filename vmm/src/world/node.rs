//! A machine in a world: its clock, its power, and what is done to its CPU.

use std::collections::VecDeque;

use everett_fault::{Distribution, PPM, Ppm};
use everett_streams::Purpose;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::clock::NodeClock;
use crate::clock::VTIME_MAX;
use crate::engine::Engine;
use crate::machine::{End, Machine, Stop, Until};
use crate::wire::READY_FRAMES_MAX;

/// What of a node is neither machine nor wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    pub(super) clock: NodeClock,
    pub(super) paused: bool,
    pub(super) stalls: Option<Stalls>,
    /// Frames that arrive in this round, with the world's vtime: in the order in which they do.
    pub(super) arriving: VecDeque<(u64, Vec<u8>)>,
    /// Instructions that its machines have retired: those before this one, and what this one's count was when it started.
    retired_before: u64,
    started_at: u64,
}

/// Time is stolen at drawn instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stalls {
    every: u64,
    stall: Distribution,
    /// The count at which the next one comes.
    next: u64,
}

/// One node of a world.
pub struct Node<E: Engine> {
    pub(super) machine: Machine<E>,
    pub(super) state: NodeState,
}

impl NodeState {
    /// Whether a stored state is one.
    pub(super) fn is_sound(&self) -> bool {
        let stalls = self.stalls.as_ref();
        stalls.is_none_or(|stalls| stalls.every > 0 && stalls.stall.check().is_ok())
            && self.arriving.len() <= READY_FRAMES_MAX
            && self.arriving.iter().is_sorted_by_key(|(at, _)| *at)
    }
}

impl<E: Engine> Node<E> {
    pub(super) fn new(machine: Machine<E>, world_ns: u64) -> Node<E> {
        let clock = NodeClock::started(world_ns);
        let (paused, stalls, arriving) = (false, None, VecDeque::new());
        let state = NodeState { clock, paused, stalls, arriving, retired_before: 0, started_at: 0 };
        Node { machine, state }
    }

    /// The machine.
    pub fn machine(&self) -> &Machine<E> {
        &self.machine
    }
    /// The machine, for its output and for what a host does to it.
    pub fn machine_mut(&mut self) -> &mut Machine<E> {
        &mut self.machine
    }
    /// Its clock against the world's.
    pub fn clock(&self) -> &NodeClock {
        &self.state.clock
    }
    /// The world's vtime to which the node has come, in nanoseconds.
    pub fn vtime(&self) -> u64 {
        self.state.clock.world(self.machine.vtime())
    }
    /// Instructions retired by this node, whatever machine it was: a restart point's own are not counted again.
    pub fn retired(&self) -> u64 {
        let now = self.machine.icount().saturating_sub(self.state.started_at);
        self.state.retired_before.saturating_add(now)
    }
    /// The machine's count when the node has retired so many.
    fn count_of(&self, retired: u64) -> u64 {
        let more = retired.saturating_sub(self.state.retired_before);
        if retired == u64::MAX { u64::MAX } else { self.state.started_at.saturating_add(more) }
    }
    /// Whether it executes: it has power and did not come to an end of its own.
    pub fn is_on(&self) -> bool {
        self.machine.end().is_none()
    }
    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.state.paused
    }

    /// Whether the world must wait for this node.
    pub(super) fn runs(&self) -> bool {
        self.is_on() && !self.state.paused
    }

    /// The world's vtime before which the node does nothing that others could notice.
    pub(super) fn next_activity(&self) -> u64 {
        if !self.runs() {
            return VTIME_MAX;
        }
        let arrives = self.state.arriving.front().map_or(VTIME_MAX, |&(at, _)| at);
        let own =
            self.machine.idle_until().map_or_else(|| self.vtime(), |local| self.state.clock.world(local));
        own.min(arrives)
    }

    /// Run to the world's vtime `world_ns`, or to a stop that `until` asks for, with the node's own count. `None`: it is
    /// there, or does not run.
    pub(super) fn run_to(&mut self, world_ns: u64, until: &Until<'_>) -> Option<Stop> {
        let last = self.count_of(until.icount);
        loop {
            self.take_arrived();
            if !self.runs() || self.vtime() >= world_ns {
                return None;
            }
            if self.stall_if_due() {
                // The machine is elsewhere: what arrived meanwhile comes first.
                continue;
            }
            let next = self.state.stalls.as_ref().map_or(u64::MAX, |stalls| stalls.next);
            let arrives = self.state.arriving.front().map_or(VTIME_MAX, |&(at, _)| at);
            let vtime = self.state.clock.local(world_ns.min(arrives));
            if self.machine.vtime() >= vtime {
                // A clock at its end shows no more.
                return None;
            }
            let stop = self.machine.run(&Until { vtime, icount: next.min(last), ..*until });
            match stop {
                // Idle: where time ends, nothing comes any more.
                Stop::Idle if vtime == VTIME_MAX => return None,
                Stop::Time | Stop::Idle => {}
                Stop::Count if self.machine.icount() < last => {}
                stop => return Some(stop),
            }
        }
    }

    /// The card takes what arrives until where the machine is, and not before it is there: the machine's own order of what
    /// happens does not depend on when the world knew of it. A paused node's card works on.
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

    /// Returns whether it stalled.
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

    /// Steal time at drawn instructions from here on, or stop that.
    pub(super) fn set_stalls(&mut self, stalls: Option<(u64, Distribution)>) {
        let icount = self.machine.icount();
        self.state.stalls = stalls.map(|(every, stall)| {
            let next = next_stall(icount, every, self.machine.stream(Purpose::Stalls));
            Stalls { every, stall, next }
        });
    }

    /// From here on the CPU has this part of its speed.
    pub(super) fn set_speed(&mut self, ppm: Ppm) {
        let whole = u128::from(self.machine.state().clock.cpu_hz());
        self.machine.set_speed(u64::try_from(whole * u128::from(ppm) / u128::from(PPM)).unwrap_or(u64::MAX));
    }

    /// Execute nothing until [`Node::resume`].
    pub(super) fn pause(&mut self) {
        self.state.paused = true;
    }

    /// Go on at the world's vtime `world_ns`: for the guest the time since the pause has passed at once.
    pub(super) fn resume(&mut self, world_ns: u64) {
        if std::mem::take(&mut self.state.paused) {
            let missed = self.state.clock.local(world_ns).saturating_sub(self.machine.vtime());
            self.machine.stall(missed);
        }
    }

    /// No power from here on. Faults of the CPU and the clock end with it.
    pub(super) fn power_off(&mut self, end: End) {
        self.state.retired_before = self.retired();
        self.state.started_at = self.machine.icount();
        self.machine.end_by_host(end);
        self.state.paused = false;
        self.state.stalls = None;
        self.state.arriving.clear();
    }

    /// Put another machine in its place, observed as this one was.
    pub fn replace(&mut self, machine: Machine<E>) {
        let observed = self.machine.journal().is_some();
        self.machine = machine;
        self.machine.keep_journal(observed);
    }

    /// The machine is another one, or was brought elsewhere: its time began at the world's vtime `world_ns`.
    pub(super) fn started(&mut self, world_ns: u64) {
        self.state.clock = NodeClock::started(world_ns);
        self.state.started_at = self.machine.icount();
        self.state.paused = false;
        self.state.stalls = None;
    }
}

/// The count at which the next stall comes: after 1 to twice `every` instructions.
fn next_stall(icount: u64, every: u64, rng: &mut impl Rng) -> u64 {
    let span = every.clamp(1, u64::MAX / 2) * 2;
    let drawn = ((u128::from(rng.next_u64()) * u128::from(span)) >> 64) as u64;
    icount.saturating_add(1).saturating_add(drawn)
}

//! Watchpoints and breakpoints of a machine. The guest's execution is the same with and without them.

use everett_cpu::{Watchpoint, WatchpointHit};

use super::Machine;
use crate::engine::Engine as _;

/// Settings of a machine's observers. Moments do not store it.
#[derive(Debug, Clone, Default)]
pub(super) struct Observers {
    watchpoints: Vec<Watchpoint>,
    /// True if accesses to watched bytes stop runs. Otherwise they become notes.
    pub(super) stops_at_accesses: bool,
    breakpoints: Vec<u64>,
    /// True if runs stop where the CPU enters or leaves user mode.
    stops_at_mode_changes: bool,
    /// Accesses that have stopped runs.
    pub(super) accesses: Vec<WatchpointHit>,
}

impl Machine {
    /// Sets the watchpoints, whose accesses become notes ([`NoteEvent::Access`](crate::output::NoteEvent::Access)).
    /// Replaces earlier watchpoints. Returns false if the engine has no watchpoints.
    pub fn watch(&mut self, points: &[Watchpoint]) -> bool {
        self.set_watchpoints(points, false)
    }

    /// Sets the watchpoints, whose accesses stop runs ([`Stop::Watchpoint`](super::Stop::Watchpoint)). Replaces earlier
    /// watchpoints. Returns false if the engine has no watchpoints.
    pub fn stop_at_accesses(&mut self, points: &[Watchpoint]) -> bool {
        self.set_watchpoints(points, true)
    }

    fn set_watchpoints(&mut self, points: &[Watchpoint], stops: bool) -> bool {
        let observers = &mut self.observers;
        (observers.watchpoints, observers.stops_at_accesses) = (points.to_vec(), stops);
        observers.accesses.clear();
        self.engine.take_hits();
        self.engine.set_watchpoints(points)
    }

    /// Takes the accesses that have stopped runs since the last call.
    pub fn take_accesses(&mut self) -> Vec<WatchpointHit> {
        std::mem::take(&mut self.observers.accesses)
    }

    /// Sets the breakpoints, linear addresses that replace earlier ones. A run stops before an instruction at one of
    /// them ([`Stop::Breakpoint`](super::Stop::Breakpoint)). Returns false if the engine has no breakpoints.
    pub fn set_breakpoints(&mut self, addresses: &[u64]) -> bool {
        self.observers.breakpoints = addresses.to_vec();
        self.engine.set_breakpoints(addresses)
    }

    /// Makes runs stop where the CPU enters or leaves user mode ([`Stop::ModeChange`](super::Stop::ModeChange)). Returns
    /// false if the engine does not see every instruction.
    pub fn stop_at_mode_changes(&mut self, on: bool) -> bool {
        self.observers.stops_at_mode_changes = on;
        self.engine.stop_at_mode_changes(on)
    }

    /// Sets the watchpoints and breakpoints of another machine, which this machine replaces.
    pub(crate) fn observe_like(&mut self, other: &Machine) {
        self.observers = other.observers.clone();
        self.engine.set_watchpoints(&self.observers.watchpoints);
        self.engine.set_breakpoints(&self.observers.breakpoints);
        self.engine.stop_at_mode_changes(self.observers.stops_at_mode_changes);
    }
}

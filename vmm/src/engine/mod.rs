//! The engine trait: execution of guest instructions. Devices, interrupts and time live above it.
//!
//! An engine executes instructions on guest memory and stops for one of the reasons in [`Exit`]. It knows no devices:
//! an access to an address that is not RAM ends the run, the machine serves it, and the next `run` finishes the
//! instruction. It knows no time either. It counts what the world's clock mode counts (retired instructions,
//! conditional branches or finished exits), and the machine sets the value of its TSC.
//!
//! - [`soft`]: Everett's own CPU, which counts instructions; [`counting`]: the same CPU in clock modes `exit` and
//!   `branch`
//! - [`kvm`]: the host's processor, which counts exits or branches; [`any`]: an engine of any kind, chosen at run time
//! - `repeat`: repeated string instructions after an exit
//! - `lockstep`: comparison of the soft CPU with a second one that only interprets; `instants`: random instants for
//!   flushes and comparisons
//!
//! **Invariant.** The execution between two stops is a function of the engine's state, guest memory and the arguments
//! of the call. It never depends on host time, on caches, or on the number of stops.

pub mod any;
pub mod counting;
mod instants;
pub mod kvm;
mod lockstep;
mod repeat;
pub mod soft;

use everett_cpu::{CpuState, Edge, Watchpoint, WatchpointHit};
pub use everett_cpu::{Exit, Request, TscAnchor};

use crate::clock::ClockMode;

/// Reason why an engine failed. It is never caused by the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The host failed, for this reason.
    Host(String),
    /// The host disturbed the guest, in this way. The run can be made again ([`Engine::recover`]).
    Disturbed(String),
    /// The engine's own code panicked with this message: a defect of Everett.
    Engine(String),
}

impl Failure {
    /// Returns the reason or the panic message.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Failure::Host(why) | Failure::Disturbed(why) | Failure::Engine(why) => why,
        }
    }
}

/// Conditions that end a `run`, besides the guest's own exits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until<'a> {
    /// Stop at this count since the engine's start (absolute, not relative).
    pub icount: u64,
    /// Stop at the first boundary at which an external interrupt can be taken. Boundaries lie between instructions,
    /// or after exits if those are counted.
    pub window: bool,
    /// Stop before an instruction at one of these linear addresses (sorted). Empty for an engine without breakpoints.
    pub breakpoints: &'a [u64],
}

/// Capabilities of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Clock mode: the events that it counts.
    pub clock: ClockMode,
    /// True if it supports breakpoints.
    pub breakpoints: bool,
    /// True if the host can disturb a run, which must then be repeated ([`Engine::recover`]).
    pub disturbed: bool,
}

/// One virtual CPU, executed by Everett's own CPU or by the host's processor.
pub trait Engine {
    /// Returns the capabilities.
    fn capabilities(&self) -> Capabilities;
    /// Runs until a condition of `until` is met or the guest causes an exit. Never runs past `until.icount`; an
    /// instruction that waits for a device is finished first.
    fn run(&mut self, until: Until<'_>) -> Exit;
    /// Returns the number of events that the clock mode has counted since the start. In clock mode `insn`, each
    /// iteration of a repeated string instruction counts as an instruction; in the other modes, its remaining
    /// iterations belong to the exit before them. In clock mode `branch`, a count is reached directly after its last
    /// branch.
    fn icount(&self) -> u64;
    /// Returns the reason if the engine failed. All answers after a failure are invalid.
    fn failure(&self) -> Option<Failure> {
        None
    }
    /// Returns true if the failure was a disturbance by the host that may not occur again. The failure is then
    /// cleared, and the caller must replace the state and guest memory by earlier ones.
    fn recover(&mut self) -> bool {
        false
    }
    /// Provides the value for the last `MmioRead` or `PioRead`.
    fn complete_read(&mut self, value: u64);
    /// True if an external interrupt would be taken here: RFLAGS.IF is set, there is no STI or MOV SS shadow, no exit
    /// is waiting to be completed, and the clock mode has a boundary here.
    fn interruptible(&self) -> bool;
    /// Delivers an external interrupt now. Wakes a halted CPU.
    ///
    /// # Panics
    /// Panics if the CPU is not [`interruptible`](Engine::interruptible): the machine asks first.
    fn interrupt(&mut self, vector: u8);
    /// Sets the values of RDTSC. In clock mode `branch` RDTSC returns the constant `tsc` until it is set again.
    fn set_tsc(&mut self, anchor: TscAnchor);
    /// Returns the architectural state in canonical form: equal states are equal values, whatever the engine's caches
    /// hold.
    fn state(&self) -> CpuState;
    /// Replaces the architectural state, including the engine's count.
    fn set_state(&mut self, state: &CpuState);
    /// Notes that a device, a restore or a debugger wrote guest memory at `gpa`: drops everything derived from it, and
    /// marks it dirty.
    fn memory_written(&mut self, gpa: u64, len: u64);
    /// Notes that a restore replaced these pages of guest memory: drops everything derived from their old content, and
    /// marks nothing dirty.
    fn memory_replaced(&mut self, pages: &[u64]);
    /// Returns the pages of guest memory that were written since the last call, ascending, each once.
    fn take_dirty_pages(&mut self) -> Vec<u64>;
    /// Reads guest memory through the guest's page tables as they are now, without changing A and D bits. Returns the
    /// number of bytes that could be read.
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize;

    /// Watches these bytes instead of those watched before. The guest's execution does not change. Returns false if
    /// the engine cannot see every access; then it watches nothing.
    fn set_watchpoints(&mut self, _points: &[Watchpoint]) -> bool {
        false
    }
    /// Returns the accesses to watched bytes since the last call.
    fn take_hits(&mut self) -> Vec<WatchpointHit> {
        Vec::new()
    }
    /// Returns the edges of code that were executed for the first time since the last call, in the order of
    /// execution. Empty for an engine that does not record edges.
    fn take_edges(&mut self) -> Vec<Edge> {
        Vec::new()
    }
}

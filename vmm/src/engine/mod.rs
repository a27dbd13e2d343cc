//! Engines execute the guest's instructions; [`Engine`] is their trait. The machine above an engine handles devices,
//! interrupts and time.
//!
//! An engine executes instructions on guest memory and stops for one of the reasons in [`Exit`]. It knows no devices.
//! An access to a port, or to an address that is not RAM, ends the run. The machine serves the access, and the next
//! `run` finishes the instruction. An engine knows no time either. It counts what the world's clock mode counts
//! (retired instructions, conditional branches or finished exits), and the machine sets the value of its TSC.
//!
//! - [`soft`]: Everett's own CPU, which counts instructions; [`counting`]: the same CPU in clock modes `exit` and
//!   `branch`
//! - [`kvm`]: the host's processor, which counts exits or branches; [`any`]: an engine whose kind is chosen at run time
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

use everett_cpu::{CpuModel, CpuState, Edge, MissingInstruction, Watchpoint, WatchpointHit};
pub use everett_cpu::{Exit, Request, TscAnchor};

use crate::clock::ClockMode;

/// Reason why an engine failed. The guest is never the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The host failed for this reason.
    Host(String),
    /// The host disturbed the guest in this way. The machine can repeat the run ([`Engine::recover`]).
    Disturbed(String),
    /// The engine's own code panicked with this message, which is a defect of Everett.
    Engine(String),
}

impl Failure {
    /// Returns the reason or the panic message as text.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Failure::Host(why) | Failure::Disturbed(why) | Failure::Engine(why) => why,
        }
    }
}

/// Conditions that stop a `run`. Exits of the guest stop it, too.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until {
    /// Stop at this count, which is absolute and not relative to the start of the run.
    pub icount: u64,
    /// Stop at the first boundary at which the guest can take an external interrupt. Boundaries lie between
    /// instructions, or after exits if the engine counts exits.
    pub window: bool,
    /// Execute the first instruction even if a breakpoint is there ([`Engine::set_breakpoints`]).
    pub passing: bool,
}

/// Capabilities of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Clock mode, which says what the engine counts.
    pub clock: ClockMode,
    /// True if the host can disturb a run. The machine must then repeat the run ([`Engine::recover`]).
    pub disturbed: bool,
}

/// A virtual CPU. Everett's own CPU or the host's processor executes its instructions.
pub trait Engine {
    /// Returns what the engine can do. The answer never changes.
    fn capabilities(&self) -> Capabilities;
    /// Returns the model of the CPU, which never changes.
    fn cpu_model(&self) -> CpuModel;
    /// Executes until a condition of `until` is met or the guest causes an exit. First finishes an instruction that
    /// waits for a device. Apart from that, never executes past `until.icount`.
    fn run(&mut self, until: Until) -> Exit;
    /// Returns the engine's count, in the unit of its clock mode. In mode `insn`, each iteration of a repeated string
    /// instruction counts as an instruction. In the other modes, a repeated string instruction that directly follows an
    /// exit, or continues after it, is part of this exit. In mode `branch`, the count changes directly after a branch.
    fn icount(&self) -> u64;
    /// Returns the reason if the engine failed. All answers of a failed engine are invalid.
    fn failure(&self) -> Option<Failure> {
        None
    }
    /// Clears a failure if it was a disturbance by the host ([`Failure::Disturbed`]), and returns true. The caller must
    /// then replace the state and guest memory by earlier ones, and can repeat the run. Otherwise returns false.
    fn recover(&mut self) -> bool {
        false
    }
    /// Sets the value that the last `MmioRead` or `PioRead` returns to the guest.
    fn complete_read(&mut self, value: u64);
    /// True if the guest would take an external interrupt here: RFLAGS.IF is set, there is no STI or MOV SS shadow, no
    /// access waits for an answer, and the clock mode has a boundary here.
    fn interruptible(&self) -> bool;
    /// Delivers an external interrupt now, even to a halted CPU.
    ///
    /// # Panics
    /// Panics if the CPU is not [`interruptible`](Engine::interruptible). The machine must check this first.
    fn interrupt(&mut self, vector: u8);
    /// Sets the anchor from which RDTSC is computed. In clock mode `branch`, RDTSC returns the anchor's value `tsc`,
    /// which stays the same until the next call.
    fn set_tsc(&mut self, anchor: TscAnchor);
    /// Returns the architectural state in canonical form: equal states are equal values, whatever is in the engine's
    /// caches.
    fn state(&self) -> CpuState;
    /// Replaces the architectural state and the engine's count.
    fn set_state(&mut self, state: &CpuState);
    /// Tells the engine that a device, a restore or a debugger wrote guest memory at `gpa`. The engine drops everything
    /// that it derived from these bytes, and marks their pages dirty.
    fn memory_written(&mut self, gpa: u64, len: u64);
    /// Tells the engine that a restore replaced these pages of guest memory. The engine no longer uses anything that it
    /// derived from their old content. It does not mark the pages dirty, and may forget which pages were dirty before.
    fn memory_replaced(&mut self, pages: &[u64]);
    /// Returns the numbers of the pages of guest memory that were written since the last call, ascending and without
    /// duplicates.
    fn take_dirty_pages(&mut self) -> Vec<u64>;
    /// Reads guest memory at a linear address through the guest's current page tables, without changing their A and D
    /// bits. Returns the number of bytes that were readable.
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize;

    /// Sets the watchpoints, which replace earlier ones. The guest's execution does not change. Returns false if the
    /// engine cannot see every access; it then watches nothing.
    fn set_watchpoints(&mut self, _points: &[Watchpoint]) -> bool {
        false
    }
    /// Sets the breakpoints, linear addresses that replace earlier ones. A run stops before an instruction at one of them.
    /// The guest's execution does not change. Returns false if the engine does not see every instruction; it then has no
    /// breakpoints.
    fn set_breakpoints(&mut self, _addresses: &[u64]) -> bool {
        false
    }
    /// Makes runs end after an instruction, interrupt or exception that enters or leaves user mode. Returns false if the
    /// engine does not see every instruction.
    fn stop_at_mode_changes(&mut self, _on: bool) -> bool {
        false
    }
    /// Takes the accesses to watched bytes since the last call.
    fn take_hits(&mut self) -> Vec<WatchpointHit> {
        Vec::new()
    }
    /// Takes the first instruction since the last call that a program executed although the CPU's model lacks it. `None` for
    /// an engine that does not note them.
    fn take_missing_instruction(&mut self) -> Option<MissingInstruction> {
        None
    }
    /// Returns the branch edges that the guest executed for the first time, in the order of execution. Leaves out edges
    /// that an earlier call returned. Empty for an engine that does not record edges.
    fn take_edges(&mut self) -> Vec<Edge> {
        Vec::new()
    }
    /// Forgets the recorded branch edges, so that each is returned again when the guest next executes it. The guest's
    /// execution does not change.
    fn forget_edges(&mut self) {}
}

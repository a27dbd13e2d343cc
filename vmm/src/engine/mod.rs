//! The engine trait: what runs guest instructions. Devices, interrupts and time live above it.
//!
//! An engine executes instructions on guest memory and stops for one of the reasons in [`Exit`]. It knows nothing of
//! devices: an access to an address that is not RAM ends the run, the machine serves it, and the next `run` finishes
//! the instruction. It knows nothing of time either: it counts what the world's clock mode counts, retired instructions,
//! conditional branches or finished exits, and is told what the TSC shows.
//!
//! - [`soft`]: our own CPU, which counts instructions; [`counting`]: the same CPU in clock modes `exit` and `branch`
//! - [`kvm`]: the host's processor, which counts exits; [`any`]: whichever of them a machine has
//!
//! **Invariant.** What an engine does between two stops is a function of its state, guest memory and the arguments of
//! the call: never of host time, of its caches, or of how often it was stopped.

pub mod any;
pub mod counting;
mod instants;
pub mod kvm;
mod lockstep;
mod repeat;
pub mod soft;

pub use everett_cpu::TscAnchor;
use everett_cpu::{CpuState, Edge, Hit, Watchpoint};

use crate::clock::ClockMode;

/// Why an engine stopped. The count at the stop is [`Engine::icount`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The count given to `run` was reached, exactly.
    Count,
    /// An interrupt can be injected now (asked for by `Until::window`).
    Window,
    /// HLT retired; the machine waits for an interrupt.
    Halt,
    /// A load from an address that is not RAM; answer with [`Engine::complete_read`], then `run` again.
    MmioRead {
        /// Guest-physical address.
        gpa: u64,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
    },
    /// A store to an address that is not RAM. The instruction is finished by the next `run`.
    MmioWrite {
        /// Guest-physical address.
        gpa: u64,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// The value, zero-extended.
        value: u64,
    },
    /// IN; answer with [`Engine::complete_read`].
    PioRead {
        /// Port.
        port: u16,
        /// Bytes: 1, 2 or 4.
        size: u8,
    },
    /// OUT.
    PioWrite {
        /// Port.
        port: u16,
        /// Bytes: 1, 2 or 4.
        size: u8,
        /// The value, zero-extended.
        value: u32,
    },
    /// Triple fault.
    Shutdown,
    /// An address in `Until::breakpoints` is about to execute.
    Breakpoint,
    /// What came last accessed bytes that are watched: [`Engine::take_hits`].
    Watchpoint,
    /// The guest used something that the engine does not model (32-bit code, say). The reason names it.
    Unsupported(&'static str),
    /// So many instructions were executed since the last of what the clock mode counts that no other is expected any more.
    NoProgress,
    /// The host or the engine itself could not go on: [`Engine::failure`] says why. Nothing is executed any more.
    Failed,
}

/// Why an engine cannot go on, which is nothing that the guest did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The host could not: why.
    Host(String),
    /// The engine's own code has panicked, with this message: a defect of Everett's.
    Engine(String),
}

impl Failure {
    /// The reason, or the message.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Failure::Host(why) | Failure::Engine(why) => why,
        }
    }
}

/// When a `run` ends, besides the guest's own exits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until<'a> {
    /// Stop at this count since the engine's beginning (absolute, not relative).
    pub icount: u64,
    /// Stop at the first boundary at which an external interrupt can be taken: of instructions, or behind an exit where exits are
    /// counted.
    pub window: bool,
    /// Stop before an instruction at one of these linear addresses (sorted). None for an engine that does not stop there.
    pub breakpoints: &'a [u64],
}

/// What an engine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What it counts.
    pub clock: ClockMode,
    /// It stops at breakpoints.
    pub breakpoints: bool,
    /// What the host does can make a run worthless ([`Engine::recover`]).
    pub disturbed: bool,
}

/// One virtual CPU on one kind of execution.
pub trait Engine {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;
    /// Run until one of the ends in `until`, or an exit of the guest's. Never past `until.icount`; an instruction that waits for a
    /// device is finished first.
    fn run(&mut self, until: Until<'_>) -> Exit;
    /// The count since the beginning, of what the clock mode counts. One iteration of a repeated string instruction counts as
    /// an instruction; where something else is counted, what is left of one belongs to the exit before it. In clock mode `branch` a
    /// count is reached behind the branch that makes it.
    fn icount(&self) -> u64;
    /// Why the engine could not go on, if it could not. What it says after that is worth nothing.
    fn failure(&self) -> Option<Failure> {
        None
    }
    /// Whether what failed was a disturbance by the host, which another time may not come. From here on it has not failed, and
    /// its state and guest memory are to be replaced by those of before.
    fn recover(&mut self) -> bool {
        false
    }
    /// Give the value that the last `MmioRead` or `PioRead` asked for.
    fn complete_read(&mut self, value: u64);
    /// Whether an external interrupt would be taken here: RFLAGS.IF is set, there is no STI or MOV SS shadow, no exit is
    /// waiting to be completed, and the clock mode has a boundary here.
    fn interruptible(&self) -> bool;
    /// Deliver an external interrupt, now. Wakes a halted CPU.
    ///
    /// # Panics
    /// If the CPU is not [`interruptible`](Engine::interruptible): the machine asks first.
    fn interrupt(&mut self, vector: u8);
    /// Set what RDTSC shows. In clock mode `branch` it shows `tsc` and nothing else until it is set again.
    fn set_tsc(&mut self, anchor: TscAnchor);
    /// The architectural state, canonical: equal states are equal values whatever caches the engine has.
    fn state(&self) -> CpuState;
    /// Replace the architectural state. The engine's count is part of it.
    fn set_state(&mut self, state: &CpuState);
    /// A device, a restore or a debugger wrote guest memory at `gpa`: drop what was derived from it, note it as dirty.
    fn memory_written(&mut self, gpa: u64, len: u64);
    /// A restore replaced these pages of guest memory: drop what was derived from their old content, and note nothing as
    /// written.
    fn memory_replaced(&mut self, pages: &[u64]);
    /// Pages of guest memory that were written since the last call, ascending, each once.
    fn take_dirty_pages(&mut self) -> Vec<u64>;
    /// Read guest memory through the guest's page tables as they are now, without touching A and D bits. Returns how
    /// many bytes could be read.
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize;

    /// Watch these bytes, instead of those that were watched before. The guest does the same as without. Returns whether
    /// the engine sees every access; one that does not watches nothing.
    fn set_watchpoints(&mut self, _points: &[Watchpoint]) -> bool {
        false
    }
    /// Who accessed what is watched, since the last call.
    fn take_hits(&mut self) -> Vec<Hit> {
        Vec::new()
    }
    /// Edges of code that were executed for the first time and not taken yet, in this order. None of an engine that does not
    /// see them or was not made to.
    fn take_edges(&mut self) -> Vec<Edge> {
        Vec::new()
    }
}

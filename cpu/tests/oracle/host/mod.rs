//! The host CPU as the oracle, i.e. the reference for the soft CPU: it executes instructions on given registers and
//! memory, and returns the outcome.
//!
//! - [`map`]: the arena, i.e. the memory for test instructions, in this process (raw pointers, mmap)
//! - [`signal`]: entry to an instruction and exit from it, with signals and the trap flag (raw pointers, machine code)
//! - [`features`]: properties in which host CPUs differ

pub(crate) mod features;
mod map;
mod signal;

use super::state::{Outcome, State, Steps};
use map::Arena;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The arena of the process. The mutex also guards the signal handlers, because the process has only one set of them.
static ONE: Mutex<Option<Arena>> = Mutex::new(None);

/// The host CPU. Only one test at a time has a `Host`.
pub(crate) struct Host {
    arena: MutexGuard<'static, Option<Arena>>,
    stack: signal::Stack,
}

impl Host {
    /// Waits until no other test has a `Host`, and maps the arena at the first call.
    pub(crate) fn new() -> Host {
        let mut arena = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if arena.is_none() {
            *arena = Some(Arena::new());
            signal::install();
        }
        Host { arena, stack: signal::Stack::enter() }
    }
    fn arena(&self) -> &Arena {
        self.arena.as_ref().expect("`new` has mapped it")
    }
    /// Writes to the arena, regardless of the protection of its pages. The range must be inside `CODE`, or inside
    /// the area that the adjacent `DATA` and `CONST` form together.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.arena().write(offset, bytes);
    }
    /// Returns the current contents of `DATA` and `CONST`.
    pub(crate) fn data(&self) -> &[u8] {
        self.arena().data()
    }
    /// Executes as many instructions, or iterations of a repeated string instruction, as `steps` says, from `state.rip`
    /// on. Stops at the first fault.
    pub(crate) fn run(&mut self, state: &State, steps: Steps) -> Outcome {
        self.stack.run(state, steps)
    }
}

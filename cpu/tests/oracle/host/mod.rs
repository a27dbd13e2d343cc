//! The host CPU as the oracle: executes one instruction on given registers and memory, and returns the outcome.
//!
//! - [`map`]: the arena in this process (raw pointers, mmap)
//! - [`signal`]: entry to an instruction and exit from it, by signals and the trap flag (raw pointers, machine code)
//! - [`features`]: properties of this host in which processors differ

pub(crate) mod features;
mod map;
mod signal;

use super::state::{Outcome, State, Steps};
use map::Arena;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The arena of the process. The mutex also guards the signal handlers, which are process-wide.
static ONE: Mutex<Option<Arena>> = Mutex::new(None);

/// The host CPU, held by one test at a time.
pub(crate) struct Host {
    arena: MutexGuard<'static, Option<Arena>>,
    stack: signal::Stack,
}

impl Host {
    /// Takes the host CPU for this thread.
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
    /// Writes memory of the arena at an offset inside `DATA`, `CONST` or `CODE`, regardless of its protection.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.arena().write(offset, bytes);
    }
    /// Returns the current contents of `DATA` and `CONST`.
    pub(crate) fn data(&self) -> &[u8] {
        self.arena().data()
    }
    /// Executes `steps` at `state.rip`, up to the first fault.
    pub(crate) fn run(&mut self, state: &State, steps: Steps) -> Outcome {
        self.stack.run(state, steps)
    }
}

//! Ends machines whose guest keeps them busy without progress.

use serde::{Deserialize, Serialize};

use super::stop::End;
use crate::clock::{BRANCH_INSTRUCTIONS, ClockMode};

/// Number of interrupts in a row that make an interrupt storm, which ends the machine. Each comes within [`STORM_GAP`]
/// instructions of the one before. Linux gives up on a stuck interrupt line after the same number.
pub const STORM_INTERRUPTS: u64 = 100_000;
/// If fewer instructions than this lie between two interrupts, the guest has done nothing but handle the first one.
/// Interrupts of Linux guests are further apart, because Linux takes several hundred instructions to enter, run and
/// leave a handler.
pub const STORM_GAP: u64 = 200;
/// [`STORM_GAP`] for clock mode `exit`, in exits. A handler that only acknowledges its interrupt causes one exit, the
/// write to the LAPIC's EOI register.
const STORM_GAP_EXITS: u64 = 2;
/// [`STORM_GAP`] for clock mode `branch`, in branches.
const STORM_GAP_BRANCHES: u64 = STORM_GAP / BRANCH_INSTRUCTIONS;
/// Maximum number of device accesses by one instruction. FXSAVE to a device makes 64.
pub const ACCESSES_MAX: u32 = 4096;
/// Maximum number of device accesses between two branches in clock mode `branch`. It is larger than [`ACCESSES_MAX`],
/// because many instructions may execute between two branches.
const ACCESSES_MAX_BRANCHES: u32 = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guard {
    last_interrupt: u64,
    streak: u64,
    access_icount: u64,
    accesses: u32,
}

impl Guard {
    /// Counts an interrupt that the CPU takes. `icount` is the number of instructions, exits or branches so far,
    /// whichever the clock mode counts. Returns the machine's end if this interrupt completes an interrupt storm.
    pub(super) fn interrupt(&mut self, mode: ClockMode, icount: u64, vector: u8) -> Result<(), End> {
        let gap = match mode {
            ClockMode::Insn => STORM_GAP,
            ClockMode::Exit => STORM_GAP_EXITS,
            ClockMode::Branch => STORM_GAP_BRANCHES,
        };
        let close = icount.saturating_sub(self.last_interrupt) < gap;
        self.streak = if close { self.streak + 1 } else { 0 };
        self.last_interrupt = icount;
        if self.streak >= STORM_INTERRUPTS {
            return Err(End::InterruptStorm { vector, count: self.streak });
        }
        Ok(())
    }

    /// Restarts the count of interrupts in a row, because the CPU was idle.
    pub(super) fn idle(&mut self) {
        self.streak = 0;
    }

    /// Counts a device access. `icount` is the number of instructions, exits or branches so far, whichever the clock
    /// mode counts. Returns the machine's end if this is one access too many.
    pub(super) fn access(&mut self, mode: ClockMode, icount: u64) -> Result<(), End> {
        let most = if mode == ClockMode::Branch { ACCESSES_MAX_BRANCHES } else { ACCESSES_MAX };
        if self.access_icount != icount {
            self.access_icount = icount;
            self.accesses = 0;
        }
        self.accesses += 1;
        if self.accesses > most { Err(End::NoProgress) } else { Ok(()) }
    }
}

//! Guards against guests that keep the machine busy without progress.

use serde::{Deserialize, Serialize};

use super::stop::End;
use crate::clock::{BRANCH_INSTRUCTIONS, ClockMode};

/// Number of interrupts in a row, each within [`STORM_GAP`] instructions of the one before, that make a storm. Linux
/// gives up on a stuck line after the same number.
pub const STORM_INTERRUPTS: u64 = 100_000;
/// Distance between two interrupts, in instructions, below which the guest did nothing but handle the first one. An
/// interrupt entry, its handler and the return take Linux several hundred.
pub const STORM_GAP: u64 = 200;
/// [`STORM_GAP`] for clock mode `exit`, in exits. A handler that does nothing has one exit, its EOI.
const STORM_GAP_EXITS: u64 = 2;
/// [`STORM_GAP`] for clock mode `branch`, in branches.
const STORM_GAP_BRANCHES: u64 = STORM_GAP / BRANCH_INSTRUCTIONS;
/// Maximum number of device accesses of one instruction. FXSAVE to a device makes 64.
pub const ACCESSES_MAX: u32 = 4096;
/// Maximum number of device accesses between two branches in clock mode `branch`, over all instructions. No time
/// passes between two branches.
const ACCESSES_MAX_BRANCHES: u32 = 1 << 20;

/// Counters of the guards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guard {
    last_interrupt: u64,
    streak: u64,
    access_icount: u64,
    accesses: u32,
}

impl Guard {
    /// Counts an interrupt that is taken at this count of the clock mode.
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

    /// Ends the row of interrupts, because the CPU was idle.
    pub(super) fn idle(&mut self) {
        self.streak = 0;
    }

    /// Counts a device access at this count of the clock mode.
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

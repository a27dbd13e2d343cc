//! Guards against guests that keep the machine busy without getting anywhere.

use serde::{Deserialize, Serialize};

use super::stop::End;
use crate::clock::{BRANCH_INSTRUCTIONS, ClockMode};

/// Interrupts in a row, each within [`STORM_GAP`] instructions of the one before, that make a storm. Linux gives up on a
/// stuck line after as many.
pub const STORM_INTERRUPTS: u64 = 100_000;
/// Instructions between two interrupts below which the guest did nothing else: an interrupt entry, its handler and the
/// return take Linux several hundred.
pub const STORM_GAP: u64 = 200;
/// The same in exits: a handler that does nothing has one, its EOI.
const STORM_GAP_EXITS: u64 = 2;
/// The same in branches.
const STORM_GAP_BRANCHES: u64 = STORM_GAP / BRANCH_INSTRUCTIONS;
/// Device accesses of one instruction. FXSAVE to a device makes 64.
pub const ACCESSES_MAX: u32 = 4096;
/// Device accesses between two branches, where those are counted: of all instructions there. No time passes meanwhile.
const ACCESSES_MAX_BRANCHES: u32 = 1 << 20;

/// What the guards count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guard {
    last_interrupt: u64,
    streak: u64,
    access_icount: u64,
    accesses: u32,
}

impl Guard {
    /// An interrupt is taken at this count of what the clock counts.
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

    /// The CPU was idle: what happened before and after is not in a row.
    pub(super) fn idle(&mut self) {
        self.streak = 0;
    }

    /// A device is accessed at this count.
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

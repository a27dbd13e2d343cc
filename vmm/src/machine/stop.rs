//! Conditions that stop a run, and the ways in which runs and machines end.

use std::fmt;

use crate::clock::VTIME_MAX;

/// Conditions that stop a run. The end of the machine stops it, too.
///
/// A stop lies between two instructions, before events that are due at that time are dispatched. So stopping changes
/// nothing: one long run has the same result as a thousand shorter runs.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    /// Stop at the first boundary at or after this vtime, in nanoseconds. Boundaries lie between instructions, or after
    /// each branch or exit if the clock counts these.
    pub vtime: u64,
    /// Stop at the first boundary with this count, in the unit of the clock mode.
    pub icount: u64,
    /// Bit i: stop after the instruction with which the guest ends a line on console port i. Lines that ended before
    /// the run do not stop it. Callers take those lines before the run.
    pub port_lines: u8,
}

impl Until {
    /// Returns conditions that stop a run at a vtime in nanoseconds.
    pub fn vtime(vtime: u64) -> Until {
        Until { vtime, icount: u64::MAX, port_lines: 0 }
    }
    /// Returns conditions that stop a run at a count.
    pub fn icount(icount: u64) -> Until {
        Until { vtime: VTIME_MAX, icount, port_lines: 0 }
    }
    /// Returns these conditions, extended: also stop when the guest ends a line on one of these console ports (bit i
    /// stands for port i).
    pub fn or_port_lines(self, port_lines: u8) -> Until {
        Until { port_lines, ..self }
    }
}

/// Reason why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The vtime was reached.
    Time,
    /// The count was reached.
    Count,
    /// The CPU is halted and no event is scheduled, so only input from outside can wake the CPU. If the run had a limit
    /// on vtime, it advanced vtime to that limit.
    Idle,
    /// The guest ended a line on these console ports (bit i stands for port i).
    PortLines(u8),
    /// A port holds [`PORT_BYTES_MAX`](crate::output::PORT_BYTES_MAX) bytes. The caller must take them and run again.
    OutputFull(usize),
    /// The next instruction is at a breakpoint ([`Machine::set_breakpoints`](super::Machine::set_breakpoints)). The next
    /// run executes it.
    Breakpoint,
    /// The last instruction, interrupt or exception accessed watched bytes
    /// ([`Machine::stop_at_accesses`](super::Machine::stop_at_accesses)).
    Watchpoint,
    /// The last instruction, interrupt or exception entered or left user mode
    /// ([`Machine::stop_at_mode_changes`](super::Machine::stop_at_mode_changes)).
    ModeChange,
    /// The machine has ended. Every further run returns the same end.
    End(End),
}

/// Way in which a machine ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum End {
    /// The guest powered off.
    PowerOff,
    /// The guest asked for a reset.
    Reset,
    /// Power was cut from outside the guest.
    PowerLoss,
    /// The CPU had a triple fault.
    TripleFault,
    /// The CPU executed HLT with interrupts off, so nothing can wake it.
    HaltedForever,
    /// The guest takes one interrupt after another and does nothing in between.
    InterruptStorm {
        /// Vector of the last interrupt.
        vector: u8,
        /// Number of interrupts in a row.
        count: u64,
    },
    /// An instruction accesses devices again and again without finishing.
    NoProgress,
    /// The CPU cannot continue: the guest used a feature that the CPU model lacks, or causes exceptions without end.
    Unsupported(String),
    /// In clock mode `exit`: the guest computes without an exit, and no interrupt can reach it.
    NoExit,
    /// The host failed. The failure says nothing about the guest and is not part of its timeline; on another host the
    /// timeline continues.
    Host(String),
    /// In clock mode `branch`: the guest executes without a conditional branch, so vtime stands still.
    NoBranch,
    /// The engine's own code panicked with this message: a defect of Everett.
    Engine(String),
}

impl End {
    /// True if the machine ended because the host or Everett failed.
    pub fn is_failure(&self) -> bool {
        matches!(self, End::Host(_) | End::Engine(_))
    }

    /// True if engines may differ in how far they have executed the guest at this end. The CPU may have ended within an
    /// instruction or between an instruction and its exception, or the guest executes no branch.
    pub(crate) fn is_within_an_instruction(&self) -> bool {
        matches!(
            self,
            End::TripleFault
                | End::NoProgress
                | End::Unsupported(_)
                | End::Host(_)
                | End::NoBranch
                | End::Engine(_)
        )
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::PowerOff => f.write_str("the guest powered off"),
            End::Reset => f.write_str("the guest reset itself"),
            End::PowerLoss => f.write_str("it lost power"),
            End::TripleFault => f.write_str("triple fault"),
            End::HaltedForever => f.write_str("the guest halted with interrupts off"),
            End::InterruptStorm { vector, count } => {
                write!(f, "interrupt storm: {count} interrupts in a row, the last with vector {vector:#x}")
            }
            End::NoProgress => f.write_str("no progress: an instruction accesses devices without end"),
            End::Unsupported(reason) => write!(f, "the CPU cannot continue: {reason}"),
            End::NoExit => f.write_str(
                "no progress: the guest computes without an exit, and in clock mode \"exit\" nothing interrupts it",
            ),
            End::NoBranch => f.write_str(
                "no progress: the guest executes no conditional branch, and in clock mode \"branch\" only these \
                 advance time",
            ),
            End::Host(reason) => write!(f, "the host failed: {reason}"),
            End::Engine(message) => write!(f, "engine failure, a defect of Everett: panicked with \"{message}\""),
        }
    }
}

//! Why a run ended.

use std::fmt;

use crate::clock::VTIME_MAX;

/// When a run ends, besides the guest's own ends. A stop lies between two instructions, before anything that is due there
/// happens, so stopping changes nothing: a run to the same place in one go or in a thousand is the same run.
#[derive(Debug, Clone, Copy)]
pub struct Until<'a> {
    /// At the first boundary at or after this vtime, in nanoseconds: of instructions, behind a branch where those are counted, or
    /// behind an exit where exits are.
    pub vtime: u64,
    /// At exactly this count of what the clock mode counts, at the first boundary that has it.
    pub icount: u64,
    /// Bit i: after the instruction with which the guest ended a line on console port i. Lines that ended before the run
    /// do not count: take them out first.
    pub port_lines: u8,
    /// Before an instruction at one of these linear addresses. Sorted.
    pub breakpoints: &'a [u64],
}

impl Until<'static> {
    /// Run to a vtime.
    pub fn vtime(vtime: u64) -> Until<'static> {
        Until { vtime, icount: u64::MAX, port_lines: 0, breakpoints: &[] }
    }
    /// Run to a count.
    pub fn icount(icount: u64) -> Until<'static> {
        Until { vtime: VTIME_MAX, icount, port_lines: 0, breakpoints: &[] }
    }
    /// The same, and stop when the guest ends a line on one of these console ports (bits).
    pub fn or_port_lines(self, port_lines: u8) -> Until<'static> {
        Until { port_lines, ..self }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The vtime was reached.
    Time,
    /// The count was reached.
    Count,
    /// The vtime was reached with the CPU halted and nothing scheduled: only the host can wake it.
    Idle,
    /// The guest ended a line on these console ports (bits).
    PortLines(u8),
    /// A port holds `PORT_BYTES_MAX` that nobody took. Take them and go on.
    OutputFull(usize),
    /// A breakpoint.
    Breakpoint,
    /// The engine cannot stop at breakpoints: nothing was executed.
    NoBreakpoints,
    /// The machine has come to its end; running it again gives the same.
    End(End),
}

/// How a machine came to its end.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum End {
    /// The guest powered off.
    PowerOff,
    /// The guest asked for a reset.
    Reset,
    /// The host took its power away.
    PowerLoss,
    /// Triple fault.
    TripleFault,
    /// HLT with interrupts off: nothing can wake the CPU.
    HaltedForever,
    /// Interrupt after interrupt without work in between.
    InterruptStorm {
        /// The last one.
        vector: u8,
        /// How many in a row.
        count: u64,
    },
    /// The CPU asks for accesses without ever finishing the instruction.
    NoProgress,
    /// The CPU cannot go on: the guest used something that it does not model, or takes exceptions without end.
    Unsupported(String),
    /// In clock mode `exit`: the guest computes without end, and nothing interrupts it there.
    NoExit,
    /// The host could not go on. Says nothing of the guest, and is no part of its timeline: elsewhere it goes on.
    Host(String),
    /// In clock mode `branch`: the guest executes without end, and nothing of it counts.
    NoBranch,
    /// The engine's own code has panicked, with this message: a defect of Everett's.
    Engine(String),
}

impl End {
    /// Whether this is how a machine ends on purpose.
    pub fn is_orderly(&self) -> bool {
        matches!(self, End::PowerOff | End::Reset)
    }

    /// Whether the machine could not go on for no reason of the guest's: it says nothing of the guest.
    pub fn is_failure(&self) -> bool {
        matches!(self, End::Host(_) | End::Engine(_))
    }

    /// Whether the CPU is within an instruction, or between an instruction and its exception, or where somebody lost patience:
    /// engines may be at different places of it.
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
            End::Unsupported(reason) => write!(f, "the CPU cannot go on: {reason}"),
            End::NoExit => f.write_str(
                "no progress: the guest computes without an exit, and in clock mode \"exit\" nothing interrupts it",
            ),
            End::NoBranch => f.write_str(
                "no progress: the guest executes no conditional branch, and in clock mode \"branch\" no time passes without",
            ),
            End::Host(reason) => write!(f, "the host failed: {reason}"),
            End::Engine(message) => write!(f, "engine failure, a defect of Everett: panicked with \"{message}\""),
        }
    }
}

//! Reasons for the end of a run.

use crate::mem::mmio::Request;

/// Reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The requested instruction count was reached, exactly.
    Count,
    /// An external interrupt can be taken now.
    Window,
    /// HLT retired.
    Halt,
    /// The guest accesses a device. Answer with [`Cpu::complete`](crate::Cpu::complete) (for writes, any value), then
    /// run again.
    Device(Request),
    /// The guest caused a triple fault.
    Shutdown,
    /// The next instruction is at a breakpoint.
    Breakpoint,
    /// The last instruction, interrupt or exception accessed watched bytes
    /// ([`Cpu::take_hits`](crate::Cpu::take_hits)).
    Watchpoint,
    /// The guest used a feature that is not modelled; the string names it.
    Unsupported(&'static str),
    /// The CPU's own code panicked ([`Cpu::failure`](crate::Cpu::failure)): a defect of Everett. The CPU executes
    /// nothing more.
    Failed,
}

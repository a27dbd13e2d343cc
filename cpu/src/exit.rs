//! Reasons for the end of a run, of a CPU and of the engines above.

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
    /// Nothing that the clock mode counts happened for too many instructions. Engines return this, a [`Cpu`](crate::Cpu) never does.
    NoProgress,
    /// The host could not continue (an engine on its processor), or the CPU's own code panicked ([`Cpu::failure`](crate::Cpu::failure)): a defect of Everett.
    /// Nothing more is executed.
    Failed,
}

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
    /// The guest ran for too long without an event that the clock mode counts. Only engines return this, never a
    /// [`Cpu`](crate::Cpu).
    NoProgress,
    /// The host failed (in an engine that uses its processor), or the CPU's own code panicked, which is a defect of
    /// Everett ([`Cpu::failure`](crate::Cpu::failure)). Nothing more is executed.
    Failed,
}

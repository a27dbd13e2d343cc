//! Why a run ended.

use crate::mem::mmio::Request;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The count was reached, exactly.
    Count,
    /// An interrupt can be taken now.
    Window,
    /// HLT retired.
    Halt,
    /// The guest needs a device. Answer with [`Cpu::complete`](crate::Cpu::complete) (for writes: any value), then run again.
    Device(Request),
    /// A triple fault.
    Shutdown,
    /// An instruction at a breakpoint is next.
    Breakpoint,
    /// A watchpoint was met, by what came last ([`Cpu::take_hits`](crate::Cpu::take_hits)).
    Watchpoint,
    /// Something that is not modelled; the reason names it.
    Unsupported(&'static str),
    /// The CPU's own code has panicked ([`Cpu::failure`](crate::Cpu::failure)): a defect of Everett's. Nothing is executed any more.
    Failed,
}

//! Reasons why a CPU or an engine stops running. An engine is the code around a [`Cpu`](crate::Cpu), or around the
//! host's processor, that runs a guest.

use crate::mem::mmio::Request;

/// Reason why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The run reached exactly the requested instruction count.
    Count,
    /// The CPU can take an external interrupt now.
    Window,
    /// HLT retired.
    Halt,
    /// The guest accesses a device. The caller answers with [`Cpu::complete`](crate::Cpu::complete), and then runs the
    /// CPU again. The CPU ignores the answer's value if the access is a write.
    Device(Request),
    /// The guest caused a triple fault.
    Shutdown,
    /// The next instruction is at a breakpoint.
    Breakpoint,
    /// The last instruction, interrupt or exception accessed watched bytes
    /// ([`Cpu::take_hits`](crate::Cpu::take_hits)).
    Watchpoint,
    /// The last instruction, interrupt or exception entered or left user mode
    /// ([`Cpu::stop_at_mode_changes`](crate::Cpu::stop_at_mode_changes)).
    ModeChange,
    /// The guest used a feature that the CPU does not model. The string names it.
    Unsupported(&'static str),
    /// The guest executed too many instructions without an event by which its clock advances, such as a device access.
    /// Only engines return this reason; a [`Cpu`](crate::Cpu) never does.
    NoProgress,
    /// The CPU's own code panicked, which is a defect of Everett ([`Cpu::failure`](crate::Cpu::failure)). An engine
    /// that uses the host's processor also returns this reason if the host fails. The CPU executes nothing more.
    Failed,
}

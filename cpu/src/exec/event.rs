//! Description of an exception or interrupt that the CPU delivers through the IDT.

/// Exception or interrupt to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub vector: u8,
    pub error: Option<u32>,
    /// True for INT n and INT3. Delivery then checks the gate's DPL, and leaves EXT clear in error codes.
    pub software: bool,
    /// True if delivery pushes RFLAGS with RF set, so that the faulting instruction does not trigger its own breakpoint
    /// again.
    pub resume: bool,
}

//! The CPU delivers exceptions and interrupts through the IDT; an [`Event`] describes one of them.

/// Exception or interrupt to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub vector: u8,
    pub error: Option<u32>,
    /// True for INT n and INT3: the gate's DPL is checked, and error codes have EXT clear.
    pub software: bool,
    /// True if RFLAGS is pushed with RF set, so that the faulting instruction does not trigger its own breakpoint
    /// again.
    pub resume: bool,
}

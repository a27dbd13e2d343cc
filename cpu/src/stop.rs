//! Exception vectors, and the ways in which a handler (the function that executes an instruction) ends its block early.

/// Reason why a handler ends its block early. One byte, so that a `Result` fits into a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The instruction retired. Before the next instruction, the run loop must check interrupts and limits, and
    /// translate the address in RIP again.
    Leave,
    /// The instruction raised an exception ([`crate::mem::Mem::fault`]). It has not retired and has changed nothing.
    Fault,
    /// The instruction needs an answer from the machine ([`crate::mem::mmio::Mmio::pending`]). It has not retired and
    /// has changed nothing. The CPU executes it again once the answer is available.
    Exit,
    /// The instruction must be executed in a block of its own. One reason is a store to a page with code or page
    /// tables.
    Single,
}

/// Result of a handler.
pub(crate) type Flow = Result<(), Stop>;

/// An exception to be delivered (SDM vol. 3A, chapter 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fault {
    /// Exception vector, 0 to 31.
    pub vector: u8,
    /// Error code, if the exception pushes one.
    pub error: Option<u32>,
    /// True for a general-protection fault from a non-canonical address. It becomes #SS if the instruction accessed the
    /// stack.
    pub non_canonical: bool,
}

/// Exception vectors.
pub(crate) mod vector {
    /// Divide error.
    pub(crate) const DE: u8 = 0;
    /// Debug.
    pub(crate) const DB: u8 = 1;
    /// Breakpoint.
    pub(crate) const BP: u8 = 3;
    /// Invalid opcode.
    pub(crate) const UD: u8 = 6;
    /// Device not available.
    pub(crate) const NM: u8 = 7;
    /// Double fault.
    pub(crate) const DF: u8 = 8;
    /// Invalid TSS.
    pub(crate) const TS: u8 = 10;
    /// Segment not present.
    pub(crate) const NP: u8 = 11;
    /// Stack fault.
    pub(crate) const SS: u8 = 12;
    /// General protection.
    pub(crate) const GP: u8 = 13;
    /// Page fault.
    pub(crate) const PF: u8 = 14;
    /// x87 floating-point error.
    pub(crate) const MF: u8 = 16;
    /// Alignment check.
    pub(crate) const AC: u8 = 17;
    /// SIMD floating-point exception.
    pub(crate) const XM: u8 = 19;
}

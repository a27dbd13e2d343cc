//! How a handler ends other than by going on to the next instruction, and the faults of the architecture.

/// Why the run loop gets control back in the middle of a block. Small, so that a `Result` stays in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The instruction retired; look at interrupts, limits and translations again before the next one.
    Leave,
    /// The instruction raised an exception ([`crate::core::Core::fault`]); it has not retired and changed nothing.
    Fault,
    /// The instruction needs the machine ([`crate::core::Core::exit`]); it has not retired and changed nothing. It is
    /// executed again when the answer is there.
    Exit,
    /// The instruction is about to store to a page with code or page tables: execute it alone, in a block of one.
    Single,
}

/// What handlers return.
pub(crate) type Flow = Result<(), Stop>;

/// An exception to be delivered (SDM vol. 3A, chapter 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fault {
    /// Vector 0-31.
    pub vector: u8,
    /// Error code, for the vectors that push one.
    pub error: Option<u32>,
    /// A general protection fault from a non-canonical address: #SS instead when the reference was to the stack.
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

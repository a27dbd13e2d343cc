//! The ways in which a handler ends a block early, and the exceptions of the architecture.

/// Reason for which the run loop gets control back in the middle of a block. Small, so that a `Result` stays in a
/// register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The instruction retired. Interrupts, limits and address translation must be checked again before the next one.
    Leave,
    /// The instruction raised an exception ([`crate::mem::Mem::fault`]). It has not retired and has changed nothing.
    Fault,
    /// The instruction needs an answer from the machine ([`crate::mem::mmio::Mmio::pending`]). It has not retired and
    /// has changed nothing. It is executed again once the answer is available.
    Exit,
    /// The instruction must be executed alone, in a block of one, for example because it stores to a page with code
    /// or page tables.
    Single,
}

/// Result of a handler.
pub(crate) type Flow = Result<(), Stop>;

/// An exception to be delivered (SDM vol. 3A, chapter 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fault {
    /// Vector 0-31.
    pub vector: u8,
    /// Error code, for the vectors that push one.
    pub error: Option<u32>,
    /// True for a general protection fault caused by a non-canonical address. It becomes #SS if the access was to the
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

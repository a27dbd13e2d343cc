//! Data that translated code uses besides the guest's registers. Translated code addresses it relative to R15
//! (`crate::translate`).
//!
//! Three tables hold recent calls, jumps and pages, so that translated code reaches other pages without a page walk.
//! Each entry is valid for one *epoch* ([`crate::mem::tlb::Tlb::epoch`]), whose number it contains. Within an epoch
//! three things stay unchanged: the paging entries through which code was found, the contents of pages of code, and the
//! mode that determines which pages are executable. A page walk would therefore find the same page and set no accessed
//! bit. Each CPU numbers its own epochs. In an exploration of Redis, an epoch of kernel mode lasted about a million
//! instructions.

use bytemuck::Zeroable;

use crate::zeroed::Zeroed;

/// An executed CALL.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Return {
    /// Return address.
    pub va: u64,
    /// Epoch in which the call was executed. Epoch numbers begin at 1, so a zeroed entry is never valid.
    pub epoch: u64,
    /// Host address of the translation at the return address. If there is no translation yet, host address of the code
    /// with which the call's block leaves translated code. 0 if the return address is on another page than the call.
    pub code: u64,
    _unused: u64,
}

/// Number of calls that the ring of recent calls holds. A power of two.
pub(crate) const RETURNS: usize = 64;

/// Ring of the most recent calls, by which returns find their target.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Returns(pub [Return; RETURNS]);

impl Default for Returns {
    fn default() -> Returns {
        Returns([Return::default(); RETURNS])
    }
}

/// An executed jump.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub(crate) struct Hop {
    /// Linear address of the target.
    pub va: u64,
    /// Epoch in which the jump was executed.
    pub epoch: u64,
    /// Host address of the target's translation.
    pub code: u64,
    _unused: u64,
}

/// Index mask of the table of jumps. A larger table misses less often, but evicts more from the host's caches, which all
/// machines of a world share.
pub(crate) const HOP_MASK: usize = (1 << 12) - 1;
/// Binary logarithm of the size of a [`Hop`] in bytes.
pub(crate) const HOP_SHIFT: u8 = 5;

const _: () = assert!(size_of::<Hop>() == 1 << HOP_SHIFT);

/// A page from which code was executed.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub(crate) struct Page {
    /// Linear address of the page.
    pub va: u64,
    /// Epoch in which code of the page was executed.
    pub epoch: u64,
    /// Content number of the page, which stands for its 4096 bytes ([`crate::mem::Mem::content`]).
    pub number: u64,
    _unused: u64,
}

/// Index mask of the table of pages.
pub(crate) const PAGE_MASK: usize = (1 << 10) - 1;
/// Binary logarithm of the size of a [`Page`] in bytes.
pub(crate) const PAGE_SHIFT: u8 = 5;

const _: () = assert!(size_of::<Page>() == 1 << PAGE_SHIFT);

/// Tables of recent jumps and pages. `translate::routines` computes the index, a hash of the linear address.
#[derive(Debug)]
pub(crate) struct Near {
    pub hops: Zeroed<Hop>,
    pub pages: Zeroed<Page>,
}

impl Near {
    /// Creates empty tables.
    pub(crate) fn new() -> Near {
        Near { hops: Zeroed::new(HOP_MASK + 1), pages: Zeroed::new(PAGE_MASK + 1) }
    }
}

/// Data that translated code reads or stores, besides the slots of the register array.
#[derive(Debug, Default)]
pub(crate) struct Native {
    /// Host address of the first operation in the block cache's arena, the array with the operations (decoded
    /// instructions) of all cached blocks.
    pub ops: u64,
    /// Instruction count at which translated code returns, for the end of the run or to take a sample. The number of
    /// instructions left until then is in [`slot::LEFT`](crate::op::slot::LEFT).
    pub end: u64,
    /// Maximum number of instructions that translated code executes between two samples.
    pub period: u64,
    /// Values of the host registers when translated code was last left, by register number.
    pub hosts: [u64; 16],
    /// Values of the host YMM registers when translated code was last left. Each lower half comes first. The upper
    /// halves are zero if translated code did not use them.
    pub vectors: [[u128; 2]; 16],
    /// MXCSR that the host's functions expect.
    pub host_mxcsr: u32,
    /// 1 while the guest's MXCSR is in the host's register, and otherwise 0. While it is 1, [`Core::fpu`] may lack
    /// exception flags that are in the register, and the guest may use XMM registers and has masked all exceptions.
    ///
    /// [`Core::fpu`]: crate::core::Core::fpu
    pub mxcsr_is_guests: u8,
    /// 1 while an upper half of the host's YMM registers may be nonzero, and otherwise 0. It is 0 between blocks.
    pub uppers_in_use: u8,
    /// Two vector registers while a fused multiply-add changes them.
    pub spilled: [[u128; 2]; 2],
    /// MXCSR before the last fused multiply-add.
    pub old_mxcsr: u32,
    /// Most recent calls.
    pub returns: Returns,
    /// Offset of the most recent call in `returns`, in bytes.
    pub top: u64,
    /// Recent jumps and pages. `None` until translated code first runs.
    pub near: Option<Near>,
    /// Host address and index mask of the table of recorded edges ([`crate::edges`]).
    pub edges: (u64, u64),
    /// Host address of the table of edges that were looked up last.
    pub edges_recent: u64,
    /// Number of the check that stands for the edge from the branch in [`slot::FROM`](crate::op::slot::FROM), or 0. It is
    /// not 0 only while that edge is about to be recorded.
    pub edge_check: u64,
    /// Generation of the translated code that these tables refer to (`Translator::generation`).
    pub generation: u64,
}

//! State of translated code besides the CPU's registers, addressed relative to R15. Meaningless outside of translated
//! code (`crate::translate`).
//!
//! Three tables cache recent calls, jumps and pages, so that translated code reaches other pages without a page walk.
//! Each entry carries the *epoch* ([`crate::mem::tlb::Tlb::epoch`]) in which it was made, and is valid while that epoch
//! is current. Within an epoch three things stay the same: the paging entries by which code was found, the contents of
//! pages of code, and the mode that determines what may be executed. So a page walk would find the same page, and would
//! not set any accessed bit. Epochs belong to one CPU. In an exploration of Redis, an epoch lasted about a million
//! instructions in kernel mode and fifty thousand in user mode.

use bytemuck::Zeroable;

use crate::zeroed::Zeroed;

/// An executed call.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Return {
    /// Return address.
    pub va: u64,
    /// Epoch of the call. No epoch is 0.
    pub epoch: u64,
    /// Host address of the translation at the return address, or 0 if it was not known.
    pub code: u64,
    _unused: u64,
}

/// Capacity of the ring of calls. A power of two.
pub(crate) const RETURNS: usize = 64;

/// Ring of the most recent calls.
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
    /// Epoch of the jump.
    pub epoch: u64,
    /// Host address of the target's translation.
    pub code: u64,
    _unused: u64,
}

/// Index mask of the table of jumps.
pub(crate) const HOP_MASK: usize = (1 << 14) - 1;
/// Binary logarithm of the size of a [`Hop`] in bytes.
pub(crate) const HOP_SHIFT: u8 = 5;

const _: () = assert!(size_of::<Hop>() == 1 << HOP_SHIFT);

/// A page from which code was executed.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub(crate) struct Page {
    /// Linear address of the page.
    pub va: u64,
    /// Epoch of the execution.
    pub epoch: u64,
    /// Number of the page's contents.
    pub number: u64,
    _unused: u64,
}

/// Index mask of the table of pages.
pub(crate) const PAGE_MASK: usize = (1 << 10) - 1;
/// Binary logarithm of the size of a [`Page`] in bytes.
pub(crate) const PAGE_SHIFT: u8 = 5;

const _: () = assert!(size_of::<Page>() == 1 << PAGE_SHIFT);

/// Tables of recent jumps and pages, indexed by a hash of the address that `translate::routines` computes.
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

/// State that translated code needs or stores, besides the CPU's slots.
#[derive(Debug, Default)]
pub(crate) struct Native {
    /// Host address of the cache's operations.
    pub ops: u64,
    /// Host registers at the site where translated code was left, by register number.
    pub hosts: [u64; 16],
    /// Host XMM registers at that site.
    pub vectors: [u128; 16],
    /// Most recent calls, by which returns find their target.
    pub returns: Returns,
    /// Offset of the most recent call in `returns`, in bytes.
    pub top: u64,
    /// Recent jumps and pages. `None` until translated code first runs.
    pub near: Option<Near>,
    /// Generation (`Translator::generation`) of the code that these tables refer to.
    pub generation: u64,
}

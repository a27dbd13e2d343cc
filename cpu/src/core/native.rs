//! State of translated code that lies beside the CPU's registers, where R15 reaches it. None of it means anything outside of
//! translated code (`crate::translate`).
//!
//! Calls, jumps and pages are remembered so that code finds its way to other pages without a page walk.
//! Each entry was true in an *epoch* ([`crate::mem::tlb::Tlb::epoch`]), and is true for as long as that is the current one: no paging
//! entry by which code was found has changed since, nor what a page of code holds, nor the mode that says who may execute it. A
//! walk of the page tables would find the same, and would set no accessed bit that is not set. Epochs belong to one CPU. In an
//! exploration of Redis a kernel's last for a million instructions, a process's for fifty thousand.

use bytemuck::Zeroable;

use crate::zeroed::Zeroed;

/// A call that was executed, and what is behind it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Return {
    /// The return address.
    pub va: u64,
    /// The epoch of the call. None is 0.
    pub epoch: u64,
    /// The address of its code, or 0 if that was not known.
    pub code: u64,
    _unused: u64,
}

/// So many calls are remembered: a power of two.
pub(crate) const RETURNS: usize = 64;

/// The last calls, in a ring.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Returns(pub [Return; RETURNS]);

impl Default for Returns {
    fn default() -> Returns {
        Returns([Return::default(); RETURNS])
    }
}

/// A jump that was executed.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub(crate) struct Hop {
    /// Where it went.
    pub va: u64,
    /// The epoch.
    pub epoch: u64,
    /// The address of the code there.
    pub code: u64,
    _unused: u64,
}

/// So many jumps are remembered, minus one.
pub(crate) const HOP_MASK: usize = (1 << 14) - 1;
/// The binary logarithm of a [`Hop`]'s bytes.
pub(crate) const HOP_SHIFT: u8 = 5;

const _: () = assert!(size_of::<Hop>() == 1 << HOP_SHIFT);

/// A page that code was executed on.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub(crate) struct Page {
    /// Its address.
    pub va: u64,
    /// The epoch.
    pub epoch: u64,
    /// The number of what it holds.
    pub number: u64,
    _unused: u64,
}

/// So many pages are remembered, minus one.
pub(crate) const PAGE_MASK: usize = (1 << 10) - 1;
/// The binary logarithm of a [`Page`]'s bytes.
pub(crate) const PAGE_SHIFT: u8 = 5;

const _: () = assert!(size_of::<Page>() == 1 << PAGE_SHIFT);

/// Jumps and pages, by their addresses; `translate::routines` computes where.
#[derive(Debug)]
pub(crate) struct Near {
    pub hops: Zeroed<Hop>,
    pub pages: Zeroed<Page>,
}

impl Near {
    /// Nothing is known.
    pub(crate) fn new() -> Near {
        Near { hops: Zeroed::new(HOP_MASK + 1), pages: Zeroed::new(PAGE_MASK + 1) }
    }
}

/// What translated code needs and leaves besides the CPU's slots.
#[derive(Debug, Default)]
pub(crate) struct Native {
    /// Where operations lie.
    pub ops: u64,
    /// Host registers at a site that was left, by their numbers.
    pub hosts: [u64; 16],
    /// The host's XMM registers there.
    pub vectors: [u128; 16],
    /// The last calls, for returns to find their way.
    pub returns: Returns,
    /// The offset of the last one.
    pub top: u64,
    /// What else is known of where code lies.
    pub near: Option<Near>,
    /// `Translator::generation` of the code that they are of.
    pub generation: u64,
}

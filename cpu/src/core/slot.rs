//! Slots of the register array after the sixteen general registers. With them, the address of every memory operand is
//! computed in the same way: base slot + scaled index slot + segment slot + displacement.

/// Distance from [`PAGE`] to [`PAGE_FAR`], the two bases of RIP-relative operands, in bytes.
pub(crate) const FAR_PAGE: u64 = 1 << 30;

/// Constant zero.
pub(crate) const ZERO: u8 = 16;
/// Linear address of the block's page: base of RIP-relative operands and branch targets.
pub(crate) const PAGE: u8 = 17;
/// FS base.
pub(crate) const FS: u8 = 18;
/// GS base.
pub(crate) const GS: u8 = 19;
/// [`PAGE`] plus [`FAR_PAGE`]: base for RIP-relative displacements that do not fit relative to [`PAGE`].
pub(crate) const PAGE_FAR: u8 = 20;
/// Instructions left before the limit. Used by translated code only.
pub(crate) const LEFT: u8 = 24;
/// Operation and width of the lazy flags. Used by translated code only.
pub(crate) const KIND: u8 = 25;
/// First operand of the lazy flags. Used by translated code only.
pub(crate) const X: u8 = 26;
/// Second operand of the lazy flags. Used by translated code only.
pub(crate) const Y: u8 = 27;
/// Host address of the table of page content numbers. Used by translated code only.
pub(crate) const CONTENTS: u8 = 28;
/// Host address of the jump table. It is rarely read, so it lies beyond the reach of a one-byte displacement. Used by
/// translated code only.
pub(crate) const JUMPS: u8 = 32;
/// Host address of the table of recent pages. Used by translated code only.
pub(crate) const PAGES: u8 = 21;
/// Host address of the table of recent jumps. Used by translated code only.
pub(crate) const HOPS: u8 = 22;
/// Host address of guest RAM. Used by translated code only.
pub(crate) const RAM: u8 = 30;
/// Host address of the edge table. Used by translated code only.
pub(crate) const EDGES: u8 = 23;
/// Place of a near branch whose target has not been fetched yet, or 0 ([`crate::edges`]).
pub(crate) const FROM: u8 = 31;
/// Number of retired conditional branches, if they are counted.
pub(crate) const BRANCHES: u8 = 29;
/// Number of slots.
pub(crate) const COUNT: usize = 33;

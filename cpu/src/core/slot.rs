//! Slots of the register array beyond the sixteen general registers, so that every address is the same sum of slots.

/// How far the second of the two pages that RIP-relative operands name lies from the first.
pub(crate) const FAR_PAGE: u64 = 1 << 30;

/// Always zero.
pub(crate) const ZERO: u8 = 16;
/// Linear address of the page that the block lies on, for RIP-relative operands and branch targets.
pub(crate) const PAGE: u8 = 17;
/// FS base.
pub(crate) const FS: u8 = 18;
/// GS base.
pub(crate) const GS: u8 = 19;
/// [`PAGE`] plus [`FAR_PAGE`], for displacements that do not fit otherwise.
pub(crate) const PAGE_FAR: u8 = 20;
/// Instructions left before the limit. Used by translated code only.
pub(crate) const LEFT: u8 = 24;
/// Operation and width that the late flags come from. Used by translated code only.
pub(crate) const KIND: u8 = 25;
/// First operand of the late flags. Used by translated code only.
pub(crate) const X: u8 = 26;
/// Second operand of the late flags. Used by translated code only.
pub(crate) const Y: u8 = 27;
/// Address of the numbers of pages' contents. Used by translated code only.
pub(crate) const CONTENTS: u8 = 28;
/// Address of the table of jumps, which is rarely read and lies beyond the reach of a one-byte displacement. Used by translated code only.
pub(crate) const JUMPS: u8 = 32;
/// Address of the last executed pages. Used by translated code only.
pub(crate) const PAGES: u8 = 21;
/// Address of the last jumps. Used by translated code only.
pub(crate) const HOPS: u8 = 22;
/// Address at which RAM begins. Used by translated code only.
pub(crate) const RAM: u8 = 30;
/// Address of the table of edges. Used by translated code only.
pub(crate) const EDGES: u8 = 23;
/// Place of a near branch whose target has not been fetched yet, or 0 ([`crate::edges`]).
pub(crate) const FROM: u8 = 31;
/// Conditional branches that retired, if they are counted.
pub(crate) const BRANCHES: u8 = 29;
/// Number of slots.
pub(crate) const COUNT: usize = 33;

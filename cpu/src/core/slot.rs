//! Numbers of the slots that follow the sixteen general registers in the CPU's register array. With these slots, one
//! formula gives the address of every memory operand: base slot + scaled index slot + segment slot + displacement.

/// Distance in bytes from [`PAGE`] to [`PAGE_FAR`], the two bases of RIP-relative operands.
pub(crate) const FAR_PAGE: u64 = 1 << 30;

/// Always zero: the base, index or segment of an operand that has none.
pub(crate) const ZERO: u8 = 16;
/// Linear address of the page that contains the current block. RIP-relative operands and branch targets are relative to
/// it.
pub(crate) const PAGE: u8 = 17;
/// FS base.
pub(crate) const FS: u8 = 18;
/// GS base.
pub(crate) const GS: u8 = 19;
/// [`PAGE`] plus [`FAR_PAGE`]: base of RIP-relative operands whose displacement from [`PAGE`] exceeds 32 bits.
pub(crate) const PAGE_FAR: u8 = 20;
/// Number of instructions that the current call of `Cpu::run` may still execute. Used by translated code only.
pub(crate) const LEFT: u8 = 24;
/// Operation and width of the instruction that last set the arithmetic flags. The flags are lazy: they are computed
/// from this slot, [`X`] and [`Y`] when something reads them. Used by translated code only.
pub(crate) const KIND: u8 = 25;
/// First value from which lazy flags are computed. Used by translated code only.
pub(crate) const X: u8 = 26;
/// Second value from which lazy flags are computed. Used by translated code only.
pub(crate) const Y: u8 = 27;
/// Host address of a table of RAM pages. For each page with decoded code, the table holds a content number, which
/// stands for the page's current bytes. Used by translated code only.
pub(crate) const CONTENTS: u8 = 28;
/// Host address of the jump table, which gives the translation of a block. Translated code rarely reads it, so its slot
/// may lie beyond the reach of a one-byte displacement. Used by translated code only.
pub(crate) const JUMPS: u8 = 32;
/// Host address of the table of pages from which code was executed recently. Used by translated code only.
pub(crate) const PAGES: u8 = 21;
/// Host address of the table of recent jumps. Used by translated code only.
pub(crate) const HOPS: u8 = 22;
/// Host address of guest RAM. Used by translated code only.
pub(crate) const RAM: u8 = 30;
/// Host address of the table of checks for recorded branch edges ([`crate::edges`]). Used by translated code only.
pub(crate) const EDGES: u8 = 23;
/// Location (page and offset) of a near branch whose target has not been fetched yet. 0 if there is none, or if the CPU
/// does not record branch edges ([`crate::edges`]).
pub(crate) const FROM: u8 = 31;
/// Number of retired conditional branches, if the CPU counts them.
pub(crate) const BRANCHES: u8 = 29;
/// Number of slots.
pub(crate) const COUNT: usize = 33;

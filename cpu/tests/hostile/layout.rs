//! Where things lie: in RAM, and in linear memory.

/// Pages of RAM. What is mapped beyond is a device.
pub(crate) const RAM_PAGES: u64 = 36;
/// Bytes of RAM.
pub(crate) const RAM_LEN: usize = RAM_PAGES as usize * 4096;

pub(crate) const PML4: u64 = 0x1000;
pub(crate) const PDPT: u64 = 0x2000;
pub(crate) const PD: u64 = 0x3000;
/// Maps `WINDOW` and `FIXED`.
pub(crate) const PT: u64 = 0x4000;
pub(crate) const KERNEL_PDPT: u64 = 0x5000;
pub(crate) const KERNEL_PD: u64 = 0x6000;
pub(crate) const KERNEL_PT: u64 = 0x7000;
pub(crate) const FAR_PD: u64 = 0x8000;
pub(crate) const FAR_PT: u64 = 0x9000;
pub(crate) const GDT: u64 = 0xa000;
pub(crate) const IDT: u64 = 0xb000;
pub(crate) const TSS: u64 = 0xc000;
pub(crate) const HANDLERS: u64 = 0xd000;
/// Two pages of stacks of handlers.
pub(crate) const STACKS: u64 = 0xe000;
/// The tables of the last page below the hole of addresses that are not canonical, and of the last one of all.
pub(crate) const EDGE_PDPT: u64 = 0x1_0000;
pub(crate) const EDGE_PD: u64 = 0x1_1000;
pub(crate) const EDGE_PT: u64 = 0x1_2000;
/// What the kernel has mapped for itself ends here.
pub(crate) const KERNEL_END: u64 = 0x1_3000;
/// Where units go on, how many have begun, and the stack that they begin with.
pub(crate) const FIXED_PAGE: u64 = 0x1_3000;
/// Pages with code; the second half are copies of the first, a little different.
pub(crate) const CODE: u64 = 0x1_4000;
pub(crate) const CODE_PAGES: u64 = 10;
pub(crate) const TWIN_PAGES: u64 = CODE_PAGES / 2;
/// Pages with data.
pub(crate) const DATA: u64 = CODE + CODE_PAGES * 4096;
pub(crate) const DATA_PAGES: u64 = RAM_PAGES - (DATA >> 12);

/// The pages that are mapped in all manners, linear.
pub(crate) const WINDOW: u64 = 0x40_0000;
pub(crate) const WINDOW_PAGES: u64 = 48;
/// So many of them show code to begin with.
pub(crate) const VIEW_PAGES: u64 = 28;
/// `FIXED_PAGE`, linear.
pub(crate) const FIXED: u64 = WINDOW + (WINDOW_PAGES + 4) * 4096;
/// A large page over RAM and a device behind it.
pub(crate) const LARGE: u64 = 0x80_0000;
/// Pages that are 2^31 bytes behind those of the window: an instruction reaches what lies before its own offset.
pub(crate) const FAR: u64 = WINDOW + (1 << 31);
pub(crate) const FAR_PAGES: u64 = WINDOW_PAGES;
/// RAM up to `KERNEL_END`, linear, for ring 0.
pub(crate) const KERNEL: u64 = 0xffff_ffff_8000_0000;
/// The last page of the lower half.
pub(crate) const LOW_EDGE: u64 = 0x7fff_ffff_f000;
/// The last page of all.
pub(crate) const HIGH_EDGE: u64 = 0xffff_ffff_ffff_f000;

/// In `FIXED_PAGE`: where units go on.
pub(crate) const TARGETS: u64 = 0;
/// How many of them; a power of two.
pub(crate) const TARGETS_COUNT: u64 = 32;
/// Counts what began.
pub(crate) const COUNTER: u64 = 0x200;
/// Addresses for calls and jumps through memory.
pub(crate) const POINTER_WORDS: u64 = 0x208;
pub(crate) const POINTER_WORDS_COUNT: u64 = 32;
/// The top of the units' stack.
pub(crate) const STACK_TOP: u64 = 0xf80;

pub(crate) const PRESENT: u64 = 1;
pub(crate) const WRITABLE: u64 = 2;
pub(crate) const USER: u64 = 4;
pub(crate) const PAGE_SIZE: u64 = 0x80;
pub(crate) const NO_EXECUTE: u64 = 1 << 63;

/// The entry for a page of the window, in RAM.
pub(crate) fn window_entry(page: u64) -> u64 {
    PT + page * 8
}

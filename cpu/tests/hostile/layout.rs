//! Layout of the guest programs' RAM and of their linear memory.

/// Number of pages of RAM. Higher guest-physical addresses belong to a device.
pub(crate) const RAM_PAGES: u64 = 36;
/// Size of RAM in bytes.
pub(crate) const RAM_LEN: usize = RAM_PAGES as usize * 4096;

pub(crate) const PML4: u64 = 0x1000;
pub(crate) const PDPT: u64 = 0x2000;
pub(crate) const PD: u64 = 0x3000;
/// Page table that maps `WINDOW` and `FIXED`.
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
/// Two pages for the stacks of handlers.
pub(crate) const STACKS: u64 = 0xe000;
/// Tables that map the last page below the non-canonical hole, and the last page of linear memory.
pub(crate) const EDGE_PDPT: u64 = 0x1_0000;
pub(crate) const EDGE_PD: u64 = 0x1_1000;
pub(crate) const EDGE_PT: u64 = 0x1_2000;
/// End of the kernel's own RAM (tables, handlers and stacks), which starts at `PML4`.
pub(crate) const KERNEL_END: u64 = 0x1_3000;
/// Page with the addresses of units (the loops of the program), the counter of begun units, and the stack of the units.
pub(crate) const FIXED_PAGE: u64 = 0x1_3000;
/// Pages with code. In half of the programs, the second half of these pages is a copy of the first half with a few
/// changed bits.
pub(crate) const CODE: u64 = 0x1_4000;
pub(crate) const CODE_PAGES: u64 = 10;
pub(crate) const TWIN_PAGES: u64 = CODE_PAGES / 2;
/// Pages with data.
pub(crate) const DATA: u64 = CODE + CODE_PAGES * 4096;
pub(crate) const DATA_PAGES: u64 = RAM_PAGES - (DATA >> 12);

/// Linear address of the window. Its pages have all kinds of mappings.
pub(crate) const WINDOW: u64 = 0x40_0000;
pub(crate) const WINDOW_PAGES: u64 = 48;
/// Number of pages, at the start of the window, that map code initially.
pub(crate) const VIEW_PAGES: u64 = 28;
/// Linear address of `FIXED_PAGE`.
pub(crate) const FIXED: u64 = WINDOW + (WINDOW_PAGES + 4) * 4096;
/// Linear address of a large page. It maps RAM and the device addresses after RAM.
pub(crate) const LARGE: u64 = 0x80_0000;
/// Linear address of pages that are 2^31 bytes above those of the window. A RIP-relative operand is less than 2^31
/// bytes above the end of its instruction. In the page that is 2^31 bytes above its own page, an instruction therefore
/// reaches only bytes at smaller page offsets than the page offset of its own end.
pub(crate) const FAR: u64 = WINDOW + (1 << 31);
pub(crate) const FAR_PAGES: u64 = WINDOW_PAGES;
/// Linear address at which ring 0 sees RAM up to `KERNEL_END`.
pub(crate) const KERNEL: u64 = 0xffff_ffff_8000_0000;
/// Linear address of the last page of the lower half of the address space.
pub(crate) const LOW_EDGE: u64 = 0x7fff_ffff_f000;
/// Linear address of the last page of the address space.
pub(crate) const HIGH_EDGE: u64 = 0xffff_ffff_ffff_f000;

/// Offset in `FIXED_PAGE` of the addresses of units.
pub(crate) const TARGETS: u64 = 0;
/// Number of addresses of units, a power of two.
pub(crate) const TARGETS_COUNT: u64 = 32;
/// Offset in `FIXED_PAGE` of the counter of begun units.
pub(crate) const COUNTER: u64 = 0x200;
/// Offset in `FIXED_PAGE` of the addresses for calls and jumps through memory.
pub(crate) const POINTER_WORDS: u64 = 0x208;
pub(crate) const POINTER_WORDS_COUNT: u64 = 32;
/// Offset in `FIXED_PAGE` of the top of the units' stack.
pub(crate) const STACK_TOP: u64 = 0xf80;

pub(crate) const PRESENT: u64 = 1;
pub(crate) const WRITABLE: u64 = 2;
pub(crate) const USER: u64 = 4;
pub(crate) const PAGE_SIZE: u64 = 0x80;
pub(crate) const NO_EXECUTE: u64 = 1 << 63;

/// Returns the address in RAM of the paging entry for a page of the window.
pub(crate) fn window_entry(page: u64) -> u64 {
    PT + page * 8
}

//! Where instructions and their data lie: the same linear addresses on the host and in the guest.
//!
//! Both views show the same memory, once below 2 GiB (for 32-bit addresses and displacements) and once far above (so that
//! an address that is cut to 32 bits goes elsewhere). Around everything that is mapped lie reserved addresses: a stray
//! access of a test instruction faults on both sides and can reach nothing of the test's own process.

/// The view that 32-bit addresses reach.
pub(crate) const LOW: u64 = 0x6b00_0000;
/// The view that only 64-bit addresses reach.
pub(crate) const HIGH: u64 = 0x2468_5a00_0000;
/// Bytes of each view.
pub(crate) const LEN: u64 = 0x40_0000;

/// Offset of memory that can be read and written.
pub(crate) const DATA: u64 = 0x10_0000;
/// Bytes of it.
pub(crate) const DATA_LEN: u64 = 0x1_0000;
/// Offset of a page that can only be read; it follows `DATA`, nothing follows it.
pub(crate) const CONST: u64 = DATA + DATA_LEN;
/// Bytes of it.
pub(crate) const CONST_LEN: u64 = 0x1000;
/// Offset of pages that can be read and executed.
pub(crate) const CODE: u64 = 0x20_0000;
/// Bytes of them.
pub(crate) const CODE_LEN: u64 = 0x3000;

/// GS base during a test. FS base is the host thread's own and stays out of play.
pub(crate) const GS_BASE: u64 = 0x0123_4560;

/// Whether an access to `len` bytes at `va` behaves alike on both sides and harms nobody: inside a view, or in the upper
/// half of the address space, or not canonical.
pub(crate) fn is_safe(va: u64, len: u64) -> bool {
    let inside = |base: u64| va >= base && len <= LEN && va - base <= LEN - len;
    if inside(LOW) || inside(HIGH) {
        return true;
    }
    let last = va.wrapping_add(len.max(1) - 1);
    // Bits 62 down to 56 are not all equal to bit 63: not canonical with 4-level nor with 5-level paging.
    let wild = |va: u64| !matches!(va >> 56, 0 | 0xff);
    let upper = |va: u64| va >= 0xffff_8000_0000_0000;
    last >= va && (wild(va) && wild(last) || upper(va) && upper(last))
}
/// The offset in the arena of a linear address in either view.
pub(crate) fn offset(va: u64) -> Option<u64> {
    [LOW, HIGH].into_iter().find(|&base| va >= base && va - base < LEN).map(|base| va - base)
}
/// Whether `va` lies in the half that the host's kernel owns, where Linux does not tell whether a page is present.
pub(crate) fn is_upper_half(va: u64) -> bool {
    va >> 63 == 1
}

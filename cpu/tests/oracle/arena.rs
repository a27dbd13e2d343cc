//! The arena: memory for test instructions and their data, at the same linear addresses on the host and in the guest.
//!
//! Two views show the same memory. One view is below 2 GiB, for 32-bit addresses and displacements. The other is far
//! above, so that an address truncated to 32 bits misses it. Reserved addresses surround each view: a stray access of a
//! test instruction faults on host and guest, and cannot reach the memory of the test process.

/// Linear address of the view that 32-bit addresses reach.
pub(crate) const LOW: u64 = 0x6b00_0000;
/// Linear address of the view that only 64-bit addresses reach.
pub(crate) const HIGH: u64 = 0x2468_5a00_0000;
/// Size of each view in bytes.
pub(crate) const LEN: u64 = 0x40_0000;

/// Offset, within each view, of the pages that can be read and written.
pub(crate) const DATA: u64 = 0x10_0000;
/// Size of `DATA` in bytes.
pub(crate) const DATA_LEN: u64 = 0x1_0000;
/// Offset, within each view, of a read-only page. It follows `DATA`. The addresses after it are not mapped.
pub(crate) const CONST: u64 = DATA + DATA_LEN;
/// Size of `CONST` in bytes.
pub(crate) const CONST_LEN: u64 = 0x1000;
/// Offset, within each view, of the pages that can be read and executed.
pub(crate) const CODE: u64 = 0x20_0000;
/// Size of `CODE` in bytes.
pub(crate) const CODE_LEN: u64 = 0x3000;

/// GS base during a test. The FS base belongs to the host thread, so no test uses FS.
pub(crate) const GS_BASE: u64 = 0x0123_4560;

/// True if an access to `len` bytes at `va` has the same effect on host and guest and cannot reach the memory of the
/// test process. This is the case if the range lies inside a view or in the upper half of the address space, or if its
/// addresses are not canonical.
pub(crate) fn is_safe(va: u64, len: u64) -> bool {
    let inside = |base: u64| va >= base && len <= LEN && va - base <= LEN - len;
    if inside(LOW) || inside(HIGH) {
        return true;
    }
    let last = va.wrapping_add(len.max(1) - 1);
    // Bits 63 to 56 are not all equal, so the address is canonical neither with 4-level nor with 5-level paging.
    let wild = |va: u64| !matches!(va >> 56, 0 | 0xff);
    let upper = |va: u64| va >= 0xffff_8000_0000_0000;
    last >= va && (wild(va) && wild(last) || upper(va) && upper(last))
}
/// Returns the offset of a linear address from the start of its view. Returns `None` if no view contains the address.
pub(crate) fn offset(va: u64) -> Option<u64> {
    [LOW, HIGH].into_iter().find(|&base| va >= base && va - base < LEN).map(|base| va - base)
}
/// True if `va` is in the half of the address space that belongs to the host's kernel. After a page fault there, Linux
/// does not tell the test process whether the page is present.
pub(crate) fn is_upper_half(va: u64) -> bool {
    va >> 63 == 1
}

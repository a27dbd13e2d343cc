//! Helpers for tests with random guest code: descriptors, answers of devices, and comparison of edges (executed
//! branches).

use everett_cpu::state::Segment;
use everett_cpu::{Edge, Request};

use crate::rng::Rng;

pub(crate) const KERNEL_CS: u16 = 0x10;
pub(crate) const KERNEL_SS: u16 = 0x18;
pub(crate) const USER_CS: u16 = 0x33;
pub(crate) const USER_SS: u16 = 0x2b;
pub(crate) const TSS_SELECTOR: u16 = 0x40;

/// Returns descriptors for the GDT, each with its offset. `tss` is the linear address of the TSS.
pub(crate) fn descriptors(tss: u64) -> [(u64, u64); 6] {
    let low = 0x67 | (tss & 0xff_ffff) << 16 | 0x89 << 40 | (tss >> 24 & 0xff) << 56;
    [
        (u64::from(KERNEL_CS), 0x00af_9b00_0000_ffff),
        (u64::from(KERNEL_SS), 0x00cf_9300_0000_ffff),
        (u64::from(USER_SS & !3), 0x00cf_f300_0000_ffff),
        (u64::from(USER_CS & !3), 0x00af_fb00_0000_ffff),
        (u64::from(TSS_SELECTOR), low),
        (u64::from(TSS_SELECTOR) + 8, tss >> 32),
    ]
}

/// Returns CS and SS of ring 3.
pub(crate) fn user_segments() -> [Segment; 2] {
    let segment = |selector, access| Segment { selector, base: 0, limit: u32::MAX, access };
    [segment(USER_CS, 0xa0fb), segment(USER_SS, 0xc0f3)]
}

/// Returns a device's answer to a request: 0 for a write, and for a read a pseudorandom number that depends only on the
/// address and the instruction count.
pub(crate) fn answer(request: Request, icount: u64) -> u64 {
    let at = match request {
        Request::MmioRead { gpa, .. } => gpa,
        Request::PioRead { port, .. } => u64::from(port) << 48,
        Request::MmioWrite { .. } | Request::PioWrite { .. } => return 0,
    };
    Rng::for_case(at, icount).next()
}

/// Describes the first edge that differs between two runs.
pub(crate) fn differing(a: &[Edge], b: &[Edge]) -> Option<String> {
    let n = (0..a.len().max(b.len())).find(|&n| a.get(n) != b.get(n))?;
    Some(format!("edge {n}: {:x?} and {:x?}", a.get(n), b.get(n)))
}

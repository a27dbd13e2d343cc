//! Whether the host CPU is one that the model can be held against.

use std::arch::x86_64::{__cpuid, __cpuid_count};

/// CPUID.07H.0:EBX bit 6: the x87 data pointer is updated by instructions with unmasked exceptions only
/// (SDM vol. 1, 8.1.8). Intel's processors do so from Skylake on, and so does the model.
const FDP_EXCPTN_ONLY: u32 = 1 << 6;

/// Properties of the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Features {
    /// Everything that test instructions use is there: x86-64-v2.
    pub(crate) v2: bool,
    /// It belongs to the line of processors that the model follows where the architecture leaves a choice (which of two
    /// faults comes first, #SS or #GP, x87 pointers). On others disagreements are to be expected.
    pub(crate) strict: bool,
}

/// Look at the host.
pub(crate) fn features() -> Features {
    let leaf0 = __cpuid(0);
    let vendor = [leaf0.ebx, leaf0.edx, leaf0.ecx].map(u32::to_le_bytes).concat();
    let leaf7 = if leaf0.eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    let v2 = is_x86_feature_detected!("sse4.2")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("cmpxchg16b");
    Features { v2, strict: vendor == b"GenuineIntel" && leaf7 & FDP_EXCPTN_ONLY != 0 }
}

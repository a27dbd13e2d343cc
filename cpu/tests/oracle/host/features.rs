//! What the host CPU is like, where processors that the model stands for differ among themselves.

use std::arch::x86_64::{__cpuid, __cpuid_count};

/// Properties of the host that change what can be compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Features {
    /// The vendor is Intel.
    pub(crate) intel: bool,
    /// The x87 data pointer is updated only by x87 instructions with unmasked exceptions: CPUID.07H.0:EBX bit 6
    /// (SDM vol. 1, 8.1.8).
    pub(crate) fdp_exceptions_only: bool,
    /// Everything that test instructions use is there: x86-64-v2.
    pub(crate) v2: bool,
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
    Features { intel: vendor == b"GenuineIntel", fdp_exceptions_only: leaf7 & (1 << 6) != 0, v2 }
}

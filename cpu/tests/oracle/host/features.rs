//! Features of the host CPU, as its instructions report them.
#![allow(unsafe_code)]

use std::arch::x86_64::{__cpuid, __cpuid_count, _fxsave64};

/// CPUID.07H.0:EBX bit 6: the x87 data pointer is updated by instructions with unmasked exceptions only
/// (SDM vol. 1, 8.1.8). Intel's processors do so from Skylake on, and so does the model.
const FDP_EXCPTN_ONLY: u32 = 1 << 6;
/// Offset of MXCSR_MASK in an FXSAVE image.
const MXCSR_MASK_AT: usize = 28;

/// Properties of the host CPU. None is inferred from a vendor's name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Features {
    /// True if the host has all features that test instructions use (x86-64-v2).
    pub(crate) v2: bool,
    /// True if the x87 data pointer is updated only by unmasked exceptions.
    pub(crate) data_pointer_of_exceptions: bool,
    /// True if FXSAVE, and so a signal frame, contains the x87 pointers only while an exception is pending, and zeroes
    /// otherwise. The oracle measures and sets it.
    pub(crate) hides_pointers: bool,
    /// Valid bits of MXCSR, as FXSAVE shows them.
    pub(crate) mxcsr_mask: u32,
}

/// Aligned memory for an FXSAVE image.
#[repr(C, align(16))]
struct Image([u8; 512]);

/// Returns the features of the host CPU.
pub(crate) fn features() -> Features {
    let leaf7 = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    let v2 = is_x86_feature_detected!("sse4.2")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("cmpxchg16b");
    let mut image = Image([0; 512]);
    // SAFETY: the image has the size and alignment that FXSAVE needs, and every x86-64 processor has FXSAVE.
    unsafe { _fxsave64(image.0.as_mut_ptr()) };
    let mxcsr_mask = u32::from_le_bytes(std::array::from_fn(|n| image.0[MXCSR_MASK_AT + n]));
    let data_pointer_of_exceptions = leaf7 & FDP_EXCPTN_ONLY != 0;
    Features { v2, data_pointer_of_exceptions, hides_pointers: false, mxcsr_mask }
}

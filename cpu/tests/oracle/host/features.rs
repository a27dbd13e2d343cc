//! Features of the host CPU, as CPUID and FXSAVE report them.
#![allow(unsafe_code)]

use iced_x86::CpuidFeature;
use std::arch::x86_64::{__cpuid, __cpuid_count, _fxsave64};

/// CPUID.07H.0:EBX bit 6: only an instruction with an unmasked exception updates the x87 data pointer (SDM vol. 1,
/// 8.1.8). This holds for Intel's processors from Skylake on, and for the soft CPU.
const FDP_EXCPTN_ONLY: u32 = 1 << 6;
/// Offset of MXCSR_MASK in an FXSAVE image.
const MXCSR_MASK_AT: usize = 28;

/// Properties of the host CPU, measured or read from CPUID. None is derived from the vendor's name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Features {
    /// True if the host has all features that test instructions use (x86-64-v2).
    pub(crate) v2: bool,
    /// True if only unmasked exceptions update the x87 data pointer.
    pub(crate) data_pointer_of_exceptions: bool,
    /// True if FXSAVE stores the x87 pointers only while an exception is pending, and zeros otherwise. Signal frames
    /// then lack the pointers, too. [`features`] returns false here; the oracle (`oracle.rs`) measures the value later.
    pub(crate) hides_pointers: bool,
    /// Valid bits of MXCSR, as FXSAVE stores them.
    pub(crate) mxcsr_mask: u32,
}

/// Memory for an FXSAVE image, aligned to 16 bytes.
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

/// True if the host has a feature of the larger CPU models. False for features that no model has.
pub(crate) fn has(feature: CpuidFeature) -> bool {
    match feature {
        CpuidFeature::AES => is_x86_feature_detected!("aes"),
        CpuidFeature::AVX => is_x86_feature_detected!("avx"),
        CpuidFeature::AVX2 => is_x86_feature_detected!("avx2"),
        CpuidFeature::BMI1 => is_x86_feature_detected!("bmi1"),
        CpuidFeature::BMI2 => is_x86_feature_detected!("bmi2"),
        CpuidFeature::F16C => is_x86_feature_detected!("f16c"),
        CpuidFeature::FMA => is_x86_feature_detected!("fma"),
        CpuidFeature::LZCNT => is_x86_feature_detected!("lzcnt"),
        CpuidFeature::MOVBE => is_x86_feature_detected!("movbe"),
        CpuidFeature::PCLMULQDQ => is_x86_feature_detected!("pclmulqdq"),
        CpuidFeature::SHA => is_x86_feature_detected!("sha"),
        CpuidFeature::XSAVE => is_x86_feature_detected!("xsave"),
        CpuidFeature::XSAVEC => is_x86_feature_detected!("xsavec"),
        CpuidFeature::XSAVEOPT => is_x86_feature_detected!("xsaveopt"),
        _ => false,
    }
}

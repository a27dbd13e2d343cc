//! Conversion between `u128`, in which the CPU keeps vectors, and the host's vector type, which intrinsics take.
#![allow(unsafe_code)]

use core::arch::x86_64::__m128i;

/// Converts to the host's vector type.
#[inline(always)]
pub(crate) fn vector(x: u128) -> __m128i {
    // SAFETY: both types are sixteen bytes of plain data, and every bit pattern is valid for each.
    unsafe { core::mem::transmute::<u128, __m128i>(x) }
}

/// Converts from the host's vector type.
#[inline(always)]
pub(crate) fn bits(x: __m128i) -> u128 {
    // SAFETY: as in `vector`.
    unsafe { core::mem::transmute::<__m128i, u128>(x) }
}

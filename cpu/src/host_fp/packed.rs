//! Packed integer arithmetic, as functions that the host's SSE2 instructions compute.
#![allow(unsafe_code)]

use super::vector::{bits, vector};
use core::arch::x86_64::*;

macro_rules! by_host {
    ($($name:ident $intrinsic:ident)*) => {$(
        #[doc = concat!("`", stringify!($intrinsic), "`.")]
        #[inline(always)]
        pub(crate) fn $name(a: u128, b: u128) -> u128 {
            // SAFETY: SSE2 is part of x86-64.
            bits(unsafe { $intrinsic(vector(a), vector(b)) })
        }
    )*};
}

by_host! {
    add8 _mm_add_epi8 add16 _mm_add_epi16 add32 _mm_add_epi32 add64 _mm_add_epi64
    sub8 _mm_sub_epi8 sub16 _mm_sub_epi16 sub32 _mm_sub_epi32 sub64 _mm_sub_epi64
    adds8 _mm_adds_epi8 adds16 _mm_adds_epi16 addus8 _mm_adds_epu8 addus16 _mm_adds_epu16
    subs8 _mm_subs_epi8 subs16 _mm_subs_epi16 subus8 _mm_subs_epu8 subus16 _mm_subs_epu16
    mullo16 _mm_mullo_epi16 mulhi16 _mm_mulhi_epi16 mulhiu16 _mm_mulhi_epu16 mulu32 _mm_mul_epu32
    madd16 _mm_madd_epi16 sad8 _mm_sad_epu8 avg8 _mm_avg_epu8 avg16 _mm_avg_epu16
    minu8 _mm_min_epu8 maxu8 _mm_max_epu8 min16 _mm_min_epi16 max16 _mm_max_epi16
    eq8 _mm_cmpeq_epi8 eq16 _mm_cmpeq_epi16 eq32 _mm_cmpeq_epi32
    gt8 _mm_cmpgt_epi8 gt16 _mm_cmpgt_epi16 gt32 _mm_cmpgt_epi32
    packs16 _mm_packs_epi16 packs32 _mm_packs_epi32 packus16 _mm_packus_epi16
    unpacklo8 _mm_unpacklo_epi8 unpacklo16 _mm_unpacklo_epi16
    unpacklo32 _mm_unpacklo_epi32 unpacklo64 _mm_unpacklo_epi64
    unpackhi8 _mm_unpackhi_epi8 unpackhi16 _mm_unpackhi_epi16
    unpackhi32 _mm_unpackhi_epi32 unpackhi64 _mm_unpackhi_epi64
    shl16 _mm_sll_epi16 shl32 _mm_sll_epi32 shl64 _mm_sll_epi64
    shr16 _mm_srl_epi16 shr32 _mm_srl_epi32 shr64 _mm_srl_epi64
    sar16 _mm_sra_epi16 sar32 _mm_sra_epi32
}

/// PMOVMSKB: returns the top bits of the sixteen bytes.
#[inline(always)]
pub(crate) fn mask8(a: u128) -> u64 {
    // SAFETY: SSE2 is part of x86-64.
    u64::from(unsafe { _mm_movemask_epi8(vector(a)) } as u32)
}

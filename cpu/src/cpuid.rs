//! Results of the CPUID instruction on each CPU model (SDM vol. 2A, CPUID).
//!
//! The signature of `v2` is that of an Intel Westmere, so that kernels take the same paths as on plain x86-64-v2
//! hardware. The signature of `v3` is that of a Haswell, the first x86-64-v3 hardware. The caches are a Westmere's in
//! both. The models differ from real processors in these points:
//!
//! - Leaves 15h and 16h give the frequencies of the TSC, the APIC timer and the core. Guests then need no calibration.
//! - The TSC is invariant, and the APIC timer always runs (ARAT).
//! - IA32_ARCH_CAPABILITIES describes a CPU that does not speculate and is immune to the known leaks. A guest with
//!   mitigations enabled therefore turns most of them off.
//! - The hypervisor bit is set, but there are no hypervisor leaves. Kernels treat the CPU as virtual: they do not look
//!   for microcode, and do not work around errata of real processors.
//!
//! All models deliberately lack RDRAND, RDSEED, PCID, x2APIC, TSC-deadline, TSC_ADJUST, MONITOR, machine check,
//! performance counters and thermal sensors. `v2` also lacks XSAVE and all features that need it.

use crate::mem::PHYSICAL_BITS;
use crate::model::{CpuModel, NAME_MAX};
use crate::state::{AVX_AT, AVX_LEN, xcr0};

/// Signature of `v2`: family 6, model 2Ch, stepping 2.
const SIGNATURE_V2: u32 = 0x0002_06c2;
/// Signature of `v3`: family 6, model 3Ch, stepping 3.
const SIGNATURE_V3: u32 = 0x0003_06c3;
/// Highest basic leaf.
const LEAF_MAX: u32 = 0x16;
/// Highest extended leaf.
const EXTENDED_MAX: u32 = 0x8000_0008;
/// Frequency of the crystal clock, the TSC and the APIC timer.
const CRYSTAL_HZ: u32 = 1_000_000_000;
const CORE_MHZ: u32 = 1000;
const LINEAR_BITS: u32 = 48;
/// Size of the processor brand string in bytes: text, padded with zeros.
const BRAND_LEN: usize = 48;
/// Enable bit of IA32_APIC_BASE.
const APIC_ENABLED: u64 = 1 << 11;

const fn bits(list: &[u32]) -> u32 {
    let mut v = 0;
    let mut i = 0;
    while i < list.len() {
        v |= 1 << list[i];
        i += 1;
    }
    v
}

/// Leaf 1 ECX: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT, hypervisor bit.
const FEATURES_C: u32 = bits(&[0, 9, 13, 19, 20, 23, 31]);
/// Leaf 1 ECX of `v3`, besides [`FEATURES_C`]: FMA, MOVBE, XSAVE, AVX, F16C.
const FEATURES_C_V3: u32 = bits(&[12, 22, 26, 28, 29]);
/// Leaf 1 ECX: CR4.OSXSAVE is set.
const FEATURE_OSXSAVE: u32 = 1 << 27;
/// Leaf 1 ECX of models with AES: PCLMULQDQ, AES.
const FEATURES_C_AES: u32 = bits(&[1, 25]);
/// Leaf 1 EDX: FPU, DE, PSE, TSC, MSR, PAE, CX8, SEP, MTRR, PGE, CMOV, PAT, PSE36, CLFSH, MMX, FXSR, SSE, SSE2.
const FEATURES_D: u32 = bits(&[0, 2, 3, 4, 5, 6, 8, 11, 12, 13, 15, 16, 17, 19, 23, 24, 25, 26]);
/// Leaf 1 EDX: the local APIC. CPUID reports it only while IA32_APIC_BASE enables the APIC.
const FEATURE_APIC: u32 = 1 << 9;
/// Leaf 7 EBX: x87 data pointer updated only on exceptions, SMEP, x87 CS and DS deprecated, SMAP.
const STRUCTURED_B: u32 = bits(&[6, 7, 13, 20]);
/// Leaf 7 EBX of `v3`, besides [`STRUCTURED_B`]: BMI1, AVX2, BMI2.
const STRUCTURED_B_V3: u32 = bits(&[3, 5, 8]);
/// Leaf 7 EBX of models with SHA: SHA.
const STRUCTURED_B_SHA: u32 = bits(&[29]);
/// Leaf 7 ECX: UMIP.
const STRUCTURED_C: u32 = bits(&[2]);
/// Leaf 7 EDX: IA32_ARCH_CAPABILITIES.
const STRUCTURED_D: u32 = bits(&[29]);
/// Leaf 80000001h ECX: LAHF and SAHF in 64-bit mode.
const EXTENDED_C: u32 = bits(&[0]);
/// Leaf 80000001h ECX of `v3`, besides [`EXTENDED_C`]: LZCNT.
const EXTENDED_C_V3: u32 = bits(&[5]);
/// Leaf 80000001h EDX: SYSCALL, NX, 1 GiB pages, RDTSCP, long mode.
const EXTENDED_D: u32 = bits(&[11, 20, 26, 27, 29]);

/// Leaf 0Dh, subleaf 1, EAX: XSAVEOPT, XSAVEC, XGETBV of the components in use.
const XSAVE_FORMS: u32 = bits(&[0, 1, 2]);

/// Registers on which CPUID results depend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuidInputs {
    /// IA32_APIC_BASE.
    pub apic_base: u64,
    /// CR4.OSXSAVE.
    pub osxsave: bool,
    /// XCR0.
    pub xcr0: u64,
}

/// One row of the model's CPUID table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// EAX before CPUID.
    pub leaf: u32,
    /// ECX before CPUID, or `None` if the result does not depend on ECX.
    pub subleaf: Option<u32>,
    /// EAX, EBX, ECX and EDX after CPUID.
    pub registers: [u32; 4],
}

/// Returns the rows of a model that are not all zero, for an engine such as KVM that executes CPUID itself. Leaves within
/// the basic and extended ranges that have no row are zero. Leaves beyond these ranges return the last basic leaf.
/// Subleaves of 0Bh from 2 on have no row either, although [`leaf`] returns their number in ECX.
pub fn leaves(model: CpuModel, apic_base: u64) -> Vec<Leaf> {
    let seen = CpuidInputs { apic_base, osxsave: false, xcr0: xcr0::X87 };
    let numbers = (0..=LEAF_MAX).chain(0x8000_0000..=EXTENDED_MAX);
    let rows = numbers.flat_map(|number| {
        let subleaves = match number {
            4 => 0..5,
            7 => 0..1,
            0xb => 0..2,
            0xd if model.is_v3() => 0..3,
            _ => 0..0,
        };
        let whole = subleaves.is_empty().then_some(None);
        whole.into_iter().chain(subleaves.map(Some)).map(move |subleaf| Leaf {
            leaf: number,
            subleaf,
            registers: leaf(model, number, subleaf.unwrap_or(0), seen),
        })
    });
    rows.filter(|row| row.registers != [0; 4]).collect()
}

/// Returns EAX, EBX, ECX and EDX for a leaf and subleaf. A leaf beyond the basic and extended ranges returns the last
/// basic leaf, as on Intel CPUs.
pub(crate) fn leaf(model: CpuModel, eax: u32, ecx: u32, seen: CpuidInputs) -> [u32; 4] {
    let only_if = |has: bool, bits: u32| if has { bits } else { 0 };
    let v3 = |bits| only_if(model.is_v3(), bits);
    match eax {
        0 => [LEAF_MAX, word(b"Genu"), word(b"ntel"), word(b"ineI")],
        1 => {
            let apic = if seen.apic_base & APIC_ENABLED != 0 { FEATURE_APIC } else { 0 };
            // EBX: a CLFLUSH line of 8 x 8 bytes, one logical processor, APIC ID 0.
            let signature = if model.is_v3() { SIGNATURE_V3 } else { SIGNATURE_V2 };
            let more = v3(FEATURES_C_V3)
                | only_if(seen.osxsave, FEATURE_OSXSAVE)
                | only_if(model.has_aes(), FEATURES_C_AES);
            [signature, 8 << 8 | 1 << 16, FEATURES_C | more, FEATURES_D | apic]
        }
        // Descriptors: the TLBs of a Westmere, a prefetch of 64 bytes, and "leaf 4 describes the caches".
        2 => [0x5503_5a01, 0x00f0_b2ff, 0, 0x00ca_0000],
        4 => cache(ecx),
        // EAX bit 2: the APIC timer always runs (ARAT).
        6 => [1 << 2, 0, 0, 0],
        7 if ecx == 0 => {
            let more = v3(STRUCTURED_B_V3) | only_if(model.has_sha(), STRUCTURED_B_SHA);
            [0, STRUCTURED_B | more, STRUCTURED_C, STRUCTURED_D]
        }
        0xb => topology(ecx),
        0xd if model.is_v3() => components(ecx, seen.xcr0),
        0x15 => [1, 1, CRYSTAL_HZ, 0],
        0x16 => [CORE_MHZ, CORE_MHZ, 0, 0],
        0x8000_0000 => [EXTENDED_MAX, 0, 0, 0],
        0x8000_0001 => [0, 0, EXTENDED_C | v3(EXTENDED_C_V3), EXTENDED_D],
        0x8000_0002..=0x8000_0004 => brand(model, (eax - 0x8000_0002) as usize),
        // ECX: an L2 cache of 256 KiB with 8 ways and lines of 64 bytes.
        0x8000_0006 => [0, 0, 256 << 16 | 6 << 12 | 64, 0],
        // EDX bit 8: the TSC is invariant.
        0x8000_0007 => [0, 0, 0, 1 << 8],
        0x8000_0008 => [LINEAR_BITS << 8 | PHYSICAL_BITS, 0, 0, 0],
        0..=LEAF_MAX | 0x8000_0005 => [0; 4],
        _ => leaf(model, LEAF_MAX, ecx, seen),
    }
}

fn word(text: &[u8; 4]) -> u32 {
    u32::from_le_bytes(*text)
}

/// Returns sixteen bytes of the brand string, which is the model's name.
fn brand(model: CpuModel, part: usize) -> [u32; 4] {
    let mut text = [0; BRAND_LEN];
    let name = format!("Everett {model}");
    text[..name.len()].copy_from_slice(name.as_bytes());
    let at = |i: usize| u32::from_le_bytes(std::array::from_fn(|n| text[16 * part + i + n]));
    [at(0), at(4), at(8), at(12)]
}

const _: () = assert!("Everett ".len() + NAME_MAX < BRAND_LEN);

/// Leaf 4: L1 and L2 caches of a Westmere, and an L3 cache of 4 MiB. C libraries use these sizes to choose how they
/// copy memory.
fn cache(subleaf: u32) -> [u32; 4] {
    /// Describes a cache for one logical processor: EAX has type, level and "self-initialising", EBX the ways and
    /// 64-byte lines.
    fn one(kind: u32, level: u32, ways: u32, sets: u32) -> [u32; 4] {
        [kind | level << 5 | 1 << 8, (ways - 1) << 22 | 63, sets - 1, 0]
    }
    const DATA: u32 = 1;
    const CODE: u32 = 2;
    const UNIFIED: u32 = 3;
    match subleaf {
        0 => one(DATA, 1, 8, 64),
        1 => one(CODE, 1, 4, 128),
        2 => one(UNIFIED, 2, 8, 512),
        3 => one(UNIFIED, 3, 16, 4096),
        _ => [0; 4],
    }
}

/// Leaf 0Dh of models with XSAVE: the components of XCR0, and the sizes of the XSAVE area in bytes. Both formats have
/// the AVX component at the same place.
fn components(subleaf: u32, enabled: u64) -> [u32; 4] {
    let all = (AVX_AT + AVX_LEN) as u32;
    let now = if enabled & xcr0::AVX != 0 { all } else { AVX_AT as u32 };
    match subleaf {
        0 => [(xcr0::X87 | xcr0::AVX_STATE) as u32, now, all, 0],
        1 => [XSAVE_FORMS, now, 0, 0],
        2 => [AVX_LEN as u32, AVX_AT as u32, 0, 0],
        _ => [0; 4],
    }
}

/// Leaf 0Bh: one core with one thread, whose x2APIC ID in EDX is 0.
fn topology(subleaf: u32) -> [u32; 4] {
    match subleaf {
        0 => [0, 1, 1 << 8, 0],
        1 => [0, 1, 2 << 8 | 1, 0],
        _ => [0, 0, subleaf & 0xff, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APIC_BASE: u64 = 0xfee0_0900;
    const BASE: CpuidInputs = CpuidInputs { apic_base: APIC_BASE, osxsave: false, xcr0: xcr0::X87 };
    const V2: CpuModel = CpuModel::V2;

    #[test]
    fn vendor_and_brand_read_as_text() {
        let [max, b, c, d] = leaf(V2, 0, 0, BASE);
        let text: Vec<u8> = [b, d, c].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!((max, text.as_slice()), (0x16, b"GenuineIntel".as_slice()));
        let text: Vec<u8> =
            (2..=4).flat_map(|n| leaf(V2, 0x8000_0000 + n, 0, BASE)).flat_map(u32::to_le_bytes).collect();
        assert_eq!(&text[..11], b"Everett v2\0");
    }

    #[test]
    fn frequencies_need_no_calibration() {
        assert_eq!(leaf(V2, 0x15, 0, BASE), [1, 1, 1_000_000_000, 0]);
        assert_eq!(leaf(V2, 0x16, 0, BASE)[0], 1000);
        assert_eq!(leaf(V2, 0x8000_0007, 0, BASE)[3], 1 << 8);
    }

    #[test]
    fn a_leaf_beyond_the_last_shows_the_last() {
        for eax in [0x17, 0x4000_0000, 0x7fff_ffff, 0x8000_0009, u32::MAX] {
            assert_eq!(leaf(V2, eax, 0, BASE), leaf(V2, 0x16, 0, BASE));
        }
    }

    #[test]
    fn the_apic_bit_follows_the_apic() {
        assert_eq!(leaf(V2, 1, 0, BASE)[3] & FEATURE_APIC, FEATURE_APIC);
        assert_eq!(
            leaf(V2, 1, 0, CpuidInputs { apic_base: APIC_BASE & !APIC_ENABLED, ..BASE })[3] & FEATURE_APIC,
            0
        );
    }

    #[test]
    fn the_rows_are_the_leaves() {
        for model in [CpuModel::V2, CpuModel::LARGEST] {
            let rows = leaves(model, APIC_BASE);
            for eax in (0..=LEAF_MAX).chain(0x8000_0000..=EXTENDED_MAX) {
                for ecx in 0..4 {
                    let found =
                        rows.iter().find(|r| r.leaf == eax && r.subleaf.is_none_or(|subleaf| subleaf == ecx));
                    // Further subleaves of 0Bh have no row: they return their own number in ECX.
                    if (eax, ecx > 1) != (0xb, true) {
                        assert_eq!(
                            found.map_or([0; 4], |r| r.registers),
                            leaf(model, eax, ecx, BASE),
                            "{eax:x} {ecx}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn caches_have_the_sizes_of_the_leaf_80000006() {
        let size = |[_, b, c, _]: [u32; 4]| ((b >> 22) + 1) * ((b & 0xfff) + 1) * (c + 1);
        assert_eq!(size(cache(0)), 32 << 10);
        assert_eq!(size(cache(1)), 32 << 10);
        assert_eq!(size(cache(2)), 256 << 10);
        assert_eq!(size(cache(3)), 4 << 20);
        assert_eq!(cache(4), [0; 4]);
    }
}

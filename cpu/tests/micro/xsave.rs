//! XSAVE, XCR0 and the YMM registers: the conditions of #UD, #GP and #NM, and the upper halves of registers.

use everett_cpu::CpuModel;
use everett_cpu::state::{OSXSAVE, xcr0};

use super::harness::{Outcome, check};
use super::image::*;

const NONE: [(u64, u64); 0] = [];
const UD: (u64, u64) = (6, 0);
const NM: (u64, u64) = (7, 0);
const GP: (u64, u64) = (13, 0);

const XGETBV: &[u8] = &[0x0f, 0x01, 0xd0];
const XSETBV: &[u8] = &[0x0f, 0x01, 0xd1];
/// VPADDB YMM1, YMM2, YMM3.
const ADD: &[u8] = &[0xc5, 0xed, 0xfc, 0xcb];
/// VPADDB XMM1, XMM2, XMM3.
const ADD_128: &[u8] = &[0xc5, 0xe9, 0xfc, 0xcb];
/// PADDB XMM1, XMM3.
const ADD_LEGACY: &[u8] = &[0x66, 0x0f, 0xfc, 0xcb];
/// XSAVE, XSAVEC and XRSTOR of the area at RBX.
const XSAVE: &[u8] = &[0x0f, 0xae, 0x23];
const XSAVEC: &[u8] = &[0x0f, 0xc7, 0x23];
const XRSTOR: &[u8] = &[0x0f, 0xae, 0x2b];

/// Returns a guest of the model `v3` in ring 0 with all components enabled.
fn guest(bytes: &[&[u8]]) -> Guest {
    let mut g = Guest::in_ring_0(|a| {
        bytes.iter().try_for_each(|bytes| a.db(bytes))?;
        a.hlt()
    });
    g.model = CpuModel::V3;
    g.state.cr4 |= OSXSAVE;
    g.state.extended.xcr0 = xcr0::X87 | xcr0::AVX_STATE;
    g.state.gpr[0] = 7;
    g.state.gpr[3] = DATA;
    for n in 0..16 {
        g.state.fpu.xmm[n] = n as u128 * 0x0101;
        g.state.extended.ymm[n] = n as u128 * 0x0202;
    }
    g
}

fn run(bytes: &[&[u8]], change: impl FnOnce(&mut Guest)) -> Outcome {
    let mut g = guest(bytes);
    change(&mut g);
    check(&g)
}

#[test]
fn avx_needs_osxsave_and_both_components() {
    let vectors = |change: fn(&mut Guest)| run(&[ADD], change).vectors();
    assert_eq!(vectors(|_| ()), NONE);
    assert_eq!(vectors(|g| g.state.cr4 &= !OSXSAVE), [UD]);
    assert_eq!(vectors(|g| g.state.extended.xcr0 = xcr0::X87 | xcr0::SSE), [UD]);
    assert_eq!(vectors(|g| g.state.cr0 |= 8), [NM]);
    // CR0.EM and CR4.OSFXSR concern the legacy encodings only.
    assert_eq!(vectors(|g| g.state.cr0 |= 4), NONE);
    assert_eq!(vectors(|g| g.state.cr4 &= !(1 << 9)), NONE);
    assert_eq!(run(&[ADD_LEGACY], |g| g.state.cr4 &= !(1 << 9)).vectors(), [UD]);
    assert_eq!(vectors(|g| g.model = CpuModel::V2), [UD]);
}

#[test]
fn prefixes_before_vex_are_refused() {
    for prefix in [0xf0, 0x66, 0xf2, 0xf3, 0x40] {
        assert_eq!(run(&[&[prefix], ADD], |_| ()).vectors(), [UD], "{prefix:#x}");
    }
    // VPADDB with the segment prefix GS, and VSQRTPS with a second source, which it does not have.
    assert_eq!(run(&[&[0x65], ADD], |_| ()).vectors(), NONE);
    assert_eq!(run(&[&[0xc5, 0xe8, 0x51, 0xcb]], |_| ()).vectors(), [UD]);
    // VPHMINPOSUW has no form of 256 bits.
    assert_eq!(run(&[&[0xc4, 0xe2, 0x7d, 0x41, 0xcb]], |_| ()).vectors(), [UD]);
}

#[test]
fn only_legacy_encodings_keep_the_upper_half() {
    let upper = |bytes| run(&[bytes], |_| ()).state.extended.ymm[1];
    assert_eq!(upper(ADD), 5 * 0x0202);
    assert_eq!(upper(ADD_128), 0);
    assert_eq!(upper(ADD_LEGACY), 0x0202);
    // VZEROUPPER and VZEROALL.
    let out = run(&[&[0xc5, 0xf8, 0x77]], |_| ());
    assert_eq!((out.state.fpu.xmm[1], out.state.extended.ymm), (0x0101, [0; 16]));
    let out = run(&[&[0xc5, 0xfc, 0x77]], |_| ());
    assert_eq!((out.state.fpu.xmm, out.state.extended.ymm), ([0; 16], [0; 16]));
}

#[test]
fn xcr0_refuses_invalid_values() {
    for (value, fine) in [(1, true), (3, true), (7, true), (5, false), (6, false), (0, false), (15, false)] {
        let out = run(&[XSETBV], |g| g.state.gpr[0] = value);
        assert_eq!(out.vectors(), fault_if(!fine, GP), "{value}");
        assert_eq!(out.state.extended.xcr0, if fine { value } else { 7 });
    }
    assert_eq!(run(&[XSETBV], |g| g.state.gpr[1] = 1).vectors(), [GP]);
    assert_eq!(run(&[XSETBV], |g| g.state.cr4 &= !OSXSAVE).vectors(), [UD]);
    assert_eq!(run(&[XGETBV], |g| g.state.cr4 &= !OSXSAVE).vectors(), [UD]);
    assert_eq!(run(&[XGETBV], |g| g.state.gpr[1] = 2).vectors(), [GP]);
    assert_eq!(run(&[XGETBV], |_| ()).state.gpr[0], 7);
    // The components in use: x87 has its initial values.
    assert_eq!(run(&[XGETBV], |g| g.state.gpr[1] = 1).state.gpr[0], 6);
}

#[test]
fn a_restored_area_is_the_saved_state() {
    for save in [XSAVE, XSAVEC] {
        let saved = run(&[save], |_| ());
        assert_eq!(saved.word(DATA + 512), 6, "x87 is not in use");
        assert_eq!(saved.word(DATA + 520), if save == XSAVEC { 1 << 63 | 7 } else { 0 });
        assert_eq!(saved.word(DATA + 576 + 16 * 3), 3 * 0x0202);
        // VZEROALL between the two.
        let out = run(&[save, &[0xc5, 0xfc, 0x77], XRSTOR], |_| ());
        assert_eq!(out.vectors(), NONE);
        assert_eq!((out.state.fpu, out.state.extended), (saved.state.fpu, saved.state.extended));
    }
}

#[test]
fn an_area_without_a_component_restores_its_initial_values() {
    let out = run(&[XRSTOR], |g| g.put(DATA + 512, 0));
    assert_eq!(out.vectors(), NONE, "MXCSR is zero in the area");
    assert_eq!((out.state.extended.ymm, out.state.fpu.xmm), ([0; 16], [0; 16]));
    // Only the selected components change.
    let out = run(&[XRSTOR], |g| g.state.gpr[0] = 4);
    assert_eq!((out.state.extended.ymm[3], out.state.fpu.xmm[3]), (0, 3 * 0x0101));
}

#[test]
fn areas_are_checked() {
    let restore = |change: fn(&mut Guest)| run(&[XRSTOR], change).vectors();
    assert_eq!(restore(|g| g.state.gpr[3] += 16), [GP]);
    assert_eq!(restore(|g| g.put(DATA + 512, 8)), [GP]);
    assert_eq!(restore(|g| g.put(DATA + 520, 1)), [GP]);
    assert_eq!(restore(|g| g.put(DATA + 528, 1)), [GP]);
    assert_eq!(restore(|g| g.put(DATA + 536, 1)), NONE);
    assert_eq!(restore(|g| g.put(DATA + 24, 1 << 16)), [GP]);
    // Compacted: a component outside the layout, a layout outside XCR0, and reserved words.
    let compacted = |saved: u64, layout: u64, word: u64| {
        let change = |g: &mut Guest| {
            g.put(DATA + 512, saved);
            g.put(DATA + 520, 1 << 63 | layout);
            g.put(DATA + 568, word);
        };
        run(&[XRSTOR], change).vectors()
    };
    assert_eq!(compacted(2, 7, 0), NONE);
    assert_eq!(compacted(4, 3, 0), [GP]);
    assert_eq!(compacted(0, 8, 0), [GP]);
    assert_eq!(compacted(0, 7, 1), [GP]);
    for bytes in [XSAVE, XSAVEC] {
        assert_eq!(run(&[bytes], |g| g.state.gpr[3] += 32).vectors(), [GP]);
        assert_eq!(run(&[bytes], |g| g.state.cr0 |= 8).vectors(), [NM]);
        assert_eq!(run(&[bytes], |g| g.state.cr4 &= !OSXSAVE).vectors(), [UD]);
    }
}

/// XSAVEC of the AVX component alone writes no byte of the part for x87 and SSE.
#[test]
fn parts_of_an_area_that_are_not_written_need_no_memory() {
    let saves = |selected: u64| {
        run(&[XSAVEC], |g| {
            g.map(ELSEWHERE + 0x1000, DATA, P | W);
            g.state.gpr[0] = selected;
            // The header is on the mapped page.
            g.state.gpr[3] = ELSEWHERE + 0x1000 - 256;
        })
    };
    let out = saves(4);
    assert_eq!((out.vectors(), out.word(DATA + 256), out.word(DATA + 264)), (NONE.to_vec(), 4, 1 << 63 | 4));
    assert_eq!(saves(6).vectors(), [(14, 2)]);
    assert_eq!(saves(2).vectors(), [(14, 2)]);
}

/// F16C checks no alignment, and VMOVD does.
#[test]
fn conversions_of_half_precision_need_no_alignment() {
    let vectors = |bytes: &[u8]| {
        let mut g = Guest::in_ring(3, |a| {
            a.db(bytes)?;
            exit(a)
        });
        g.model = CpuModel::V3;
        g.state.cr4 |= OSXSAVE;
        g.state.cr0 |= 1 << 18;
        g.state.rflags |= 1 << 18;
        g.state.extended.xcr0 = xcr0::X87 | xcr0::AVX_STATE;
        g.map(ELSEWHERE, DATA, P | W | U);
        g.state.gpr[3] = ELSEWHERE + 1;
        check(&g).vectors()
    };
    // VCVTPH2PS XMM1, [RBX]; VCVTPS2PH [RBX], XMM1, 4; VMOVD XMM1, [RBX].
    assert_eq!(vectors(&[0xc4, 0xe2, 0x79, 0x13, 0x0b]), NONE);
    assert_eq!(vectors(&[0xc4, 0xe3, 0x79, 0x1d, 0x0b, 0x04]), NONE);
    assert_eq!(vectors(&[0xc5, 0xf9, 0x6e, 0x0b]), [(17, 0)]);
}

/// Areas whose header is past the end of the address space, where addresses wrap to the mapped page at 0, or in its last page,
/// which is not mapped.
#[test]
fn addresses_of_areas_wrap() {
    for (bytes, selected, write) in [(XSAVEC, 0, 2), (XSAVEC, 4, 2), (XRSTOR, 0, 0)] {
        let vectors = |start: u64| {
            let out = run(&[bytes], |g| {
                g.state.gpr[0] = selected;
                g.state.gpr[3] = !0xffff | start;
            });
            out.vectors()
        };
        assert_eq!(vectors(0xfe00), NONE, "{selected}");
        assert_eq!(vectors(0xfd00), [(14, write)], "{selected}");
    }
}

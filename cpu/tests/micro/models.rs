//! CPU models: each has its instructions, raises #UD for the others, and shows its features in CPUID.

use everett_assembler::*;
use everett_cpu::CpuModel;

use super::harness::{Outcome, check};
use super::image::*;

const UD: (u64, u64) = (6, 0);

/// Runs code on a model: the bytes of an instruction between `before` and HLT.
fn run(model: &str, before: impl FnOnce(&mut Assembler) -> Result<(), Error>, instruction: &[u8]) -> Outcome {
    let mut g = Guest::in_ring_0(|a| {
        before(a)?;
        a.db(instruction)?;
        a.hlt()
    });
    g.model = model.parse().expect("a model");
    check(&g)
}

/// CPUID features that a model shows: leaf 1 ECX, leaf 7 EBX and leaf 80000001h ECX.
fn features(model: &str) -> [u64; 3] {
    [(1, 2), (7, 1), (0x8000_0001u32, 2)].map(|(leaf, register)| {
        let out = run(
            model,
            |a| {
                a.mov(eax, leaf)?;
                a.xor(ecx, ecx)
            },
            &[0x0f, 0xa2],
        );
        out.state.gpr[[0, 3, 1, 2][register]]
    })
}

#[test]
fn only_models_with_an_instruction_execute_it() {
    let all = ["v2", "v2+aes", "v2+sha", "v3", "v3+aes+sha"];
    let cases: [(&str, &[u8], &[&str]); 6] = [
        ("ANDN EAX, EBX, ECX", &[0xc4, 0xe2, 0x60, 0xf2, 0xc1], &["v3", "v3+aes+sha"]),
        ("SHLX RAX, RBX, RCX", &[0xc4, 0xe2, 0xf1, 0xf7, 0xc3], &["v3", "v3+aes+sha"]),
        ("MOVBE EAX, [RSP]", &[0x0f, 0x38, 0xf0, 0x04, 0x24], &["v3", "v3+aes+sha"]),
        ("AESENC XMM0, XMM1", &[0x66, 0x0f, 0x38, 0xdc, 0xc1], &["v2+aes", "v3+aes+sha"]),
        ("PCLMULQDQ XMM0, XMM1, 0", &[0x66, 0x0f, 0x3a, 0x44, 0xc1, 0], &["v2+aes", "v3+aes+sha"]),
        ("SHA256MSG1 XMM0, XMM1", &[0x0f, 0x38, 0xcc, 0xc1], &["v2+sha", "v3+aes+sha"]),
    ];
    for (name, bytes, having) in cases {
        for model in all {
            let out = run(model, |_| Ok(()), bytes);
            assert_eq!(out.vectors(), fault_if(!having.contains(&model), UD), "{name} on {model}");
        }
    }
}

#[test]
fn a_model_without_tzcnt_and_lzcnt_scans_instead() {
    for (bytes, scanned, counted) in [
        ([0xf3, 0x0f, 0xbc, 0xc1], 4, 4),
        ([0xf3, 0x0f, 0xbd, 0xc1], 8, 64 - 9),
        ([0xf3, 0x0f, 0xbd, 0xc1], 8, 23),
    ] {
        let wide = counted > 32;
        let mut bytes = bytes.to_vec();
        if wide {
            bytes.insert(1, 0x48);
        }
        let result = |model| run(model, |a| a.mov(rcx, 0x110u64), &bytes).state.gpr[0];
        assert_eq!((result("v2"), result("v3")), (scanned, counted));
        // A scan of zero keeps its destination. A count of zero is the width.
        let zero = |model| run(model, |a| a.mov(rax, 7u64), &bytes).state.gpr[0];
        assert_eq!((zero("v2"), zero("v3")), (7, if wide { 64 } else { 32 }));
    }
}

#[test]
fn cpuid_shows_the_instructions_of_the_model() {
    let (c, b, extended) = (0x8098_2201, 0x0010_20c0, 1);
    assert_eq!(features("v2"), [c, b, extended]);
    assert_eq!(features("v2+aes"), [c | 1 << 25 | 1 << 1, b, extended]);
    assert_eq!(features("v2+sha"), [c, b | 1 << 29, extended]);
    let avx = 1 << 12 | 1 << 22 | 1 << 26 | 1 << 28 | 1 << 29;
    assert_eq!(features("v3"), [c | avx, b | 1 << 3 | 1 << 5 | 1 << 8, extended | 1 << 5]);
    let named = |model: &str| CpuModel::to_string(&model.parse().expect("a model"));
    assert_eq!(named("v3+sha+aes"), "v3+aes+sha");
}

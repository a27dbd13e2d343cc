//! VEX instructions in translated code: every form, and blocks that mix them with legacy SSE instructions, handlers
//! (functions of Everett that translated code calls for an instruction), faults and TLB misses.

use everett_assembler::*;
use everett_cpu::CpuModel;
use everett_cpu::state::{OSXSAVE, xcr0};
use iced_x86::{Code, CpuidFeature, Encoder, EncodingKind, Instruction, OpCodeOperandKind, OpKind, Register};

use super::harness::{Draw, check, check_every_count, check_translated_whole};
use super::image::*;

/// Address of the initial values of vector registers. RDI points to it.
const VALUES: u64 = DATA;
/// Address of the operand in memory, a multiple of 4096. RSI points to it.
const OPERAND: u64 = DATA + 0x2000;
/// Address of the results, 64 bytes for each form. RBP points to it.
const RESULTS: u64 = DATA + 0x1_0000;
/// Number of forms in one guest. Their code and their results must fit into RAM.
const FORMS_MAX: usize = 400;

/// Bits of floating-point numbers: zeros, denormals, normal numbers, infinities and NaNs, as doubles and singles.
const NUMBERS: [u64; 12] = [
    0x3ff0_0000_3f80_0000,
    0x7ff8_0000_0000_0001,
    0x7ff0_0000_0000_0002,
    0x7fc0_1234_ff80_0001,
    0x8000_0000_0000_0001,
    0x000f_ffff_8000_0001,
    0xfff0_0000_7f80_0000,
    0x47ef_ffff_f000_0000,
    0x41df_ffff_ffe0_0000,
    0xc008_0000_bf00_0001,
    0,
    0x7fef_ffff_7f7f_ffff,
];

/// Returns the guest `g` as one of the largest model, in which AVX is enabled, with vector registers and memory filled.
fn with_avx(mut g: Guest, mxcsr: u32, seed: u64) -> Guest {
    g.model = CpuModel::LARGEST;
    g.state.cr4 |= OSXSAVE | 1 << 9 | 1 << 10;
    g.state.extended.xcr0 = xcr0::X87 | xcr0::AVX_STATE;
    g.state.fpu.mxcsr = mxcsr;
    let mut draw = Draw(seed);
    let mut word = || match draw.next(3) {
        0 => NUMBERS[draw.next(NUMBERS.len() as u64) as usize],
        _ => draw.next(1 << 31) << 33 ^ draw.next(1 << 31) << 11 ^ draw.next(1 << 31),
    };
    for at in (0..0x4000).step_by(8) {
        g.put(VALUES + at, word());
    }
    for n in 0..16 {
        g.state.fpu.xmm[n] = u128::from(word()) << 64 | u128::from(word());
        g.state.extended.ymm[n] = u128::from(word()) << 64 | u128::from(word());
    }
    g
}

/// Returns the encoding of a form. Operand `k` is register `registers[k]`, or memory at RSI plus `disp` if the form and
/// `disp` permit it. Returns `None` for forms whose operands are not of these kinds.
fn form(code: Code, registers: [u32; 4], disp: Option<i64>, immediate: u8) -> Option<Vec<u8>> {
    use OpCodeOperandKind as Kind;
    let info = code.op_code();
    let is_tested = |feature: &CpuidFeature| {
        use CpuidFeature::*;
        matches!(feature, AES | AVX | AVX2 | BMI1 | BMI2 | FMA | F16C | PCLMULQDQ)
    };
    let vex = info.encoding() == EncodingKind::VEX && info.mode64();
    // VLDMXCSR would give the following forms another MXCSR.
    if !vex || code == Code::VEX_Vldmxcsr_m32 || !code.cpuid_features().iter().all(is_tested) {
        return None;
    }
    let mut i = Instruction::default();
    i.set_code(code);
    for (k, &kind) in info.op_kinds().iter().enumerate() {
        let (k, vector) = (k as u32, registers[k]);
        let general = [0, 3, 9, 10][k as usize] + u32::from(vector > 8);
        let register = match kind {
            Kind::imm8 => {
                i.set_op_kind(k, OpKind::Immediate8);
                i.set_immediate8(immediate);
                continue;
            }
            Kind::mem | Kind::xmm_or_mem | Kind::ymm_or_mem | Kind::r32_or_mem | Kind::r64_or_mem
                if disp.is_some() =>
            {
                i.set_op_kind(k, OpKind::Memory);
                i.set_memory_base(Register::RSI);
                i.set_memory_displacement64(disp? as u64);
                i.set_memory_displ_size(8);
                continue;
            }
            Kind::xmm_reg | Kind::xmm_rm | Kind::xmm_vvvv | Kind::xmm_is4 | Kind::xmm_or_mem => {
                Register::XMM0 + vector
            }
            Kind::ymm_reg | Kind::ymm_rm | Kind::ymm_vvvv | Kind::ymm_is4 | Kind::ymm_or_mem => {
                Register::YMM0 + vector
            }
            Kind::r32_reg | Kind::r32_rm | Kind::r32_vvvv | Kind::r32_or_mem => Register::EAX + general,
            Kind::r64_reg | Kind::r64_rm | Kind::r64_vvvv | Kind::r64_or_mem => Register::RAX + general,
            _ => return None,
        };
        i.set_op_kind(k, OpKind::Register);
        i.set_op_register(k, register);
    }
    let has_memory = (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Memory);
    if has_memory != disp.is_some() {
        return None;
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&i, 0).ok()?;
    Some(encoder.take_buffer())
}

/// Returns a guest that executes each of the forms a few times, and stores registers and flags after each.
fn guest(forms: &[Vec<u8>], mxcsr: u32) -> Guest {
    let g = Guest::in_ring_0(|a| {
        let again = a.create_label();
        a.mov(rdi, VALUES)?;
        a.mov(rsi, OPERAND)?;
        a.mov(ecx, 4)?;
        a.set_label(again)?;
        a.mov(rbp, RESULTS)?;
        for bytes in forms {
            let next = a.create_label();
            a.lea(r15, ptr(next))?;
            // vmovups ymm1, [rdi + 0x40] and so on.
            a.db(&[0xc5, 0xfc, 0x10, 0x4f, 0x40])?;
            a.db(&[0xc5, 0xfc, 0x10, 0x57, 0x60])?;
            a.db(&[0xc5, 0x7c, 0x10, 0x4f, 0x20])?;
            a.db(bytes)?;
            a.pushfq()?;
            a.pop(qword_ptr(rbp + 48))?;
            // vmovups [rbp], ymm1 and vextractf128 xmm4, ymm9, 1, of which the latter sets the upper half to zero.
            a.db(&[0xc5, 0xfc, 0x11, 0x4d, 0x00])?;
            a.db(&[0xc4, 0x63, 0x7d, 0x19, 0xcc, 0x01])?;
            a.movdqu(xmmword_ptr(rbp + 32), xmm4)?;
            a.xor(r14, rax)?;
            a.add(r14, r10)?;
            a.lea(rbx, ptr(rbx + r14 + 0x1357))?;
            a.lea(r11, ptr(r11 + rbx))?;
            a.set_label(next)?;
            a.add(rbp, 64)?;
        }
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    });
    let mut g = with_avx(g, mxcsr, u64::from(mxcsr) ^ forms.len() as u64);
    g.instructions_max = 4_000_000;
    // Faults, e.g. #GP and #XM. Their handlers record nothing.
    for vector in [6, 7, 13, 14, 19] {
        let at = EXCEPTIONS + 0x40 * u64::from(vector);
        g.gate(vector, at, 0x8e, 0);
        g.code(at, |a| {
            if matches!(vector, 13 | 14) {
                a.add(rsp, 8)?;
            }
            a.inc(r8)?;
            a.mov(qword_ptr(rsp), r15)?;
            a.iretq()
        });
    }
    g
}

const EXCEPTIONS: u64 = DATA + 0x6000;

/// Checks all forms with these operands. Returns the number of forms, and the number of faults.
fn check_forms(registers: [u32; 4], disp: Option<i64>, immediate: u8, mxcsr: u32) -> (usize, u64) {
    let forms: Vec<Vec<u8>> =
        Code::values().filter_map(|code| form(code, registers, disp, immediate)).collect();
    let faults =
        forms.chunks(FORMS_MAX).map(|forms| check_translated_whole(&guest(forms, mxcsr)).state.gpr[8]).sum();
    (forms.len(), faults)
}

#[test]
fn every_form_on_registers_is_the_interpreters() {
    for (registers, immediate) in
        [([1, 2, 3, 2], 0x1b), ([1; 4], 0xe5), ([9, 10, 11, 8], 2), ([2, 9, 1, 12], 0x78)]
    {
        for mxcsr in [0x1f80, 0xffc0] {
            let (forms, faults) = check_forms(registers, None, immediate, mxcsr);
            assert!(forms > 600, "{forms}");
            assert_eq!(faults, 0);
        }
    }
    let (_, faults) = check_forms([1, 2, 9, 3], None, 5, 0);
    assert!(faults > 100, "{faults} of #XM");
}

#[test]
fn every_form_on_memory_is_the_interpreters() {
    for (disp, immediate) in [(0, 9), (0x60, 0xb1), (1, 6), (0x1000 - 3, 0x44)] {
        let (forms, faults) = check_forms([1, 2, 3, 9], Some(disp), immediate, 0x1f80);
        assert!(forms > 500, "{forms}");
        // Only moves that need alignment fault.
        assert!(faults < 200 && (faults > 0) == (disp & 15 != 0), "{faults} {disp}");
    }
    check_forms([10, 9, 2, 1], Some(0x20), 0xff, 0x5fbf);
}

/// One block with VEX and legacy SSE instructions, handlers, and accesses to pages that were not accessed before, while
/// upper halves differ from zero. The guest runs to each number of instructions.
#[test]
fn upper_halves_survive_everything_in_a_block() {
    let g = Guest::in_ring_0(|a| {
        let (again, fault) = (a.create_label(), a.create_label());
        a.mov(rsi, OPERAND)?;
        a.mov(rdi, ELSEWHERE)?;
        a.mov(r14d, 12)?;
        a.set_label(again)?;
        a.lea(r15, ptr(fault))?;
        // vpaddb ymm1, ymm1, ymm2; paddb xmm1, xmm3, which keeps the upper half; vpaddw ymm4, ymm1, [rdi].
        a.db(&[0xc5, 0xf5, 0xfc, 0xca])?;
        a.db(&[0x66, 0x0f, 0xfc, 0xcb])?;
        a.db(&[0xc5, 0xf5, 0xfd, 0x27])?;
        // vmovups [rdi + 0x20], ymm4 on the same page; vpaddd xmm1, xmm1, xmm4, which clears the upper half.
        a.db(&[0xc5, 0xfc, 0x11, 0x67, 0x20])?;
        a.db(&[0xc5, 0xf1, 0xfe, 0xcc])?;
        // A page that was not accessed before, when only VEX.128 has written; vpxor ymm5, ymm1, ymm4.
        a.mov(rax, qword_ptr(rdi + 0x1008))?;
        a.db(&[0xc5, 0xf5, 0xef, 0xec])?;
        // Handlers: rcpps xmm2, xmm4 and vrcpps ymm3, ymm5. Then vaddps ymm2, ymm2, ymm3.
        a.db(&[0x0f, 0x53, 0xd4])?;
        a.db(&[0xc5, 0xfc, 0x53, 0xdd])?;
        a.db(&[0xc5, 0xec, 0x58, 0xd3])?;
        // A read of flags by a routine, between VEX instructions: add; vpaddq ymm6, ymm6, ymm2; pushf.
        a.add(rax, rdi)?;
        a.db(&[0xc5, 0xcd, 0xd4, 0xf2])?;
        a.pushfq()?;
        a.db(&[0xc5, 0xc5, 0xd4, 0xfe])?;
        a.pop(r10)?;
        a.add(rdi, 0x2000)?;
        // vmovaps ymm6, [rsi + 16] faults, after vpsubb ymm6, ymm6, ymm1 in the same block.
        a.db(&[0xc5, 0xcd, 0xf8, 0xf1])?;
        a.db(&[0xc5, 0xfc, 0x28, 0x76, 0x10])?;
        a.set_label(fault)?;
        a.dec(r14d)?;
        a.jnz(again)?;
        a.hlt()
    });
    let mut g = with_avx(g, 0x1f80, 7);
    for page in 0..32 {
        g.map(ELSEWHERE + page * 0x1000, OPERAND, P | W);
    }
    let done = check(&g);
    assert_eq!(done.vectors(), [(13, 0); 12]);
    assert!([5, 6, 7].iter().all(|&n| done.state.extended.ymm[n] != 0));
    check_every_count(&g);
}

#[test]
fn vzeroupper_clears_registers_that_a_block_does_not_use() {
    let g = Guest::in_ring_0(|a| {
        let again = a.create_label();
        a.mov(rsi, OPERAND)?;
        a.mov(ecx, 20)?;
        a.set_label(again)?;
        // vpor ymm1, ymm1, [rsi]; vmovd xmm2, ecx; vzeroupper; vpaddb ymm3, ymm1, ymm2; vpor ymm7, ymm1, ymm2.
        a.db(&[0xc5, 0xf5, 0xeb, 0x0e])?;
        a.db(&[0xc5, 0xf9, 0x6e, 0xd1])?;
        a.db(&[0xc5, 0xf8, 0x77])?;
        a.db(&[0xc5, 0xf5, 0xfc, 0xda])?;
        a.db(&[0xc5, 0xf5, 0xeb, 0xfa])?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    });
    let done = check(&with_avx(g, 0x1f80, 3));
    assert_eq!(done.state.extended.ymm, [0; 16]);
    assert_ne!(done.state.fpu.xmm[3], 0);
}

/// CR0.TS, CR4.OSXSAVE and XCR0 change in a loop. Handlers of #NM and #UD change them back.
#[test]
fn blocks_notice_that_avx_was_disabled() {
    for (vector, disable) in [(7u8, 0u8), (6, 1), (6, 2)] {
        let mut g = Guest::in_ring_0(|a| {
            let (again, enabled) = (a.create_label(), a.create_label());
            a.mov(r14d, 12)?;
            a.set_label(again)?;
            a.db(&[0xc5, 0xf5, 0xfc, 0xca])?;
            a.test(r14d, 3)?;
            a.jnz(enabled)?;
            match disable {
                0 => {
                    a.mov(rax, cr0)?;
                    a.or(rax, 8)?;
                    a.mov(cr0, rax)?;
                }
                1 => {
                    a.mov(rax, cr4)?;
                    a.and(rax, !(1 << 18))?;
                    a.mov(cr4, rax)?;
                }
                _ => {
                    a.xor(ecx, ecx)?;
                    a.xor(edx, edx)?;
                    a.mov(eax, 3)?;
                    a.db(&[0x0f, 0x01, 0xd1])?;
                }
            }
            a.set_label(enabled)?;
            a.dec(r14d)?;
            a.jnz(again)?;
            a.hlt()
        });
        g.gate(vector, EXCEPTIONS, 0x8e, 0);
        g.code(EXCEPTIONS, |a| {
            a.inc(r8)?;
            match disable {
                0 => a.clts()?,
                1 => {
                    a.mov(rax, cr4)?;
                    a.or(rax, 1 << 18)?;
                    a.mov(cr4, rax)?;
                }
                _ => {
                    a.mov(eax, 7)?;
                    a.db(&[0x0f, 0x01, 0xd1])?;
                }
            }
            a.iretq()
        });
        let done = check(&with_avx(g, 0x1f80, 5));
        assert_eq!(done.state.gpr[8], 3, "{disable}");
    }
}

/// AES-NI and PCLMULQDQ in their legacy encodings.
#[test]
fn ciphers_in_legacy_encodings_are_the_interpreters() {
    let mut forms: Vec<Vec<u8>> = Vec::new();
    for modrm in [0xca, 0xc9, 0x0e] {
        forms.extend([0xdb, 0xdc, 0xdd, 0xde, 0xdf].map(|opcode| vec![0x66, 0x0f, 0x38, opcode, modrm]));
        for immediate in [0, 1, 0x10, 0x11, 0xee] {
            forms.push(vec![0x66, 0x0f, 0x3a, 0xdf, modrm, immediate]);
            forms.push(vec![0x66, 0x0f, 0x3a, 0x44, modrm, immediate]);
        }
    }
    let done = check_translated_whole(&guest(&forms, 0x1f80));
    assert_eq!(done.state.gpr[8], 0);
}

/// Fused multiply-adds of each three numbers, with MXCSR after each. NaNs are left to the interpreter, in the middle of a
/// block whose registers are in the host's.
#[test]
fn fused_operations_on_edge_values_are_the_interpreters() {
    // vfmadd213ps ymm1, ymm2, ymm3; vfmsub132pd ymm1, ymm2, ymm3; vfnmadd231ss xmm1, xmm2, xmm3; vfmaddsub213pd xmm1, xmm2,
    // xmm3; vfnmsub132sd xmm1, xmm2, xmm3; vfmadd231ps xmm1, xmm2, xmm3.
    let forms: [&[u8]; 6] = [
        &[0xc4, 0xe2, 0x6d, 0xa8, 0xcb],
        &[0xc4, 0xe2, 0xed, 0x9a, 0xcb],
        &[0xc4, 0xe2, 0x69, 0xbd, 0xcb],
        &[0xc4, 0xe2, 0xe9, 0xa6, 0xcb],
        &[0xc4, 0xe2, 0xe9, 0x9f, 0xcb],
        &[0xc4, 0xe2, 0x69, 0xb8, 0xcb],
    ];
    for (mxcsr, clears) in [(0x1f80, true), (0x1f80, false), (0x7f80, true), (0xbfc0, true)] {
        let g = Guest::in_ring_0(|a| {
            a.mov(rsi, OPERAND)?;
            a.mov(rdi, OPERAND + 0x800)?;
            a.mov(qword_ptr(rdi), mxcsr)?;
            for_each_below(a, r12d, NUMBERS.len(), |a| {
                for_each_below(a, r13d, NUMBERS.len(), |a| {
                    for_each_below(a, r14d, NUMBERS.len(), |a| {
                        for form in forms {
                            if clears {
                                a.ldmxcsr(dword_ptr(rdi))?;
                            }
                            // vmovups ymm1, [rsi + r12 * 8]; vmovups ymm2, [rsi + r13 * 8]; vmovups ymm3, [rsi + r14 * 8].
                            a.db(&[0xc4, 0xa1, 0x7c, 0x10, 0x0c, 0xe6])?;
                            a.db(&[0xc4, 0xa1, 0x7c, 0x10, 0x14, 0xee])?;
                            a.db(&[0xc4, 0xa1, 0x7c, 0x10, 0x1c, 0xf6])?;
                            a.db(form)?;
                            // vpaddq ymm0, ymm0, ymm0; vpxor ymm0, ymm0, ymm1; vpaddd ymm4, ymm4, ymm0.
                            a.db(&[0xc5, 0xfd, 0xd4, 0xc0])?;
                            a.db(&[0xc5, 0xfd, 0xef, 0xc1])?;
                            a.db(&[0xc5, 0xdd, 0xfe, 0xe0])?;
                            a.stmxcsr(dword_ptr(rdi + 8))?;
                            a.lea(r9, ptr(r9 + r9 * 4))?;
                            a.add(r9, qword_ptr(rdi + 8))?;
                        }
                        Ok(())
                    })
                })
            })?;
            a.hlt()
        });
        let mut g = with_avx(g, mxcsr as u32, 11);
        g.instructions_max = 4_000_000;
        for n in 0..NUMBERS.len() + 4 {
            g.put(OPERAND + 8 * n as u64, NUMBERS[n % NUMBERS.len()]);
        }
        let done = check_translated_whole(&g);
        assert_eq!(done.vectors(), []);
        assert_ne!(done.state.extended.ymm[4], 0);
    }
}

/// Compares with all predicates, and immediates with bits that the manual does not define.
#[test]
fn compares_with_every_predicate_are_the_interpreters() {
    for mxcsr in [0x1f80, 0x1fc0, 0x1f00] {
        for clears in [false, true] {
            let mut forms: Vec<Vec<u8>> = Vec::new();
            for predicate in (0..34).chain([0xff]) {
                // vcmpps, vcmppd, vcmpss and vcmpsd of ymm1 or xmm1, xmm2 and xmm3 to xmm7.
                for (prefix, wide) in [(0, 4), (1, 4), (2, 0), (3, 0), (0, 0)] {
                    let register = 3 + (predicate % 5 + prefix) % 5;
                    forms.push(vec![0xc5, 0xe8 | wide | prefix, 0xc2, 0xc8 | register, predicate]);
                    if clears {
                        // vpxor xmm2, xmm2, xmm7 gives other operands.
                        forms.push(vec![0xc5, 0xe9, 0xef, 0xd7]);
                    }
                }
            }
            let done = check_translated_whole(&guest(&forms, mxcsr));
            assert_eq!(done.state.gpr[8] > 0, mxcsr == 0x1f00);
        }
    }
}

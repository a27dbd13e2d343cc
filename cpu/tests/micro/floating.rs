//! Floating-point arithmetic that translated code leaves to the host, under the guest's MXCSR. Each instruction meets
//! edge values in its operands. Results, exception flags, RFLAGS and exceptions must be those of the interpreter.

use super::harness::{check, check_every_count, check_translated};
use super::image::*;
use everett_assembler::*;

/// Zeros, numbers at the edges of doubles and singles, infinities and NaNs. The sign bit is added to half of them.
const NUMBERS: [u64; 16] = [
    0,
    1,
    0x0010_0000_0000_0000,
    0x000f_ffff_8000_0001,
    0x3810_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x4008_0000_0000_0000,
    0x41df_ffff_ffe0_0000,
    0x43e0_0000_0000_0000,
    0x47ef_ffff_f000_0000,
    0x7fef_ffff_7f7f_ffff,
    0x7ff0_0000_7f80_0000,
    0x7ff0_0000_ff80_0001,
    0x7ff8_0000_7fc0_1234,
    0x3f80_0000_bf00_0001,
];
/// Address of the numbers.
const TABLE: u64 = DATA;
/// Address of MXCSR at the start of an iteration, and of MXCSR after an instruction.
const CONTROL: u64 = DATA + 0x400;
/// Address of the operand in memory, a multiple of 16. RSI points to it.
const OPERAND: u64 = DATA + 0x800;
const XM_HANDLER: u64 = DATA + 0x2000;

/// Returns a guest that executes each of the forms with all pairs of numbers: one in XMM0 and RAX, the other in XMM1,
/// RBX and at RSI. `clears` is true if MXCSR's flags are cleared before each instruction, otherwise they accumulate.
fn guest(forms: &[Vec<u8>], mxcsr: u32, clears: bool) -> Guest {
    let mut g = Guest::in_ring_0(|a| {
        let again = a.create_label();
        a.mov(rdi, TABLE)?;
        a.mov(rsi, OPERAND)?;
        a.xor(r14d, r14d)?;
        a.ldmxcsr(dword_ptr(rdi + 0x400))?;
        a.set_label(again)?;
        a.mov(r12d, r14d)?;
        a.and(r12d, 15)?;
        a.mov(r13d, r14d)?;
        a.shr(r13d, 4)?;
        for form in forms {
            let next = a.create_label();
            if clears {
                a.ldmxcsr(dword_ptr(rdi + 0x400))?;
            }
            a.lea(r15, ptr(next))?;
            a.mov(rax, qword_ptr(rdi + r12 * 8))?;
            a.mov(rbx, qword_ptr(rdi + r13 * 8))?;
            a.movq(xmm0, rax)?;
            a.movq(xmm1, rbx)?;
            a.movhps(xmm0, qword_ptr(rdi + r13 * 8))?;
            a.movhps(xmm1, qword_ptr(rdi + r12 * 8))?;
            a.movaps(xmmword_ptr(rsi), xmm1)?;
            a.db(form)?;
            a.set_label(next)?;
            // MOV does not change the flags of COMISD, nor does LEA.
            a.movq(rdx, xmm0)?;
            a.lea(r9, ptr(r9 + r9 * 4 + 0x1357))?;
            a.setp(dl)?;
            if clears {
                a.pushfq()?;
                a.pop(r10)?;
            } else {
                // No handler, so MXCSR stays in the host's register.
                a.setc(r10b)?;
                a.setnz(r11b)?;
                a.add(r10, r11)?;
            }
            a.psrldq(xmm0, 8)?;
            a.movq(r11, xmm0)?;
            for register in [r10, rax, rdx, r11] {
                a.xor(r9, register)?;
                a.lea(r9, ptr(r9 + r9 * 4))?;
            }
            if clears {
                a.stmxcsr(dword_ptr(rdi + 0x404))?;
                a.xor(r9, qword_ptr(rdi + 0x404))?;
            }
        }
        a.stmxcsr(dword_ptr(rdi + 0x404))?;
        a.xor(r9, qword_ptr(rdi + 0x404))?;
        a.inc(r14d)?;
        a.cmp(r14d, (NUMBERS.len() * NUMBERS.len()) as i32)?;
        a.jne(again)?;
        a.hlt()
    });
    g.state.cr4 |= 1 << 9 | 1 << 10;
    g.instructions_max = 4_000_000;
    for (n, value) in NUMBERS.into_iter().enumerate() {
        let sign = (n as u64 & 1) << 63;
        g.put(TABLE + 8 * n as u64, value ^ sign);
    }
    g.put(CONTROL, u64::from(mxcsr));
    // #XM.
    g.counting_handler(19, XM_HANDLER);
    g
}

/// MXCSR with each rounding mode, with denormals as zeros and flush to zero, and with unmasked exceptions.
const CONTROLS: [u32; 8] = [0x1f80, 0x3f80, 0x5fbf, 0x7f80, 0x9fc0, 0x1f00, 0x0f80, 0x8000];

fn check_forms(forms: &[Vec<u8>]) {
    for (n, mxcsr) in CONTROLS.into_iter().enumerate() {
        let done = check_translated(&guest(forms, mxcsr, n & 1 == 0));
        assert_ne!(done.state.gpr[9], 0);
        let masked = mxcsr & 0x1f80 == 0x1f80;
        assert!(!masked || done.state.gpr[8] == 0, "#XM with MXCSR {mxcsr:#x}");
        assert_eq!(done.state.fpu.mxcsr & !0x3f, mxcsr & !0x3f);
    }
    // Both ways of clearing, under the usual MXCSR.
    check_translated(&guest(forms, 0x1f80, false));
}

/// Returns an instruction with each prefix, and with an operand in a register and in memory.
fn with_prefixes(prefixes: &[&[u8]], opcode: u8, last: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for prefix in prefixes {
        // xmm0, xmm1 or eax, xmm1; and with [rsi].
        for modrm in [0xc1, 0x06] {
            forms.push([*prefix, &[0x0f, opcode, modrm][..], last].concat());
        }
    }
    forms
}

/// No prefix, and the prefixes that select doubles or scalars.
const PACKED: [&[u8]; 2] = [&[], &[0x66]];
const SCALAR: [&[u8]; 2] = [&[0xf2], &[0xf3]];

#[test]
fn arithmetic_is_the_interpreters() {
    // ADD, MUL, SUB, MIN, DIV, MAX and SQRT.
    for opcodes in [&[0x58, 0x59, 0x5c, 0x5d][..], &[0x5e, 0x5f, 0x51]] {
        let mut forms: Vec<Vec<u8>> = Vec::new();
        for &opcode in opcodes {
            forms.extend(with_prefixes(&PACKED, opcode, &[]));
            forms.extend(with_prefixes(&SCALAR, opcode, &[]));
        }
        check_forms(&forms);
    }
}

#[test]
fn compares_are_the_interpreters() {
    let mut forms = with_prefixes(&PACKED, 0x2e, &[]);
    forms.extend(with_prefixes(&PACKED, 0x2f, &[]));
    // CMPccPS and its relatives. The predicate 9 has a bit that the manual does not define.
    for predicate in [0, 1, 2, 3, 4, 5, 6, 7, 9] {
        forms.extend(with_prefixes(if predicate & 1 == 0 { &PACKED } else { &SCALAR }, 0xc2, &[predicate]));
    }
    check_forms(&forms);
}

#[test]
fn conversions_are_the_interpreters() {
    // Between floating-point formats, and between them and packed integers.
    let mut forms = with_prefixes(&PACKED, 0x5a, &[]);
    forms.extend(with_prefixes(&SCALAR, 0x5a, &[]));
    forms.extend(with_prefixes(&[&[], &[0x66], &[0xf3]], 0x5b, &[]));
    forms.extend(with_prefixes(&[&[0x66], &[0xf2], &[0xf3]], 0xe6, &[]));
    check_forms(&forms);
    // From and to EAX, RAX and memory.
    let wide: [&[u8]; 4] = [&[0xf2], &[0xf3], &[0xf2, 0x48], &[0xf3, 0x48]];
    let mut forms = Vec::new();
    for opcode in [0x2a, 0x2c, 0x2d] {
        forms.extend(with_prefixes(&wide, opcode, &[]));
    }
    check_forms(&forms);
}

/// The guest's MXCSR goes in and out of the host's register: around handlers, TLB misses, faults, reads of flags, and
/// stops at any instruction.
#[test]
fn mxcsr_is_stored_and_reloaded() {
    for mxcsr in [0x1f80u32, 0x7f80, 0x1e80] {
        let mut g = Guest::in_ring_0(|a| {
            let (again, over, fault) = (a.create_label(), a.create_label(), a.create_label());
            a.mov(rsi, OPERAND)?;
            a.mov(rdi, ELSEWHERE)?;
            a.ldmxcsr(dword_ptr(rsi + 64))?;
            a.mov(r14d, 30)?;
            a.set_label(again)?;
            a.cvtsi2sd(xmm0, r14)?;
            a.mulsd(xmm0, qword_ptr(rsi + 16))?;
            // A handler, then arithmetic again; then a page that was not accessed before.
            a.cpuid()?;
            a.divps(xmm2, xmm0)?;
            a.addpd(xmm0, xmmword_ptr(rdi))?;
            a.add(rdi, 0x1000)?;
            a.sqrtsd(xmm1, xmm0)?;
            a.comisd(xmm1, xmm0)?;
            a.jc(over)?;
            a.addpd(xmm3, xmm1)?;
            a.set_label(over)?;
            a.stmxcsr(dword_ptr(rsi + 68))?;
            a.add(r9d, dword_ptr(rsi + 68))?;
            a.cvttsd2si(rax, xmm1)?;
            a.add(r9, rax)?;
            // A misaligned operand faults, after arithmetic in the same block.
            a.lea(r15, ptr(fault))?;
            a.addpd(xmm3, xmm1)?;
            a.addpd(xmm3, xmmword_ptr(rsi + 1))?;
            a.set_label(fault)?;
            a.ldmxcsr(dword_ptr(rsi + 64))?;
            a.dec(r14d)?;
            a.jnz(again)?;
            a.hlt()
        });
        for page in 0..32 {
            g.map(ELSEWHERE + page * 0x1000, DATA + 0x1000, P | W);
        }
        g.state.cr4 |= 1 << 9 | 1 << 10;
        g.put(OPERAND + 16, 0x3fd5_5555_5555_5555);
        g.put(OPERAND + 64, u64::from(mxcsr));
        g.put(DATA + 0x1000, 0x3ff0_0000_0000_0001);
        let done = check(&g);
        assert!(done.log().len() >= 30);
        check_every_count(&g);
    }
}

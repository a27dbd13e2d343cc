//! Integer arithmetic that translated code leaves to the host. Each instruction meets edge values in its operands, and
//! the guest reads all flags after it. The flags that the manual leaves undefined must be those of the interpreter.

use super::harness::{check, check_every_count, check_translated};
use super::image::*;
use everett_assembler::*;

/// Numbers at the edges of every width.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ff80,
    u64::MAX,
];
/// Numbers of bits of shifts, besides 0 to 3. Beyond 31, they count modulo 32, or modulo 64 with 64-bit operands.
const COUNTS: [u64; 12] = [7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 0xff];
/// Addresses of the tables of operands and counts.
const OPERANDS: u64 = DATA;
const SHIFTS: u64 = DATA + 0x100;
/// Address of the operand in memory. RSI points to it.
const OPERAND: u64 = DATA + 0x800;

/// Adds a guest's main loop: for each pair of edge values, it executes each of the forms with one value in RAX, R11 and
/// RDX, the other in RBX and at RSI, and a count in CL. `body` adds the code for a form. The code may jump to its end.
/// It must preserve RSI and RDI, and R12 to R14, which count. After the code, the results and all flags go into R9.
fn for_all_pairs(
    a: &mut Assembler,
    forms: &[&[u8]],
    mut body: impl FnMut(&mut Assembler, &[u8], Label) -> Result<(), Error>,
) -> Result<(), Error> {
    let again = a.create_label();
    a.mov(rdi, OPERANDS)?;
    a.mov(rsi, OPERAND)?;
    a.xor(r14d, r14d)?;
    a.set_label(again)?;
    for form in forms {
        let end = a.create_label();
        load_operands(a)?;
        body(a, form, end)?;
        a.set_label(end)?;
        mix_results(a)?;
    }
    a.inc(r14d)?;
    a.cmp(r14d, (EDGES.len() * EDGES.len()) as i32)?;
    a.jne(again)
}

/// Adds code that loads the operands of this iteration and sets the flags in varying ways.
fn load_operands(a: &mut Assembler) -> Result<(), Error> {
    a.mov(r12d, r14d)?;
    a.and(r12d, 15)?;
    a.mov(r13d, r14d)?;
    a.shr(r13d, 4)?;
    a.mov(rax, qword_ptr(rdi + r12 * 8))?;
    a.mov(rbx, qword_ptr(rdi + r13 * 8))?;
    a.mov(rdx, rax)?;
    a.mov(r11, rax)?;
    a.mov(qword_ptr(rsi), rbx)?;
    a.lea(ecx, ptr(r12 + r13 * 4))?;
    a.and(ecx, 15)?;
    a.mov(rcx, qword_ptr(rdi + rcx * 8 + (SHIFTS - OPERANDS) as i32))?;
    a.cmp(rax, rbx)
}

/// Adds code that mixes the results and all flags into R9.
fn mix_results(a: &mut Assembler) -> Result<(), Error> {
    a.pushfq()?;
    a.pop(r10)?;
    a.bswap(r9)?;
    a.lea(r9, ptr(r9 + r9 * 2 + 0x1357))?;
    for register in [r10, rax, rdx, rbx, r11, rcx] {
        a.xor(r9, register)?;
        a.lea(r9, ptr(r9 + r9 * 4))?;
    }
    a.xor(r9, qword_ptr(rsi))
}

fn guest(code: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Guest {
    let mut g = Guest::in_ring_0(code);
    g.instructions_max = 2_000_000;
    for (at, value) in (OPERANDS..).step_by(8).zip(EDGES) {
        g.put(at, value);
    }
    for (at, value) in (SHIFTS..).step_by(8).zip((0..4).chain(COUNTS)) {
        g.put(at, value);
    }
    g
}

/// Runs a guest that executes each of the instructions with all pairs of edge values. After each instruction the guest
/// reads flags in one of four ways: as a whole, after a branch or SETcc, or after another instruction that keeps some.
pub(super) fn check_forms(forms: &[&[u8]]) {
    for way in 0..4 {
        let g = guest(|a| {
            for_all_pairs(a, forms, |a, form, end| {
                a.db(form)?;
                match way {
                    0 => Ok(()),
                    1 => {
                        a.seto(r8b)?;
                        a.setl(r10b)?;
                        a.adc(r9, 5)?;
                        a.add(r9, r8)?;
                        a.add(r9, r10)
                    }
                    2 => {
                        a.jc(end)?;
                        a.inc(r9)
                    }
                    _ => {
                        // SETcc reads ZF, and only JP reads PF.
                        a.setnz(r8b)?;
                        a.mov(r10, qword_ptr(rsi))?;
                        a.jp(end)?;
                        a.not(r9)
                    }
                }
            })?;
            a.hlt()
        });
        assert_ne!(check_translated(&g).state.gpr[9], 0);
    }
}

#[test]
fn products_have_the_interpreters_flags() {
    check_forms(&[
        // mul bl; mul ah; mul bx; mul ebx; mul rbx; mul r11; mul rax; mul rdx; mul esp.
        &[0xf6, 0xe3],
        &[0xf6, 0xe4],
        &[0x66, 0xf7, 0xe3],
        &[0xf7, 0xe3],
        &[0x48, 0xf7, 0xe3],
        &[0x49, 0xf7, 0xe3],
        &[0x48, 0xf7, 0xe0],
        &[0x48, 0xf7, 0xe2],
        &[0xf7, 0xe4],
        // mul byte [rsi]; mul qword [rsi].
        &[0xf6, 0x26],
        &[0x48, 0xf7, 0x26],
        // imul bl; imul bh; imul bx; imul ebx; imul r11; imul dword [rsi].
        &[0xf6, 0xeb],
        &[0xf6, 0xef],
        &[0x66, 0xf7, 0xeb],
        &[0xf7, 0xeb],
        &[0x49, 0xf7, 0xeb],
        &[0xf7, 0x2e],
    ]);
    check_forms(&[
        // imul eax, ebx; imul dx, bx; imul rax, [rsi]; imul r11, rbx; imul rdx, rdx.
        &[0x0f, 0xaf, 0xc3],
        &[0x66, 0x0f, 0xaf, 0xd3],
        &[0x48, 0x0f, 0xaf, 0x06],
        &[0x4c, 0x0f, 0xaf, 0xdb],
        &[0x48, 0x0f, 0xaf, 0xd2],
        // imul eax, ebx, -7; imul r11, [rsi], 0x12345678; imul ax, bx, 0x101; imul rax, rax, 3; imul r11d, r11d, -1.
        &[0x6b, 0xc3, 0xf9],
        &[0x4c, 0x69, 0x1e, 0x78, 0x56, 0x34, 0x12],
        &[0x66, 0x69, 0xc3, 0x01, 0x01],
        &[0x48, 0x6b, 0xc0, 0x03],
        &[0x45, 0x6b, 0xdb, 0xff],
    ]);
}

#[test]
fn bit_scans_and_counts_have_the_interpreters_flags() {
    check_forms(&[
        // bsf eax, ebx; bsf rax, rbx; bsf r11, [rsi]; bsf ax, bx; rep bsf eax, ebx; bsf eax, eax.
        &[0x0f, 0xbc, 0xc3],
        &[0x48, 0x0f, 0xbc, 0xc3],
        &[0x4c, 0x0f, 0xbc, 0x1e],
        &[0x66, 0x0f, 0xbc, 0xc3],
        &[0xf3, 0x0f, 0xbc, 0xc3],
        &[0x0f, 0xbc, 0xc0],
        // bsr eax, ebx; bsr r11, r11; bsr edx, [rsi]; rep bsr rax, rbx.
        &[0x0f, 0xbd, 0xc3],
        &[0x4d, 0x0f, 0xbd, 0xdb],
        &[0x0f, 0xbd, 0x16],
        &[0xf3, 0x48, 0x0f, 0xbd, 0xc3],
        // popcnt eax, ebx; popcnt rdx, [rsi]; popcnt r11, r11; popcnt ax, bx.
        &[0xf3, 0x0f, 0xb8, 0xc3],
        &[0xf3, 0x48, 0x0f, 0xb8, 0x16],
        &[0xf3, 0x4d, 0x0f, 0xb8, 0xdb],
        &[0x66, 0xf3, 0x0f, 0xb8, 0xc3],
    ]);
}

#[test]
fn shifts_by_cl_keep_or_set_the_flags() {
    check_forms(&[
        // shl al, cl; shr al, cl; sar bl, cl; shl ah, cl; shl byte [rsi], cl.
        &[0xd2, 0xe0],
        &[0xd2, 0xe8],
        &[0xd2, 0xfb],
        &[0xd2, 0xe4],
        &[0xd2, 0x26],
        // The same for ax and dx; eax, edx and ecx; rax, r11 and rcx.
        &[0x66, 0xd3, 0xe0],
        &[0x66, 0xd3, 0xe8],
        &[0x66, 0xd3, 0xfa],
        &[0xd3, 0xe0],
        &[0xd3, 0xea],
        &[0xd3, 0xf9],
        &[0x48, 0xd3, 0xe0],
        &[0x49, 0xd3, 0xeb],
        &[0x48, 0xd3, 0xf9],
        // Two shifts, and a shift between CMP and SETcc: shl eax, cl; shr rbx, cl. sar eax, cl; setb al; cmp eax, 3.
        &[0xd3, 0xe0, 0x48, 0xd3, 0xeb],
        &[0xd3, 0xf8, 0x0f, 0x92, 0xc0],
        &[0xd3, 0xf8, 0x83, 0xf8, 0x03],
    ]);
}

/// Divisions with all edge values, many of which raise #DE. The handler counts these in R8 and continues at R15. All
/// flags and registers must be as they were before the instruction.
#[test]
fn divisions_raise_de_or_leave_the_flags() {
    const FORMS: &[&[u8]] = &[
        // div bl; div bx; div ebx; div rbx; div r11; div rdx; div dword [rsi]; div qword [rsi].
        &[0xf6, 0xf3],
        &[0x66, 0xf7, 0xf3],
        &[0xf7, 0xf3],
        &[0x48, 0xf7, 0xf3],
        &[0x49, 0xf7, 0xf3],
        &[0x48, 0xf7, 0xf2],
        &[0xf7, 0x36],
        &[0x48, 0xf7, 0x36],
        // idiv bl; idiv bx; idiv ebx; idiv rbx; idiv r11d; idiv dword [rsi]; idiv qword [rsi].
        &[0xf6, 0xfb],
        &[0x66, 0xf7, 0xfb],
        &[0xf7, 0xfb],
        &[0x48, 0xf7, 0xfb],
        &[0x41, 0xf7, 0xfb],
        &[0xf7, 0x3e],
        &[0x48, 0xf7, 0x3e],
    ];
    const HANDLER: u64 = DATA + 0x2000;
    // Bytes that prepare RDX: nothing; xor edx, edx; cdq; cqo; mov edx, 1; mov rdx, rbx and dec rdx.
    const BEFORE: [&[u8]; 6] = [
        &[],
        &[0x31, 0xd2],
        &[0x99],
        &[0x48, 0x99],
        &[0xba, 0x01, 0x00, 0x00, 0x00],
        &[0x48, 0x89, 0xda, 0x48, 0xff, 0xca],
    ];
    for before in BEFORE {
        let mut g = guest(|a| {
            for_all_pairs(a, FORMS, |a, form, end| {
                a.lea(r15, ptr(end))?;
                a.db(before)?;
                a.db(form)?;
                a.inc(r9)
            })?;
            a.hlt()
        });
        g.counting_handler(0, HANDLER);
        let done = check_translated(&g);
        assert_ne!(done.state.gpr[8], 0);
    }
}

/// The run can stop before and after every instruction.
#[test]
fn divisions_and_products_stop_anywhere() {
    let g = guest(|a| {
        a.mov(rsi, OPERAND)?;
        repeat(a, 20, |a| {
            a.lea(rax, ptr(rcx + rcx * 8 + 1000))?;
            a.cqo()?;
            a.mov(qword_ptr(rsi), rcx)?;
            a.div(qword_ptr(rsi))?;
            a.mul(rdx)?;
            a.setc(bl)?;
            a.imul_3(r11, rax, 77)?;
            a.bsf(r8, r11)?;
            a.popcnt(r10, r11)?;
            a.shl(r11, cl)?;
            a.adc(r9, r11)
        })?;
        a.hlt()
    });
    check(&g);
    check_every_count(&g);
}

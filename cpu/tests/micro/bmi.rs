//! BMI1, BMI2, LZCNT and MOVBE in translated code: results, and flags whenever they are read.

use super::harness::{check, check_translated};
use super::image::*;
use everett_assembler::*;
use everett_cpu::CpuModel;

/// Instructions on EAX or RAX, EBX or RBX and ECX or RCX.
const FORMS: [(&str, &[u8]); 14] = [
    ("andn eax, ebx, ecx", &[0xc4, 0xe2, 0x60, 0xf2, 0xc1]),
    ("andn rax, rbx, rcx", &[0xc4, 0xe2, 0xe0, 0xf2, 0xc1]),
    ("blsr eax, ecx", &[0xc4, 0xe2, 0x78, 0xf3, 0xc9]),
    ("blsmsk rax, rcx", &[0xc4, 0xe2, 0xf8, 0xf3, 0xd1]),
    ("blsi rax, rcx", &[0xc4, 0xe2, 0xf8, 0xf3, 0xd9]),
    ("bzhi eax, ebx, ecx", &[0xc4, 0xe2, 0x70, 0xf5, 0xc3]),
    ("bzhi rax, rbx, rcx", &[0xc4, 0xe2, 0xf0, 0xf5, 0xc3]),
    ("bextr eax, ebx, ecx", &[0xc4, 0xe2, 0x70, 0xf7, 0xc3]),
    ("bextr rax, rbx, rcx", &[0xc4, 0xe2, 0xf0, 0xf7, 0xc3]),
    ("tzcnt eax, ebx", &[0xf3, 0x0f, 0xbc, 0xc3]),
    ("tzcnt rax, rbx", &[0xf3, 0x48, 0x0f, 0xbc, 0xc3]),
    ("lzcnt eax, ebx", &[0xf3, 0x0f, 0xbd, 0xc3]),
    ("lzcnt rax, rbx", &[0xf3, 0x48, 0x0f, 0xbd, 0xc3]),
    ("tzcnt ax, bx", &[0x66, 0xf3, 0x0f, 0xbc, 0xc3]),
];

const VALUES: [u64; 12] = [
    0,
    1,
    2,
    0x80,
    0x0405,
    0x1f20,
    0x4000_0000,
    0x8000_0000,
    0xffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_0000_0000,
    u64::MAX,
];

/// Returns a guest that executes `body` with each pair of values in RBX and RCX, and then adds RAX and the flags to R9.
fn guest(body: impl Fn(&mut Assembler) -> Result<(), Error>) -> Guest {
    let mut g = Guest::in_ring_0(|a| {
        a.mov(rsi, DATA)?;
        for_each_below(a, r14d, VALUES.len(), |a| {
            for_each_below(a, r13d, VALUES.len(), |a| {
                a.mov(rbx, qword_ptr(rsi + r14 * 8))?;
                a.mov(rcx, qword_ptr(rsi + r13 * 8))?;
                a.xor(eax, eax)?;
                a.stc()?;
                body(a)?;
                a.lea(r9, ptr(r9 + r9 * 2))?;
                a.lea(r9, ptr(r9 + rax))?;
                a.pushfq()?;
                a.pop(r10)?;
                a.add(r9, r10)
            })
        })?;
        a.hlt()
    });
    g.model = CpuModel::V3;
    for (n, value) in VALUES.into_iter().enumerate() {
        g.put(DATA + 8 * n as u64, value);
    }
    g
}

#[test]
fn conditions_after_an_instruction_are_the_interpreters() {
    for (name, bytes) in FORMS {
        // SETcc of each condition as the first reader of the flags.
        let mut done = Vec::new();
        for conditions in [0..8u8, 8..16] {
            let g = guest(|a| {
                for condition in conditions.clone() {
                    a.db(bytes)?;
                    // setcc dl
                    a.db(&[0x0f, 0x90 | condition, 0xc2])?;
                    a.lea(r9, ptr(r9 + r9 * 4))?;
                    a.lea(r9, ptr(r9 + rdx))?;
                }
                a.db(bytes)
            });
            done.push(check_translated(&g).state.gpr[9]);
        }
        assert_ne!(done[0], done[1], "{name}");
    }
}

/// ADC and INC need CF. A branch, a rotation and a store come between the instruction and the reader of its flags.
#[test]
fn flags_are_right_in_other_blocks_and_after_other_instructions() {
    for (_, bytes) in FORMS {
        let g = guest(|a| {
            let (over, next) = (a.create_label(), a.create_label());
            a.db(bytes)?;
            a.adc(eax, 3)?;
            a.db(bytes)?;
            a.inc(rax)?;
            a.pushfq()?;
            a.db(bytes)?;
            a.mov(qword_ptr(rsi + 0x800), rax)?;
            a.jp(over)?;
            a.jb(next)?;
            a.set_label(over)?;
            a.seto(dl)?;
            a.setl(dl)?;
            a.lea(r9, ptr(r9 + rdx))?;
            a.set_label(next)?;
            a.db(bytes)?;
            a.rol(edi, 3)?;
            a.sete(dl)?;
            a.lea(r9, ptr(r9 + rdx))?;
            a.pop(rdx)?;
            a.add(r9, rdx)?;
            a.db(bytes)
        });
        check_translated(&g);
    }
}

/// All registers of an instruction are among R8 to R15, which share few host registers.
#[test]
fn instructions_with_many_registers_fit_into_the_hosts() {
    let forms: [&[u8]; 10] = [
        // andn r8, r9, [r10 + r11]; shlx r8, [r10 + r11], r9; sarx r12d, [r10 + r11], r12d.
        &[0xc4, 0x02, 0xb0, 0xf2, 0x04, 0x1a],
        &[0xc4, 0x02, 0xb1, 0xf7, 0x04, 0x1a],
        &[0xc4, 0x02, 0x1a, 0xf7, 0x24, 0x1a],
        // mulx r8, r9, [r10 + r11]; mulx r12, r12, r9; mulx r9, rdx, r8.
        &[0xc4, 0x02, 0xb3, 0xf6, 0x04, 0x1a],
        &[0xc4, 0x42, 0x9b, 0xf6, 0xe1],
        &[0xc4, 0x42, 0xeb, 0xf6, 0xc8],
        // pdep r9, r8, [r10 + r11]; pext r9d, r12d, r9d; rorx r8, [r10 + r11], 13; bextr r11, [r10 + r11], r9.
        &[0xc4, 0x02, 0xbb, 0xf5, 0x0c, 0x1a],
        &[0xc4, 0x42, 0x1a, 0xf5, 0xc9],
        &[0xc4, 0x03, 0xfb, 0xf0, 0x04, 0x1a, 0x0d],
        &[0xc4, 0x02, 0xb0, 0xf7, 0x1c, 0x1a],
    ];
    let mut g = Guest::in_ring_0(|a| {
        let again = a.create_label();
        a.mov(r14d, 40)?;
        a.mov(rbp, DATA)?;
        a.set_label(again)?;
        for form in forms {
            a.mov(r10, DATA)?;
            a.mov(r11d, r14d)?;
            a.db(form)?;
            a.add(rdx, r8)?;
            a.lea(r12, ptr(r12 + r9 + 0x77))?;
            a.xor(r8, r11)?;
        }
        // movbe rax, [rbp + 8]; movbe [rbp + 16], r8; movbe cx, [rbp + 9]; movbe [rbp + 24], r12d; movbe r15, [rbp].
        a.db(&[0x48, 0x0f, 0x38, 0xf0, 0x45, 0x08])?;
        a.db(&[0x4c, 0x0f, 0x38, 0xf1, 0x45, 0x10])?;
        a.db(&[0x66, 0x0f, 0x38, 0xf0, 0x4d, 0x09])?;
        a.db(&[0x44, 0x0f, 0x38, 0xf1, 0x65, 0x18])?;
        a.db(&[0x4c, 0x0f, 0x38, 0xf0, 0x7d, 0x00])?;
        a.add(r8, r15)?;
        a.dec(r14d)?;
        a.jnz(again)?;
        a.hlt()
    });
    g.model = CpuModel::V3;
    g.state.gpr[8..14].copy_from_slice(&[1, 0x8000_0001_0000_0007, 3, 4, u64::MAX, 6]);
    for n in 0..16 {
        g.put(DATA + 8 * n, 0x0123_4567_89ab_cdef_u64.rotate_left(5 * n as u32));
    }
    let done = check(&g);
    assert_ne!(done.word(DATA + 16), 0);
}

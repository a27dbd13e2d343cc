//! CLI, STI and PUSHFQ, which translated code executes itself where it can.

use super::arithmetic::check_forms;
use super::harness::{check, check_every_count};
use super::image::*;
use everett_assembler::*;

/// Adds code that mixes RFLAGS into RBX. Uses R9.
fn mix_flags(a: &mut Assembler) -> Result<(), Error> {
    a.pushfq()?;
    a.pop(r9)?;
    a.lea(rbx, ptr(rbx + rbx * 4 + 0x1357))?;
    a.xor(rbx, r9)
}

/// PUSHFQ computes the flags from the operands that translated code has stored. Each operation that stores operands
/// precedes a PUSHFQ in the same block, and one in another block.
#[test]
fn pushed_flags_are_those_of_the_last_operation() {
    // Each operation has operands of 1, 2, 4 and 8 bytes.
    let widths = |opcode: u8, last: &[u8]| -> [Vec<u8>; 4] {
        [&[opcode][..], &[0x66, opcode | 1], &[opcode | 1], &[0x48, opcode | 1]]
            .map(|start| [start, last].concat())
    };
    let mut forms: Vec<Vec<u8>> = Vec::new();
    // add, sub and and: al, bl and their wider forms.
    for opcode in [0x00, 0x28, 0x20] {
        forms.extend(widths(opcode, &[0xd8]));
    }
    // shl, shr and sar by 3.
    for modrm in [0xe0, 0xe8, 0xf8] {
        forms.extend(widths(0xc0, &[modrm, 3]));
    }
    // imul rax, rbx; inc ebx; adc rdx, rax; xor ah, al; test byte [rsi], bl; bt eax, ebx; rol ebx, 3.
    let others: [&[u8]; 7] = [
        &[0x48, 0x0f, 0xaf, 0xc3],
        &[0xff, 0xc3],
        &[0x48, 0x11, 0xc2],
        &[0x30, 0xc4],
        &[0x84, 0x1e],
        &[0x0f, 0xa3, 0xd8],
        &[0xc1, 0xc3, 3],
    ];
    forms.extend(others.map(<[u8]>::to_vec));
    check_forms(&forms.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

/// PUSHFQ pushes all flags that POPFQ has loaded, except RF. Arithmetic between the two changes only arithmetic flags.
#[test]
fn pushed_flags_include_the_control_flags() {
    const ARITHMETIC: i32 = 0x8d5;
    // All flags that POPFQ can load, except TF; and RF, which POPFQ ignores.
    const LOADED: i32 = 0x25_7ed5;
    let g = Guest::in_ring_0(|a| {
        repeat_at_random(a, 5, 60, |a| {
            a.mov(edx, ecx)?;
            a.and(edx, LOADED)?;
            a.push(rdx)?;
            a.popfq()?;
            mix_flags(a)?;
            // R10 collects the differences from the expected flags.
            a.and(edx, !(RF as i32))?;
            a.or(edx, 2)?;
            a.xor(r9, rdx)?;
            a.or(r10, r9)?;
            a.and(edx, !ARITHMETIC)?;
            type Arithmetic = fn(&mut Assembler) -> Result<(), Error>;
            let operations: [Arithmetic; 4] =
                [|a| a.add(al, cl), |a| a.cmp(rcx, rax), |a| a.test(ecx, eax), |a| a.dec(eax)];
            for operation in operations {
                operation(a)?;
                mix_flags(a)?;
                a.and(r9, !ARITHMETIC)?;
                a.xor(r9, rdx)?;
                a.or(r10, r9)?;
            }
            // The handler of #BP sets RF, and PUSHFQ pushes it as clear. The interpreter executes an instruction with
            // RF set. NT is clear, because IRETQ would fault.
            a.push(2)?;
            a.popfq()?;
            a.int3()?;
            mix_flags(a)?;
            a.and(r9d, RF as i32)?;
            a.or(r10, r9)
        })?;
        a.hlt()
    });
    assert_eq!(check(&g).state.gpr[10], 0);
    check_every_count(&g);
}

/// PUSHFQ may call a function of the host. Vector registers and the guest's MXCSR keep their values, and so do general
/// registers.
#[test]
fn pushfq_preserves_the_other_registers() {
    for mxcsr in [0x1f80, 0x7f80] {
        let mut g = Guest::in_ring_0(|a| {
            a.mov(rsi, DATA)?;
            a.ldmxcsr(dword_ptr(rsi))?;
            repeat_at_random(a, 9, 40, |a| {
                for register in [r10, r12, r13, r14, r15] {
                    a.add(register, rcx)?;
                }
                a.cvtsi2sd(xmm0, rcx)?;
                a.mulsd(xmm0, qword_ptr(rsi + 8))?;
                a.paddd(xmm2, xmm0)?;
                // The function computes the flags of an addition of bytes.
                a.add(al, cl)?;
                mix_flags(a)?;
                a.addpd(xmm1, xmm0)?;
                a.mulsd(xmm1, qword_ptr(rsi + 8))?;
                a.paddd(xmm3, xmm2)?;
                for register in [r10, r12, r13, r14, r15] {
                    a.xor(rbx, register)?;
                }
                Ok(())
            })?;
            a.stmxcsr(dword_ptr(rsi + 16))?;
            a.hlt()
        });
        g.state.cr4 |= 1 << 9 | 1 << 10;
        g.put(DATA, mxcsr);
        g.put(DATA + 8, (1.0f64 / 3.0).to_bits());
        let done = check(&g);
        assert_ne!(done.state.fpu.xmm[1], 0);
        assert_ne!(done.state.fpu.xmm[3], 0);
        // The products are inexact.
        assert_eq!(done.word(DATA + 16), mxcsr | 0x20);
    }
}

/// PUSHFQ at all distances from the end of a page, and from an unmapped page. If the push faults, RSP is unchanged, and
/// the flags are still those of the last operation.
#[test]
fn pushfq_crosses_pages_or_faults() {
    let mut g = Guest::new();
    // The two pages are adjacent in linear memory, but not in RAM.
    g.map(ELSEWHERE + 0x1000, DATA, P | W);
    g.map(ELSEWHERE + 0x2000, DATA + 0x3000, P | W);
    // The guest's page fault handler uses a separate stack.
    g.on_ist1(14);
    g.code(CODE, |a| {
        a.mov(rdi, STACK)?;
        for end in [ELSEWHERE + 0x2000, ELSEWHERE + 0x1000] {
            a.mov(rdx, end)?;
            repeat(a, 20, |a| {
                a.lea(rsp, ptr(rdx + rcx - 4))?;
                survive(a, |a| {
                    a.sub(ax, cx)?;
                    a.pushfq()
                })?;
                a.xchg(rsp, rdi)?;
                mix_flags(a)?;
                a.xor(rbx, rdi)?;
                a.mov(rdi, STACK)
            })?;
        }
        a.hlt()
    });
    let done = check(&g);
    // RSP is at most 7 bytes above the unmapped page in iterations 1 to 11.
    assert_eq!(done.vectors(), [(14, 2); 11]);
    assert!(done.log().iter().all(|record| record.rsp >= ELSEWHERE + 0xffd));
}

/// The instructions from STI to CLI let interrupts in at one place only. The interrupts become pending at different
/// instructions of the loop.
#[test]
fn an_interrupt_comes_one_instruction_after_sti() {
    type Code = fn(&mut Assembler) -> Result<(), Error>;
    // Instructions between STI and CLI, and the places at which an interrupt can come, as distances from STI's end.
    let cases: [(Code, &[u64]); 3] = [
        (|a| a.inc(rax), &[3]),
        // The second STI is the instruction after the first one, and starts no shadow of its own.
        (
            |a| {
                a.sti()?;
                a.inc(rax)
            },
            &[1, 4],
        ),
        // The flags of the comparison are pending during the handler.
        (
            |a| {
                a.cmp(rax, rcx)?;
                a.setc(bl)
            },
            &[3, 6],
        ),
    ];
    for (ring, start) in [(0, CODE), (3, USER)] {
        for (code, places) in cases {
            let mut g = Guest::in_ring(ring, |a| {
                a.mov(ecx, 200)?;
                a.xor(eax, eax)?;
                let again = a.create_label();
                a.set_label(again)?;
                a.sti()?;
                code(a)?;
                a.cli()?;
                a.add(rdx, rax)?;
                a.dec(ecx)?;
                a.jnz(again)?;
                exit(a)
            });
            g.state.rflags |= 3 << 12;
            g.interrupts = (0..12).map(|n| (5 + 71 * n, 0x55)).collect();
            let done = check(&g);
            // MOV has 5 bytes, XOR 2 and STI 1. The other instructions have 3.
            let taken: Vec<u64> = done.log().iter().map(|record| record.rip - (start + 8)).collect();
            assert_eq!(taken.len(), 12);
            assert!(taken.iter().all(|at| places.contains(at)), "ring {ring}: {taken:?}");
            assert!(taken.contains(&places[0]), "ring {ring}: {taken:?}");
            assert_eq!(done.state.gpr[1], 0);
        }
    }
}

/// CLI directly after STI executes in the interrupt shadow, so a pending interrupt never comes.
#[test]
fn cli_after_sti_lets_no_interrupt_in() {
    let mut g = Guest::in_ring_0(|a| {
        repeat(a, 40, |a| {
            a.sti()?;
            a.cli()?;
            a.inc(rax)
        })?;
        a.hlt()
    });
    g.interrupts = vec![(7, 0x55)];
    let done = check(&g);
    assert_eq!((done.vectors(), done.state.gpr[0]), (vec![], 40));
    check_every_count(&g);
}

/// CLI and STI in the middle of a block. In ring 3 they need an IOPL of 3, and otherwise raise #GP before they have any
/// effect. The instructions before them have their effect once.
#[test]
fn cli_and_sti_need_iopl() {
    for (ring, iopl) in [(0, 0), (0, 3), (3, 0), (3, 1), (3, 2), (3, 3)] {
        let allowed = ring <= iopl;
        for on in [false, true] {
            let mut g = Guest::in_ring(ring as u8, |a| {
                repeat(a, 10, |a| {
                    survive(a, |a| {
                        a.add(rax, rcx)?;
                        a.inc(r10)?;
                        if on {
                            a.sti()?
                        } else {
                            a.cli()?
                        }
                        a.inc(r11)
                    })?;
                    mix_flags(a)?;
                    a.mov(r12, r9)
                })?;
                exit(a)
            });
            g.state.rflags |= iopl << 12 | if on { 0 } else { IF };
            let done = check(&g);
            let s = &done.state;
            assert_eq!((s.gpr[0], s.gpr[10], s.gpr[11]), (55, 10, if allowed { 10 } else { 0 }));
            assert_eq!(s.gpr[12] & IF != 0, on == allowed, "ring {ring} IOPL {iopl}");
            assert_eq!(done.vectors(), if allowed { vec![] } else { vec![(13, 0); 10] });
        }
    }
}

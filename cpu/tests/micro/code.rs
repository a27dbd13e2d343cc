//! Changing code: the CPU always executes the instructions that are currently in memory, as x86 CPUs have done since
//! the Pentium.

use super::harness::{check, check_every_count};
use super::image::*;
use everett_assembler::*;

/// Emits a store into the immediate operand of the instruction after it. Label `next` and RDI point to that
/// instruction, which then moves 7 to EBX instead of 1.
fn overwritten(a: &mut Assembler, next: Label) -> Result<(), Error> {
    a.mov(byte_ptr(rdi + 1), 7)?;
    a.set_label(next)?;
    a.mov(ebx, 1)?;
    a.hlt()
}

#[test]
fn a_store_to_the_next_instruction_takes_effect() {
    let g = Guest::in_ring_0(|a| {
        let patched = a.create_label();
        a.lea(rdi, ptr(patched))?;
        overwritten(a, patched)
    });
    assert_eq!(check(&g).state.gpr[3], 7);
}

#[test]
fn a_store_through_another_mapping_takes_effect() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, CODE, P | W);
    g.code(CODE, |a| {
        let patched = a.create_label();
        a.mov(rdi, ELSEWHERE - CODE)?;
        a.lea(rsi, ptr(patched))?;
        a.add(rdi, rsi)?;
        overwritten(a, patched)
    });
    assert_eq!(check(&g).state.gpr[3], 7);
}

#[test]
fn code_can_be_written_and_called_again_and_again() {
    let mut g = Guest::new();
    // A function on another page, which the guest rewrites before each call: mov eax, n; ret.
    g.code(DATA, |a| {
        a.mov(eax, 0)?;
        a.ret()
    });
    g.code(CODE, |a| {
        a.mov(rdi, DATA)?;
        repeat(a, 50, |a| {
            a.mov(dword_ptr(rdi + 1), ecx)?;
            a.call(rdi)?;
            a.add(rbx, rax)
        })?;
        a.hlt()
    });
    assert_eq!(check(&g).state.gpr[3], (1..=50).sum::<u64>());
}

#[test]
fn data_next_to_code_can_be_written() {
    let g = Guest::in_ring_0(|a| {
        let counter = a.create_label();
        repeat(a, 50, |a| a.add(qword_ptr(counter), 3))?;
        a.mov(rbx, qword_ptr(counter))?;
        a.hlt()?;
        a.set_label(counter)?;
        a.dq(&[0])
    });
    let out = check(&g);
    assert_eq!(out.state.gpr[3], 150);
    check_every_count(&g);
}

#[test]
fn an_instruction_on_two_pages_can_change_on_either() {
    for (offset, first) in [(1u64, true), (4, false)] {
        let mut g = Guest::new();
        // mov ebx, imm32, whose immediate continues on the next page.
        let at = DATA + 0x1000 - 3;
        g.code(at, |a| {
            a.mov(ebx, 0)?;
            a.ret()
        });
        g.code(CODE, |a| {
            a.mov(rdi, at)?;
            a.call(rdi)?;
            a.mov(byte_ptr(rdi + offset as i32), 5)?;
            a.call(rdi)?;
            a.hlt()
        });
        let expected = 5 << (8 * (offset - 1));
        assert_eq!(check(&g).state.gpr[3], expected, "first page: {first}");
    }
}

#[test]
fn an_instruction_on_two_pages_follows_the_second_pages_mapping() {
    let mut g = Guest::new();
    let at = ELSEWHERE + 0x1000 - 3;
    g.map(ELSEWHERE, DATA, P | W);
    g.map(ELSEWHERE + 0x1000, DATA + 0x1000, P | W);
    // mov ebx, imm32: its opcode and two bytes of its immediate are on the first page.
    g.bytes(DATA + 0xffd, &[0xbb, 0x11, 0x11]);
    for (page, value) in [(0x1000, 0x22), (0x2000, 0x33)] {
        g.bytes(DATA + page, &[value, value, 0xc3]);
    }
    let entry = g.entry(ELSEWHERE + 0x1000, 1);
    g.code(CODE, |a| {
        a.mov(rdi, at)?;
        a.mov(rsi, entry)?;
        a.call(rdi)?;
        a.mov(r12, rbx)?;
        a.mov(rax, (DATA + 0x2000) | P)?;
        a.mov(qword_ptr(rsi), rax)?;
        a.call(rdi)?;
        a.mov(r13, rbx)?;
        // The second page is unmapped. The fetch of the instruction's second part faults at an address on this page.
        a.mov(qword_ptr(rsi), 0)?;
        a.call(rdi)
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[12], out.state.gpr[13]), (0x2222_1111, 0x3333_1111));
    let r = out.log()[0];
    assert_eq!((r.vector, r.error, r.rip, r.cr2), (14, 16, at, ELSEWHERE + 0x1000));
}

#[test]
fn a_fetch_of_an_instruction_that_ends_with_the_page_needs_no_second_page() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P);
    g.code_for(DATA + 0xffe, ELSEWHERE + 0xffe, exit);
    g.code(CODE, |a| {
        a.mov(rax, ELSEWHERE + 0xffe)?;
        a.jmp(rax)
    });
    assert!(check(&g).log().is_empty());
}

#[test]
fn running_off_a_page_faults_on_the_next_one() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P);
    g.bytes(DATA + 0xff0, &[0x90; 16]);
    g.code(CODE, |a| {
        a.mov(rax, ELSEWHERE + 0xff0)?;
        a.jmp(rax)
    });
    let out = check(&g);
    let r = out.log()[0];
    assert_eq!((r.vector, r.error, r.rip, r.cr2), (14, 16, ELSEWHERE + 0x1000, ELSEWHERE + 0x1000));
}

#[test]
fn instructions_longer_than_15_bytes_are_refused() {
    let mut g = Guest::in_ring_0(|a| {
        a.mov(r15, CODE + 0x100)?;
        a.db(&[0x66; 15])?;
        a.nop()
    });
    g.code(CODE + 0x100, |a| a.hlt());
    let out = check(&g);
    // An instruction that is too long raises #GP, as on hardware.
    assert_eq!(out.vectors(), [(13, 0)]);
}

#[test]
fn repeated_stores_may_overwrite_the_code_that_follows() {
    let mut g = Guest::new();
    // REP STOSB overwrites the four UD2 after it with NOPs.
    g.code(CODE, |a| {
        let after = a.create_label();
        a.lea(rdi, ptr(after))?;
        a.mov(ecx, 8)?;
        a.mov(eax, 0x90)?;
        a.rep().stosb()?;
        a.set_label(after)?;
        a.db(&[0x0f, 0x0b, 0x0f, 0x0b, 0x0f, 0x0b, 0x0f, 0x0b])?;
        a.mov(ebx, 9)?;
        a.hlt()
    });
    let out = check(&g);
    assert!(out.log().is_empty());
    assert_eq!(out.state.gpr[3], 9);
    check_every_count(&g);
}

#[test]
fn a_repeated_copy_may_overwrite_itself() {
    let mut g = Guest::new();
    // REP MOVSB copies HLTs over its own encoding, byte by byte. The first byte that it copies replaces the REP prefix.
    g.code(CODE, |a| {
        let own = a.create_label();
        a.mov(rsi, DATA)?;
        a.lea(rdi, ptr(own))?;
        a.mov(ecx, 4)?;
        a.set_label(own)?;
        a.rep().movsb()?;
        a.hlt()
    });
    g.bytes(DATA, &[0xf4; 4]);
    let out = check(&g);
    assert_eq!(out.state.gpr[1], 3, "one iteration, then the HLT that it wrote");
}

#[test]
fn every_count_is_a_stop() {
    let mut g = Guest::in_ring_3(|a| {
        let again = a.create_label();
        a.mov(r12d, 5)?;
        a.set_label(again)?;
        a.mov(rdi, USER + 0x1000)?;
        a.mov(ecx, 9)?;
        a.rep().stosq()?;
        a.syscall()?;
        survive(a, |a| {
            a.mov(rax, ELSEWHERE)?;
            a.mov(rax, qword_ptr(rax))
        })?;
        a.lea(rbx, qword_ptr(rbx + r12 * 2))?;
        a.dec(r12d)?;
        a.jnz(again)?;
        exit(a)
    });
    g.state.msrs.lstar = CODE + 0x800;
    g.code(CODE + 0x800, |a| {
        a.add(r13, 1)?;
        a.rdtsc()?;
        sysretq(a)
    });
    let out = check(&g);
    assert_eq!((out.state.gpr[13], out.state.gpr[3]), (5, 30));
    check_every_count(&g);
}

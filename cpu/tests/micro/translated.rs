//! What translated code is likely to get wrong: flags that are looked at late, registers in the wrong place, and instructions
//! beside a page's end.

use super::harness::{check, check_every_count};
use super::image::*;
use iced_x86::code_asm::*;

/// A loop over every kind of flag that is computed late, with its reader right behind it, behind an access to memory, and in
/// another block.
#[test]
fn flags_are_the_same_whenever_somebody_looks() {
    let mut g = Guest::new();
    g.code(CODE, |a| {
        let (mut again, mut next, mut other) = (a.create_label(), a.create_label(), a.create_label());
        a.mov(rdi, DATA)?;
        a.mov(ecx, 200)?;
        a.mov(rax, 0x8123_4567_89ab_cdefu64)?;
        a.set_label(&mut again)?;
        // Seen by a handler (PUSHFQ), by SETcc, CMOVcc and ADC.
        a.add(rax, rcx)?;
        a.pushfq()?;
        a.sub(eax, 0x1234_5678)?;
        a.setg(byte_ptr(rdi + 1))?;
        a.xor(ah, al)?;
        a.cmp(qword_ptr(rdi + 8), rax)?;
        a.cmovb(rbx, qword_ptr(rdi + 16))?;
        a.shl(rax, 5)?;
        a.adc(rbx, 3)?;
        a.shr(eax, 1)?;
        a.pushfq()?;
        // OF of a longer shift, looked at before anything else writes it.
        a.shl(edx, 3)?;
        a.setl(r8b)?;
        a.seto(r9b)?;
        a.shr(edx, 3)?;
        a.cmovg(r9, rcx)?;
        a.add(r8, r9)?;
        a.sar(rbx, 63)?;
        a.setc(dl)?;
        // The count is zero now and then.
        a.cmp(eax, ebx)?;
        a.rol(ebx, cl)?;
        a.shl(edx, cl)?;
        a.pushfq()?;
        a.imul_3(r8, rax, 77)?;
        a.test(r8b, 9)?;
        a.jz(next)?;
        a.neg(r8)?;
        a.set_label(&mut next)?;
        // A block begins here with flags of two others.
        a.pushfq()?;
        a.inc(dword_ptr(rdi + 32))?;
        a.dec(r8w)?;
        a.sbb(rax, r8)?;
        a.jp(other)?;
        a.not(rax)?;
        a.set_label(&mut other)?;
        for register in [r9, r10, r11, r12, r13, r14, r15, rbx, rdx, rsi, rbp] {
            a.pop(register).ok();
            a.add(register, rax)?;
            a.push(register)?;
            a.xchg(register, rax)?;
        }
        a.add(rsp, 32)?;
        a.mov(eax, eax)?;
        a.movzx(eax, ax)?;
        a.movsxd(rbx, ebx)?;
        a.mov(qword_ptr(rdi + rcx * 8 + 64), rbx)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    });
    check(&g);
    check_every_count(&g);
}

/// A block that ends where its page does, one that begins with the next page, and calls and returns between them.
#[test]
fn pages_end_anywhere() {
    let mut g = Guest::new();
    g.code(CODE, |a| {
        let mut function = a.create_label();
        let mut again = a.create_label();
        a.mov(ecx, 20)?;
        a.set_label(&mut again)?;
        a.call(function)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()?;
        // One byte each, across the page's end and beyond it.
        for _ in 0..8000 {
            a.nop()?;
        }
        a.set_label(&mut function)?;
        a.add(rbx, rcx)?;
        // lea rsi, [rip + 2^31 - 16]: beyond what lies within 2^31 of the page's start.
        a.db(&[0x48, 0x8d, 0x35, 0xf0, 0xff, 0xff, 0x7f])?;
        a.add(rdi, rsi)?;
        for _ in 0..5000 {
            a.inc(rdx)?;
        }
        a.ret()
    });
    let done = check(&g);
    assert_eq!(done.state.gpr[3], (1..=20).sum::<u64>());
    assert_eq!(done.state.gpr[2], 20 * 5000);
}

/// Code that is changed through another mapping, so that its own stays executable all the while, and is then reached from another
/// page by a call, and from its own page by a jump. It changes only now and then, so that it is hot in between.
#[test]
fn code_that_was_changed_is_not_the_old_one() {
    let sum = (1..=500).map(|n| n & !63).sum::<u64>();
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P | W);
    // mov eax, n; ret.
    g.code(DATA, |a| {
        a.mov(eax, 0)?;
        a.ret()
    });
    g.code(CODE, |a| {
        let mut again = a.create_label();
        a.mov(rdi, DATA)?;
        a.mov(rsi, ELSEWHERE)?;
        a.mov(ecx, 500)?;
        a.set_label(&mut again)?;
        a.mov(edx, ecx)?;
        a.and(edx, -64)?;
        a.mov(dword_ptr(rsi + 1), edx)?;
        a.call(rdi)?;
        a.add(rbx, rax)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    });
    assert_eq!(check(&g).state.gpr[3], sum);

    let mut g = Guest::new();
    g.map(ELSEWHERE, CODE, P | W);
    g.code(CODE, |a| {
        let (mut again, mut patched) = (a.create_label(), a.create_label());
        a.mov(rsi, ELSEWHERE - CODE)?;
        a.lea(rdi, ptr(patched))?;
        a.add(rsi, rdi)?;
        a.mov(ecx, 500)?;
        a.set_label(&mut again)?;
        a.mov(edx, ecx)?;
        a.and(edx, -64)?;
        a.mov(dword_ptr(rsi + 1), edx)?;
        a.nop()?;
        a.jmp(patched)?;
        a.int3()?;
        a.set_label(&mut patched)?;
        a.mov(eax, 0)?;
        a.add(rbx, rax)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    });
    assert_eq!(check(&g).state.gpr[3], sum);
}

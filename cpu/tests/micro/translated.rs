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
        for _ in 0..5000 {
            a.inc(rdx)?;
        }
        a.ret()
    });
    let done = check(&g);
    assert_eq!(done.state.gpr[3], (1..=20).sum::<u64>());
    assert_eq!(done.state.gpr[2], 20 * 5000);
}

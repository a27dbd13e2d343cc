//! Traces: blocks that are translated together because one usually follows the other. Each test checks that its guest
//! has traces.

use super::harness::{check, traces};
use super::image::*;
use everett_assembler::*;

fn check_with_traces(guest: &Guest) {
    assert!(traces(guest) > 0);
    check(guest);
}

/// Exits from each block of a trace, while changed registers are only in host registers.
#[test]
fn exits_store_registers_that_only_the_host_has() {
    check_with_traces(&Guest::in_ring_0(|a| {
        let (again, first, second, third, next) =
            (a.create_label(), a.create_label(), a.create_label(), a.create_label(), a.create_label());
        a.mov(rdi, DATA)?;
        a.mov(ecx, 900)?;
        a.set_label(again)?;
        a.add(r8, rcx)?;
        a.movq(xmm1, r8)?;
        a.test(ecx, 15)?;
        a.jz(first)?;
        a.lea(r9, qword_ptr(r8 + r9 * 2 + 5))?;
        a.paddq(xmm2, xmm1)?;
        a.test(ecx, 14)?;
        a.jz(second)?;
        a.xor(r10, r9)?;
        a.mov(qword_ptr(rdi + 8), r10)?;
        a.cmp(r10b, 7)?;
        a.jb(third)?;
        a.sub(r11, r10)?;
        a.jmp(next)?;
        // The exits read all registers, and flags that the trace has left.
        a.set_label(first)?;
        a.adc(r11, r8)?;
        a.paddq(xmm3, xmm1)?;
        a.set_label(second)?;
        a.pushfq()?;
        a.pop(r12)?;
        a.adc(r11, r9)?;
        a.paddq(xmm3, xmm2)?;
        a.set_label(third)?;
        a.adc(r11, r10)?;
        a.movq(qword_ptr(rdi + 16), xmm3)?;
        a.set_label(next)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    }));
}

/// A branch out of a trace that leads to another page.
#[test]
fn exits_can_lead_to_other_pages() {
    check_with_traces(&Guest::in_ring_0(|a| {
        let (again, back, far) = (a.create_label(), a.create_label(), a.create_label());
        a.mov(ecx, 900)?;
        a.set_label(again)?;
        a.add(eax, ecx)?;
        a.test(ecx, 31)?;
        a.jz(far)?;
        a.add(r13d, eax)?;
        a.test(r13b, 3)?;
        a.jnz(back)?;
        a.rol(r13d, 3)?;
        a.set_label(back)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()?;
        for _ in 0..5000 {
            a.nop()?;
        }
        a.set_label(far)?;
        a.sub(r13d, eax)?;
        a.jmp(back)
    }));
}

/// A trace in which handlers read the time, and whose second block changes an instruction of the third.
#[test]
fn a_trace_can_change_its_own_code() {
    check_with_traces(&Guest::in_ring_0(|a| {
        let (again, target, rare, next) =
            (a.create_label(), a.create_label(), a.create_label(), a.create_label());
        a.lea(rsi, ptr(target))?;
        a.mov(ecx, 1500)?;
        a.set_label(again)?;
        a.rdtsc()?;
        a.add(r9, rax)?;
        a.cmp(ecx, 1490)?;
        a.ja(rare)?;
        a.rdtsc()?;
        a.xor(r10, rax)?;
        a.test(ecx, 255)?;
        a.jnz(next)?;
        // The immediate of the addition at `target`.
        a.mov(byte_ptr(rsi + 3), cl)?;
        a.add(byte_ptr(rsi + 3), 77)?;
        a.set_label(next)?;
        a.lea(r11, qword_ptr(r10 + r11))?;
        a.set_label(rare)?;
        a.nop()?;
        a.set_label(target)?;
        a.add(r12, 1)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    }));
}

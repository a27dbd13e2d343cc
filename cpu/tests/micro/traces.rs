//! Traces: blocks that are translated together because one usually follows the other. Each test checks that its guest
//! has traces.

use super::harness::{check, traces};
use super::image::*;
use everett_assembler::*;

fn check_with_traces(guest: &Guest) {
    assert!(traces(guest, false) > 0);
    assert!(traces(guest, true) > 0);
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

/// Flags that a trace has not stored are exact wherever the trace is left: at a branch, at an access that the interpreter
/// must execute, and after the registers of the operands have changed.
#[test]
fn flags_of_a_trace_are_exact_where_it_is_left() {
    type Code = fn(&mut Assembler) -> Result<(), Error>;
    let sets: [Code; 16] = [
        |a| a.cmp(rax, rbx),
        |a| a.cmp(al, bl),
        |a| a.cmp(eax, 0x4567_89ab),
        |a| a.cmp(ax, -0x8000),
        |a| a.test(rax, rbx),
        |a| a.test(ebx, ebx),
        |a| a.test(rax, 0x0f0f_0f0f),
        |a| a.add(rax, rbx),
        |a| a.add(bl, 0x7f),
        |a| a.add(rax, i32::MIN),
        |a| a.add(rax, rax),
        |a| a.sub(eax, ebx),
        |a| a.sub(rbx, -0x1234),
        |a| a.and(ax, bx),
        |a| a.or(rbx, qword_ptr(rdi)),
        |a| a.xor(eax, eax),
    ];
    // The first eight change a register, and the others do not.
    let then: [Code; 12] = [
        |a| a.mov(eax, 77),
        |a| a.mov(bl, cl),
        |a| a.lea(rbx, qword_ptr(rax + rcx * 4 + 3)),
        |a| a.movzx(eax, word_ptr(rdi + 8)),
        |a| a.cmovl(rax, rcx),
        |a| a.setc(bl),
        |a| {
            a.push(rcx)?;
            a.push(rbx)?;
            a.pop(rax)?;
            a.pop(rbx)
        },
        |a| a.bswap(rax),
        |a| a.mov(qword_ptr(rdi + 16), rax),
        |a| a.bt(rcx, 1),
        |a| a.nop(),
        |a| a.movq(xmm1, rax),
    ];
    for then in then {
        check_with_traces(&Guest::in_ring_0(|a| {
            a.mov(rdi, DATA)?;
            for sets in sets {
                let (again, exit, next) = (a.create_label(), a.create_label(), a.create_label());
                a.mov(ecx, 40)?;
                a.set_label(again)?;
                a.imul_3(r8, r8, 0x1234_5677)?;
                a.add(r8, rcx)?;
                a.mov(rax, r8)?;
                a.mov(rbx, r8)?;
                a.bswap(rbx)?;
                // Every eighth access of the loop is on two pages.
                a.mov(esi, ecx)?;
                a.and(esi, 7)?;
                a.lea(rsi, qword_ptr(rdi + rsi + 0xff2))?;
                sets(a)?;
                a.jp(exit)?;
                then(a)?;
                a.mov(rdx, qword_ptr(rsi))?;
                a.adc(r9, rdx)?;
                a.jmp(next)?;
                a.set_label(exit)?;
                a.pushfq()?;
                a.pop(r10)?;
                a.xor(r11, r10)?;
                a.rol(r11, 1)?;
                a.set_label(next)?;
                a.dec(ecx)?;
                a.jnz(again)?;
            }
            a.hlt()
        }));
    }
}

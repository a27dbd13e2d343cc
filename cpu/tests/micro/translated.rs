//! Cases that translated code may get wrong: lazily computed flags, guest registers in host registers, and instructions
//! near a page's end. A *handler* is a function of Everett that translated code calls for an instruction.

use super::harness::{check, check_every_count};
use super::image::*;
use everett_assembler::*;

/// A loop with every kind of lazily computed flags. The guest reads flags right after their instruction, after a memory
/// access, and in another block.
#[test]
fn flags_are_right_whenever_they_are_read() {
    let g = Guest::in_ring_0(|a| {
        let (again, next, other) = (a.create_label(), a.create_label(), a.create_label());
        a.mov(rdi, DATA)?;
        a.mov(ecx, 200)?;
        a.mov(rax, 0x8123_4567_89ab_cdefu64)?;
        a.set_label(again)?;
        // A handler (PUSHFQ) reads the flags, and so do SETcc, CMOVcc and ADC.
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
        // OF after a shift by more than one bit. The guest reads it before another instruction writes it.
        a.shl(edx, 3)?;
        a.setl(r8b)?;
        a.seto(r9b)?;
        a.shr(edx, 3)?;
        a.cmovg(r9, rcx)?;
        a.add(r8, r9)?;
        a.sar(rbx, 63)?;
        a.setc(dl)?;
        // The count in CL is sometimes zero. The rotation and the shift then leave the flags of CMP.
        a.cmp(eax, ebx)?;
        a.rol(ebx, cl)?;
        a.shl(edx, cl)?;
        a.pushfq()?;
        a.imul_3(r8, rax, 77)?;
        a.test(r8b, 9)?;
        a.jz(next)?;
        a.neg(r8)?;
        a.set_label(next)?;
        // This block begins with flags that either of two other blocks has left.
        a.pushfq()?;
        a.inc(dword_ptr(rdi + 32))?;
        a.dec(r8w)?;
        a.sbb(rax, r8)?;
        a.jp(other)?;
        a.not(rax)?;
        a.set_label(other)?;
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

/// A block that ends exactly at its page's end, and a block that begins with the next page, with calls and returns
/// between them.
#[test]
fn blocks_can_end_and_begin_at_a_page_boundary() {
    let g = Guest::in_ring_0(|a| {
        let function = a.create_label();
        repeat(a, 20, |a| a.call(function))?;
        a.hlt()?;
        // One-byte instructions up to the page's end and beyond it.
        for _ in 0..8000 {
            a.nop()?;
        }
        a.set_label(function)?;
        a.add(rbx, rcx)?;
        // lea rsi, [rip + 2^31 - 16]: more than 2^31 bytes from the page's start.
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

/// A handler computes the address of an operand. The operand is more than 2^31 bytes from the start of the page with
/// the instruction. A call in translated code leads to the instruction. The translated call must store the address of
/// the instruction's page, because the handler needs this address.
#[test]
fn far_operands_are_found_from_any_page() {
    let function = CODE + 0x1800;
    // The displacement counts from the end of the six-byte PUSH.
    let target = function + 6 + 0x7fff_fff0;
    let mut g = Guest::new();
    g.map(target & !0xfff, DATA, P | W);
    g.put(DATA + (target & 0xfff), 5);
    g.state.gpr[3] = 0;
    g.code(CODE, |a| {
        repeat(a, 20, |a| a.call(function))?;
        a.hlt()
    });
    g.code(function, |a| {
        // push qword ptr [rip + 0x7ffffff0].
        a.db(&[0xff, 0x35, 0xf0, 0xff, 0xff, 0x7f])?;
        a.pop(rax)?;
        a.add(rbx, rax)?;
        a.ret()
    });
    assert_eq!(check(&g).state.gpr[3], 20 * 5);
}

/// The guest changes code through a second mapping and executes it through the first one. In the first guest a call
/// from another page leads to the code, in the second a jump from the same page. The code changes every 64 iterations,
/// so the CPU translates it in between.
#[test]
fn changed_code_is_not_mistaken_for_the_old_code() {
    let sum = (1..=500).map(|n| n & !63).sum::<u64>();
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P | W);
    // mov eax, n; ret.
    g.code(DATA, |a| {
        a.mov(eax, 0)?;
        a.ret()
    });
    g.code(CODE, |a| {
        a.mov(rdi, DATA)?;
        a.mov(rsi, ELSEWHERE)?;
        repeat(a, 500, |a| {
            a.mov(edx, ecx)?;
            a.and(edx, -64)?;
            a.mov(dword_ptr(rsi + 1), edx)?;
            a.call(rdi)?;
            a.add(rbx, rax)
        })?;
        a.hlt()
    });
    assert_eq!(check(&g).state.gpr[3], sum);

    let mut g = Guest::new();
    g.map(ELSEWHERE, CODE, P | W);
    g.code(CODE, |a| {
        let (again, patched) = (a.create_label(), a.create_label());
        a.mov(rsi, ELSEWHERE - CODE)?;
        a.lea(rdi, ptr(patched))?;
        a.add(rsi, rdi)?;
        a.mov(ecx, 500)?;
        a.set_label(again)?;
        a.mov(edx, ecx)?;
        a.and(edx, -64)?;
        a.mov(dword_ptr(rsi + 1), edx)?;
        a.nop()?;
        a.jmp(patched)?;
        a.int3()?;
        a.set_label(patched)?;
        a.mov(eax, 0)?;
        a.add(rbx, rax)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    });
    assert_eq!(check(&g).state.gpr[3], sum);
}

/// The guest calls through a word that the call's return address overwrites. The function is on a page that was never
/// executed. The target must be the word's old value.
#[test]
fn a_call_may_overwrite_its_own_operand() {
    let mut g = Guest::new();
    for page in 0..20 {
        g.map(ELSEWHERE + page * 0x1000, DATA, P | W);
    }
    // inc rbx; ret.
    g.code(DATA, |a| {
        a.inc(rbx)?;
        a.ret()
    });
    g.code(CODE, |a| {
        a.mov(rdi, ELSEWHERE)?;
        repeat(a, 20, |a| {
            a.mov(qword_ptr(rsp - 8), rdi)?;
            a.call(qword_ptr(rsp - 8))?;
            a.add(rdi, 0x1000)
        })?;
        // A call to a non-canonical address faults. The target is the value that was read before the push.
        a.mov(r12, rbx)?;
        a.mov(rdi, 1u64 << 63)?;
        a.mov(qword_ptr(rsp - 8), rdi)?;
        a.call(qword_ptr(rsp - 8))?;
        a.hlt()
    });
    let done = check(&g);
    assert_eq!(done.state.gpr[12], 20);
    assert_eq!(done.log().iter().map(|record| record.vector).collect::<Vec<_>>(), [13]);
}

/// Vector registers keep their values when translated code stores and reloads them: around handlers, TLB misses, reads
/// of flags, and the end of a block. In some instructions, both operands are the same register.
#[test]
fn vector_registers_are_stored_and_reloaded() {
    let mut g = Guest::new();
    g.state.cr4 |= 1 << 9;
    g.map(ELSEWHERE, DATA, P | W);
    g.code(CODE, |a| {
        let (again, over) = (a.create_label(), a.create_label());
        a.mov(rsi, DATA)?;
        a.mov(rdi, ELSEWHERE)?;
        a.mov(ecx, 60)?;
        a.set_label(again)?;
        a.movd(xmm0, ecx)?;
        a.pshufd(xmm0, xmm0, 0)?;
        a.pshuflw(xmm8, xmm8, 0x1b)?;
        a.paddd(xmm1, xmm0)?;
        // The handler of CPUID needs all registers in memory. A TLB miss must preserve the guest registers that are in
        // host registers.
        a.cpuid()?;
        a.mov(ecx, dword_ptr(rsi + 0x200))?;
        a.pxor(xmm2, xmm1)?;
        a.movdqu(xmmword_ptr(rsi + 0x101), xmm2)?;
        a.movdqa(xmm3, xmmword_ptr(rdi + 0x100))?;
        a.add(rbx, rcx)?;
        // POPFQ sets flags that no operation computed, and JC reads them.
        a.pushfq()?;
        a.popfq()?;
        a.jc(over)?;
        a.punpcklbw(xmm3, xmm3)?;
        a.set_label(over)?;
        a.psrldq(xmm3, 3)?;
        a.pmovmskb(eax, xmm3)?;
        a.add(r8, rax)?;
        a.movq(r9, xmm3)?;
        a.movhps(qword_ptr(rsi + 0x300), xmm3)?;
        a.movsd_2(xmm4, qword_ptr(rsi + 0x300))?;
        a.movss(xmm4, xmm1)?;
        // CPUID overwrote ECX.
        a.inc(dword_ptr(rsi + 0x200))?;
        a.mov(ecx, 60)?;
        a.sub(ecx, dword_ptr(rsi + 0x200))?;
        a.jnz(again)?;
        // MOVAPS at a misaligned address faults.
        a.movaps(xmm5, xmmword_ptr(rsi + 1))?;
        a.hlt()
    });
    let done = check(&g);
    assert_ne!(done.state.fpu.xmm[3], 0);
    assert_ne!(done.state.fpu.xmm[1], 0);
}

/// An access that must be aligned faults at every misaligned address, also on pages of which the TLB knows nothing.
#[test]
fn misaligned_vectors_fault_on_unknown_pages() {
    for page in [0, ELSEWHERE] {
        for offset in 1..16 {
            let mut g = Guest::new();
            g.state.cr4 |= 1 << 9;
            g.code(CODE, |a| {
                let again = a.create_label();
                a.mov(rsi, DATA)?;
                a.mov(rdi, page + offset)?;
                a.mov(ecx, 60)?;
                a.set_label(again)?;
                a.movaps(xmm0, xmmword_ptr(rsi))?;
                a.dec(ecx)?;
                a.cmovz(rsi, rdi)?;
                a.jmp(again)
            });
            assert_eq!(check(&g).vectors(), [(13, 0)], "{page:#x} + {offset}");
        }
    }
}

/// Flags of instructions that read CF, and of instructions whose operands are in memory or in AH, BH, CH or DH. For
/// most of these instructions, translated code stores the host's flags. For ordinary operations it stores the operands
/// instead, from which the flags can be computed later.
#[test]
fn flags_of_other_operations_are_the_same() {
    let g = Guest::in_ring_0(|a| {
        let again = a.create_label();
        a.mov(rsi, DATA)?;
        a.mov(edi, 100)?;
        a.set_label(again)?;
        a.imul_3(rax, rdi, 0x1234_5677)?;
        a.add(ebx, eax)?;
        a.inc(rdx)?;
        a.adc(rcx, rax)?;
        a.pushfq()?;
        a.sbb(r8d, ebx)?;
        a.dec(byte_ptr(rsi))?;
        a.setc(byte_ptr(rsi + 1))?;
        a.cmp(ah, al)?;
        a.pushfq()?;
        a.test(ah, 4)?;
        a.setnz(ch)?;
        a.xor(dh, ah)?;
        a.pushfq()?;
        a.movzx(r9d, ax)?;
        a.movzx(edx, ah)?;
        a.mov(qword_ptr(rsi + 8), rbx)?;
        a.xadd(qword_ptr(rsi + 8), rcx)?;
        a.adc(dword_ptr(rsi + 16), 7)?;
        a.cmpxchg(qword_ptr(rsi + 8), rdx)?;
        a.cmovl(r10, rcx)?;
        a.xchg(qword_ptr(rsi + 24), r10)?;
        a.lock().inc(dword_ptr(rsi + 32))?;
        // Calls a handler. After it, no guest register is in a host register.
        a.cpuid()?;
        a.movzx(eax, ah)?;
        a.pop(r11)?;
        a.pop(r12)?;
        a.pop(r13)?;
        a.add(r14, rax)?;
        a.add(r14, r11)?;
        a.add(r14, r12)?;
        a.add(r14, r13)?;
        a.dec(edi)?;
        a.jnz(again)?;
        a.hlt()
    });
    assert_ne!(check(&g).state.gpr[14], 0);
}

/// Each access mode, e.g. ring 0 with RFLAGS.AC set, has a TLB table of its own. An entry that was made while AC was
/// set must not be found while AC is clear.
#[test]
fn a_tlb_entry_of_another_mode_is_not_used() {
    // The page number ends with 0x102. A mode's table has at most 256 entries. If a lookup used 0x102 as its index, it
    // would find an entry of another mode's table.
    const USERS: u64 = ELSEWHERE + 0x10_2000;
    let mut g = Guest::new();
    g.state.cr4 |= 1 << 21;
    g.map(USERS, DATA, P | W | U);
    g.put(DATA, 7);
    g.code(CODE, |a| {
        a.mov(rsi, USERS)?;
        repeat(a, 3, |a| {
            a.stac()?;
            a.add(r12, qword_ptr(rsi))
        })?;
        a.clac()?;
        a.add(r12, qword_ptr(rsi))?;
        a.hlt()
    });
    let done = check(&g);
    assert_eq!(done.state.gpr[12], 21);
    assert_eq!((done.log().len(), done.log()[0].cr2), (1, USERS));
}

/// An instruction on two pages. Its second page differs each time: the guest maps another page or changes the bytes.
#[test]
fn an_instruction_on_two_pages_follows_both() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P | W);
    g.map(ELSEWHERE + 0x1000, DATA + 0x1000, P | W);
    // mov eax, imm32, with three bytes on the second page; then ret.
    let at = ELSEWHERE + 0xffe;
    g.bytes(DATA + 0xffe, &[0xb8, 0x01]);
    g.bytes(DATA + 0x1000, &[0x02, 0x03, 0x04, 0xc3]);
    g.bytes(DATA + 0x2000, &[0x20, 0x30, 0x40, 0xc3]);
    let leaf = g.entry(ELSEWHERE + 0x1000, 1);
    g.code(CODE, |a| {
        a.mov(rsi, at)?;
        a.mov(rdi, leaf)?;
        a.mov(r8, DATA + 0x1000)?;
        repeat(a, 40, |a| {
            a.call(rsi)?;
            a.add(rbx, rax)?;
            a.call(rsi)?;
            a.add(rbx, rax)?;
            // Maps the other page.
            a.xor(qword_ptr(rdi), 0x3000)?;
            a.call(rsi)?;
            a.add(rbx, rax)?;
            a.xor(qword_ptr(rdi), 0x3000)?;
            // Changes the bytes.
            a.inc(byte_ptr(r8))
        })?;
        a.hlt()
    });
    let expected: u64 = (0..40).map(|n| 2 * (0x0403_0201 + (n << 8)) + 0x4030_2001).sum();
    assert_eq!(check(&g).state.gpr[3], expected);
    check_every_count(&g);
}

/// If the second page is unmapped or not executable, the CPU raises the page fault before the instruction has any
/// effect.
#[test]
fn an_instruction_on_two_pages_needs_both() {
    for forbidden in [0, P | W | NX] {
        let mut g = Guest::new();
        g.state.efer |= 1 << 11;
        g.map(ELSEWHERE, DATA, P | W);
        g.map(ELSEWHERE + 0x1000, DATA + 0x1000, P | W);
        // inc dword [rbx], then ret.
        let at = ELSEWHERE + 0xfff;
        g.bytes(DATA + 0xfff, &[0xff]);
        g.bytes(DATA + 0x1000, &[0x03, 0xc3]);
        let leaf = g.entry(ELSEWHERE + 0x1000, 1);
        g.code(CODE, |a| {
            let (again, end) = (a.create_label(), a.create_label());
            a.mov(rsi, at)?;
            a.mov(rdi, leaf)?;
            a.mov(rbx, DATA + 0x3000)?;
            a.mov(ecx, 20)?;
            a.lea(r15, ptr(end))?;
            a.set_label(again)?;
            a.call(rsi)?;
            a.dec(ecx)?;
            a.jnz(again)?;
            a.mov(rax, if forbidden == 0 { 0 } else { (DATA + 0x1000) | forbidden })?;
            a.mov(qword_ptr(rdi), rax)?;
            a.call(rsi)?;
            a.set_label(end)?;
            a.hlt()
        });
        let done = check(&g);
        assert_eq!(done.word(DATA + 0x3000), 20);
        let record = done.log()[0];
        assert_eq!((record.vector, record.cr2, record.rip), (14, ELSEWHERE + 0x1000, at));
    }
}

/// Repeated string instructions in loops: across pages, into a fault, with counts of zero, and with stops in the
/// middle.
#[test]
fn repeated_string_instructions_stop_and_continue_anywhere() {
    let mut g = Guest::new();
    g.map(ELSEWHERE, DATA, P | W);
    g.map(ELSEWHERE + 0x1000, DATA + 0x3000, P | W);
    g.code(CODE, |a| {
        let (again, next) = (a.create_label(), a.create_label());
        a.mov(ebx, 6)?;
        a.lea(r15, ptr(next))?;
        a.set_label(again)?;
        a.mov(rdi, ELSEWHERE + 0xff8)?;
        a.mov(eax, ebx)?;
        a.mov(ecx, 19)?;
        a.rep().stosb()?;
        a.add(rdx, rdi)?;
        a.rep().stosb()?;
        a.mov(rsi, ELSEWHERE + 0xff0)?;
        a.mov(ecx, 40)?;
        a.repe().cmpsb()?;
        a.pushfq()?;
        a.add(rdx, rcx)?;
        // The memory after the second page is unmapped, so the instruction faults after five iterations.
        a.mov(rdi, ELSEWHERE + 0x1ff6)?;
        a.mov(ecx, 9)?;
        a.rep().stosw()?;
        a.ud2()?;
        a.set_label(next)?;
        a.add(rdx, rcx)?;
        a.dec(ebx)?;
        a.jnz(again)?;
        a.hlt()
    });
    let done = check(&g);
    assert_eq!(done.log().len(), 6);
    assert!(done.log().iter().all(|record| record.vector == 14 && record.cr2 == ELSEWHERE + 0x2000));
    check_every_count(&g);
}

/// STI delays interrupts by one more instruction, whether an interrupt is pending or not.
#[test]
fn sti_delays_an_interrupt_by_one_instruction() {
    for at in 0..60 {
        let mut g = Guest::in_ring_0(|a| {
            repeat(a, 10, |a| {
                a.sti()?;
                a.inc(eax)?;
                a.sti()?;
                a.mov(ebx, ecx)?;
                a.cli()?;
                a.nop()
            })?;
            a.sti()?;
            a.hlt()
        });
        g.interrupts.push((at, 0x55));
        check(&g);
    }
}

/// Calls without a return, returns without a call, and more nested calls than fit into the ring of recent calls, by
/// which translated code finds the targets of returns.
#[test]
fn returns_go_to_the_address_on_the_stack() {
    const FUNCTION: u64 = DATA + 0x10;
    let mut g = Guest::new();
    // A function that recurses to the depth in EDI.
    g.code(FUNCTION, |a| {
        let leaf = a.create_label();
        a.push(rdi)?;
        a.sub(edi, 1)?;
        a.jz(leaf)?;
        a.call(FUNCTION)?;
        a.add(rbx, rdi)?;
        a.set_label(leaf)?;
        a.pop(rdi)?;
        a.add(rax, rdi)?;
        a.ret()
    });
    g.code(CODE, |a| {
        let (again, other, back) = (a.create_label(), a.create_label(), a.create_label());
        a.mov(ecx, 12)?;
        a.set_label(again)?;
        a.mov(edi, 70)?;
        a.call(FUNCTION)?;
        a.mov(edi, 3)?;
        a.call(FUNCTION)?;
        // A return without a call.
        a.lea(rsi, ptr(back))?;
        a.push(rsi)?;
        a.mov(rsi, FUNCTION)?;
        a.mov(edi, 2)?;
        a.jmp(rsi)?;
        a.set_label(back)?;
        // A call without a return.
        a.call(other)?;
        a.hlt()?;
        a.set_label(other)?;
        a.add(rsp, 8)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()
    });
    let done = check(&g);
    assert_eq!(done.state.gpr[0], 12 * ((1..=70).sum::<u64>() + 6 + 3));
}

/// Runs of pushes and pops. The stack pointer has every distance from the end of a page, and from an unmapped page.
#[test]
fn runs_on_the_stack_cross_pages_word_by_word() {
    let mut g = Guest::new();
    // The two pages are adjacent in linear memory, but not in RAM.
    g.map(ELSEWHERE + 0x1000, DATA, P | W);
    g.map(ELSEWHERE + 0x2000, DATA + 0x3000, P | W);
    // The guest's page fault handler uses a separate stack.
    g.on_ist1(14);
    g.code(CODE, |a| {
        let (again, next) = (a.create_label(), a.create_label());
        a.mov(rcx, ELSEWHERE + 0x2050)?;
        a.lea(r15, ptr(next))?;
        a.set_label(again)?;
        a.mov(rsp, rcx)?;
        for register in [rax, rbx, rcx, rdx, rbp, r8, r9, r10, r11, r12] {
            a.push(register)?;
        }
        a.push(77)?;
        a.push(rsp)?;
        a.push(-5)?;
        for register in [r9, r8, rbp, rdx, r13, rbx, rax, r12, r11, r10] {
            a.pop(register)?;
        }
        a.add(rax, r12)?;
        a.set_label(next)?;
        a.xor(rbx, rsp)?;
        a.sub(rcx, 8)?;
        a.mov(rdi, ELSEWHERE + 0xff0)?;
        a.cmp(rcx, rdi)?;
        a.ja(again)?;
        a.hlt()
    });
    let done = check(&g);
    assert!(done.log().iter().all(|record| record.vector == 14));
    assert!(done.log().len() > 10);
}

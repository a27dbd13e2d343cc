//! Ends of guests: each kind of broken guest ends its machine with a reason of its own.

use everett_assembler::*;
use everett_vmm::machine::{End, STORM_INTERRUPTS};
use everett_vmm::{Stop, Until};

use crate::guest::{DATA, IDT, LAPIC, UART, assemble, out, plain, store, vector};

fn end_of(code: &[u8]) -> End {
    match plain(code).run(&Until::vtime(2_000_000_000)) {
        Stop::End(end) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_guest_prints_and_powers_off() {
    let code = assemble(|a| {
        for byte in b"hello\n" {
            out(a, UART, u32::from(*byte))?;
        }
        out(a, 0x600, 0x34)
    });
    let mut machine = plain(&code);
    assert_eq!(machine.run(&Until::vtime(1_000_000)), Stop::End(End::PowerOff));
    assert_eq!(machine.output().take_console(), b"hello\n");
    // The guest executes 3 instructions for each byte, then 2 MOVs. The OUT that switches the power off has not
    // retired.
    assert_eq!((machine.icount(), machine.vtime()), (20, 20));
}

#[test]
fn a_triple_fault_is_reported() {
    assert_eq!(end_of(&assemble(|a| a.ud2())), End::TripleFault);
}

#[test]
fn halting_with_interrupts_off_is_forever() {
    assert_eq!(
        end_of(&assemble(|a| {
            a.cli()?;
            a.hlt()
        })),
        End::HaltedForever
    );
}

#[test]
fn an_interrupt_storm_is_found() {
    let code = assemble(|a| {
        let handler = a.create_label();
        vector(a, 0x40, handler)?;
        store(a, LAPIC + 0xf0, 0x1ff)?;
        store(a, LAPIC + 0x300, 0x4_0040)?;
        a.sti()?;
        let forever = a.create_label();
        a.set_label(forever)?;
        a.inc(rsi)?;
        a.jmp(forever)?;
        a.set_label(handler)?;
        store(a, LAPIC + 0xb0, 0)?;
        store(a, LAPIC + 0x300, 0x4_0040)?;
        a.iretq()
    });
    assert_eq!(end_of(&code), End::InterruptStorm { vector: 0x40, count: STORM_INTERRUPTS });
}

/// The guest reads and writes doublewords at pseudo-random registers of the virtio devices, the IOAPIC and the local
/// APIC.
#[test]
fn garbage_at_every_register_is_harmless() {
    let code = assemble(|a| {
        let again = a.create_label();
        a.mov(rsi, 0x1234_5678_9abc_def1u64)?;
        a.mov(r8, 6_364_136_223_846_793_005u64)?;
        a.mov(r9, 0xd000_0000u64)?;
        a.set_label(again)?;
        for (window, mask) in [(0u64, 0x3ffcu32), (0x2ec0_0000, 0x1c), (0x2ee0_0000, 0x3fc)] {
            a.imul_2(rsi, r8)?;
            a.add(rsi, 12_345)?;
            a.mov(rdi, rsi)?;
            a.shr(rdi, 33)?;
            a.mov(eax, edi)?;
            a.and(edi, mask as i32)?;
            a.mov(rbx, window)?;
            a.add(rbx, r9)?;
            a.mov(ecx, dword_ptr(rbx + rdi))?;
            a.mov(dword_ptr(rbx + rdi), eax)?;
            a.xor(rsi, rcx)?;
        }
        a.jmp(again)
    });
    let (mut once, mut again) = (plain(&code), plain(&code));
    assert_eq!(once.run(&Until::vtime(20_000_000)), Stop::Time);
    assert_eq!(again.run(&Until::vtime(20_000_000)), Stop::Time);
    assert!(once.stats().mmio > 100_000);
    assert_eq!(once.digest(), again.digest());
}

#[test]
fn memory_beyond_ram_is_open_bus() {
    let code = assemble(|a| {
        a.mov(rbx, 0xb000_0000u64)?;
        a.mov(qword_ptr(rbx), 5)?;
        a.mov(rax, qword_ptr(rbx))?;
        a.mov(rbx, DATA)?;
        a.mov(qword_ptr(rbx), rax)?;
        a.hlt()
    });
    let mut machine = plain(&code);
    machine.run(&Until::vtime(1_000));
    let mut read = [0; 8];
    assert_eq!(machine.read_virtual(DATA, &mut read), 8);
    assert_eq!(read, [0xff; 8]);
    assert_eq!(machine.output().unknown_accesses(), 2);
}

/// The handler of #UD is itself a UD2. Each exception starts again at the top of an interrupt stack, so the stack never
/// overflows. The CPU raises exceptions without end, and no instruction retires.
#[test]
fn exceptions_without_end_are_found() {
    const TSS: u64 = 0x160_0000;
    let code = assemble(|a| {
        let handler = a.create_label();
        // A task state segment whose first interrupt stack is at DATA, and its descriptor at selector 0x20.
        a.mov(rbx, TSS + 0x24)?;
        a.mov(rax, DATA)?;
        a.mov(qword_ptr(rbx), rax)?;
        a.mov(rbx, IDT + 0x2000)?;
        a.mov(rax, 0x0000_8960_0000_0067u64)?;
        a.mov(qword_ptr(rbx + 0x20), rax)?;
        a.mov(qword_ptr(rbx + 0x28), 0)?;
        a.mov(rax, 0x00af_9b00_0000_ffffu64)?;
        a.mov(qword_ptr(rbx + 0x10), rax)?;
        a.mov(rax, 0x00cf_9300_0000_ffffu64)?;
        a.mov(qword_ptr(rbx + 0x18), rax)?;
        a.mov(word_ptr(rbx + 0x30), 0x2f)?;
        a.mov(qword_ptr(rbx + 0x32), rbx)?;
        a.lgdt(ptr(rbx + 0x30))?;
        // Base 0x160_0000: 0x60_0000 in bits 16-39 and 0x01 in bits 56-63.
        a.mov(rax, 0x0100_8960_0000_0067u64)?;
        a.mov(qword_ptr(rbx + 0x20), rax)?;
        a.mov(ax, 0x20)?;
        a.ltr(ax)?;
        vector(a, 6, handler)?;
        a.mov(rbx, IDT + 16 * 6)?;
        a.mov(byte_ptr(rbx + 4), 1)?;
        a.set_label(handler)?;
        a.ud2()
    });
    let End::Unsupported(reason) = end_of(&code) else { panic!("the guest must end as unsupported") };
    assert!(reason.starts_with("exceptions without end"), "{reason}");
}

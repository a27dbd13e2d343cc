//! Clock mode `branch` on the soft CPU (Everett's own CPU): executed conditional branches drive the virtual time, stops
//! are exact, and a due event waits for the guest's next exit, but not longer than `LATE_NS`.

use everett_assembler::*;
use everett_vmm::clock::BRANCH_INSTRUCTIONS;
use everett_vmm::machine::journal::EntryKind;
use everett_vmm::machine::{End, LATE_NS};
use everett_vmm::{ClockMode, Machine, Stop, Until};

use crate::guest::{DATA, ENTRY, LAPIC, UART, assemble, count_tick, machine_in, out, spin, store, timer};

/// Vtime that one executed conditional branch takes, in nanoseconds.
const BRANCH_NS: u64 = BRANCH_INSTRUCTIONS;

fn machine(code: &[u8]) -> Machine {
    machine_in(ClockMode::Branch, code)
}

/// Runs to the end. Returns the number of executed conditional branches.
fn finish(machine: &mut Machine) -> u64 {
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
    machine.icount()
}

/// Returns the count of executed conditional branches and the vtime at each interrupt.
fn interrupts(machine: &mut Machine) -> Vec<(u64, u64)> {
    let journal = machine.journal().unwrap();
    let taken = journal.entries().iter().filter(|e| matches!(e.kind, EntryKind::Interrupt { .. }));
    taken.map(|e| (e.icount, e.vtime)).collect()
}

#[test]
fn a_stop_is_directly_after_its_branch() {
    let code = assemble(|a| {
        spin(a, 1000)?;
        a.hlt()
    });
    let mut machine = machine(&code);
    let first = {
        assert_eq!(machine.run(&Until::icount(1)), Stop::Count);
        machine.cpu().rip
    };
    assert!(first > ENTRY, "the branch jumps back, but not to the start");
    for to in [2, 3, 10, 11, 500, 999] {
        assert_eq!(machine.run(&Until::icount(to)), Stop::Count);
        let cpu = machine.cpu();
        assert_eq!((machine.icount(), cpu.gpr[1], cpu.rip), (to, 1000 - to, first));
        assert_eq!(machine.vtime(), to * BRANCH_NS);
        assert_eq!(
            machine.run(&Until::vtime(machine.vtime())),
            Stop::Time,
            "the machine is at this vtime already"
        );
        assert_eq!(machine.cpu(), cpu);
    }
    assert_eq!(machine.run(&Until::vtime(999 * BRANCH_NS + 1)), Stop::Time);
    assert_eq!(machine.icount(), 1000);
    assert!(
        !machine.set_breakpoints(&[DATA]),
        "a count of branches does not say which instruction comes next"
    );
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
    assert_eq!(machine.icount(), 1000);
}

/// Runs a guest that starts a timer of `ns` nanoseconds at count 0 and then executes `body`. The timer expires once.
/// Returns the count and the vtime of each interrupt that the guest took.
fn taken(ns: u32, body: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Vec<(u64, u64)> {
    let code = assemble(|a| {
        let handler = a.create_label();
        timer(a, ns, handler)?;
        store(a, LAPIC + 0x320, 0x40)?;
        store(a, LAPIC + 0x380, ns)?;
        body(a)?;
        a.cli()?;
        a.hlt()?;
        a.set_label(handler)?;
        count_tick(a)
    });
    let mut machine = machine(&code);
    machine.keep_journal(true);
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
    interrupts(&mut machine)
}

#[test]
fn due_events_wait_for_an_exit_but_not_for_long() {
    // The guest has an exit before the event has waited for `LATE_NS`, and takes the interrupt after the exit.
    let at_exit = taken(1000, |a| {
        a.sti()?;
        spin(a, 100_000)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 10)
    });
    assert_eq!(at_exit, [(100_000, 100_000 * BRANCH_NS)]);
    // The guest has no exit, so the machine stops it when the event has waited for `LATE_NS`.
    let late = taken(1000, |a| {
        a.sti()?;
        spin(a, 3_000_000)
    });
    let count = (1000 + LATE_NS).div_ceil(BRANCH_NS);
    assert_eq!(late, [(count, count * BRANCH_NS)]);
    // The first exit is before the timer expires. The guest takes the interrupt after the second exit.
    let second = taken(5000, |a| {
        a.sti()?;
        spin(a, 600)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 100)?;
        out(a, UART, u32::from(b'.'))
    });
    assert_eq!(second, [(700, 700 * BRANCH_NS)]);
    // The timer expires while the guest has interrupts off, so the interrupt waits, even past an exit. The guest takes
    // it after the instruction that follows STI.
    let window = taken(1000, |a| {
        spin(a, 2000)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 50)?;
        a.sti()?;
        spin(a, 10)
    });
    assert_eq!(window, [(2050, 2050 * BRANCH_NS)]);
    // The same without an exit. The machine stops the guest when the event has waited for `LATE_NS`, and makes the
    // interrupt pending. Interrupts are still off, so the guest takes it after the instruction that follows STI.
    let window = taken(1000, |a| {
        spin(a, 3_000_000)?;
        a.sti()?;
        spin(a, 10)
    });
    assert_eq!(window, [(3_000_000, 3_000_000 * BRANCH_NS)]);
}

#[test]
fn the_tsc_is_constant_between_places_where_events_are_dispatched() {
    let code = assemble(|a| {
        let read = |a: &mut Assembler, at: i32| {
            a.rdtsc()?;
            a.mov(rbx, DATA + 0x800)?;
            a.mov(qword_ptr(rbx + at), rax)
        };
        read(a, 0)?;
        spin(a, 5000)?;
        read(a, 8)?;
        out(a, UART, u32::from(b'.'))?;
        read(a, 16)?;
        spin(a, 100)?;
        read(a, 24)?;
        out(a, UART, u32::from(b'.'))?;
        read(a, 32)?;
        a.cli()?;
        a.hlt()
    });
    let read = |machine: &Machine| {
        let mut bytes = [0; 40];
        assert_eq!(machine.read_virtual(DATA + 0x800, &mut bytes), 40);
        let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        words.collect::<Vec<_>>()
    };
    let expected = [0, 0, 5000 * BRANCH_NS, 5000 * BRANCH_NS, 5100 * BRANCH_NS];
    let mut plain = machine(&code);
    finish(&mut plain);
    assert_eq!(read(&plain), expected);
    let mut stopped = machine(&code);
    while stopped.end().is_none() {
        stopped.run(&Until::icount(stopped.icount() + 17));
    }
    assert_eq!(read(&stopped), expected, "stops do not change the TSC");
}

#[test]
fn a_handler_sees_when_its_interrupt_was_taken() {
    let code = assemble(|a| {
        let handler = a.create_label();
        timer(a, 1000, handler)?;
        store(a, LAPIC + 0x320, 0x40)?;
        store(a, LAPIC + 0x380, 1000)?;
        spin(a, 2000)?;
        // The interrupt is due here, but the guest takes it only after STI.
        out(a, UART, u32::from(b'.'))?;
        spin(a, 300)?;
        a.sti()?;
        a.nop()?;
        spin(a, 400)?;
        a.cli()?;
        a.hlt()?;
        a.set_label(handler)?;
        a.rdtsc()?;
        a.mov(r13, rax)?;
        count_tick(a)
    });
    let mut machine = machine(&code);
    finish(&mut machine);
    assert_eq!(machine.cpu().gpr[13], 2300 * BRANCH_NS);
}

#[test]
fn accesses_without_a_branch_between_are_bounded() {
    let code = assemble(|a| {
        let forever = a.create_label();
        a.mov(edx, UART + 7)?;
        a.set_label(forever)?;
        a.out(dx, al)?;
        a.jmp(forever)
    });
    let mut machine = machine(&code);
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::NoProgress));
    let code = assemble(|a| {
        a.mov(rsi, DATA)?;
        a.mov(ecx, 9000)?;
        a.mov(edx, UART + 7)?;
        a.rep().outsb()?;
        a.cli()?;
        a.hlt()
    });
    assert_eq!(finish(&mut self::machine(&code)), 0, "9000 accesses are within the bound");
}

//! Clock mode `exit` on the soft CPU (Everett's own CPU): only exits advance the virtual time, and interrupts and stops
//! come only after exits.

use everett_assembler::*;
use everett_vmm::clock::EXIT_INSTRUCTIONS;
use everett_vmm::machine::End;
use everett_vmm::{ClockMode, Machine, Stop, Until};

use crate::guest::{DATA, UART, assemble, count_tick, machine_in, out, timer};

/// Time by which each exit advances the virtual time, in nanoseconds.
const EXIT_NS: u64 = EXIT_INSTRUCTIONS;

fn machine(code: &[u8]) -> Machine {
    machine_in(ClockMode::Exit, code)
}

/// A guest with a timer of 25 us that computes, copies 100 bytes and prints a dot, 200 times, and finally halts
/// forever. The guest sets bits at `DATA + 0x180` if time passes during a copy, and at `DATA + 0x188` if an interrupt
/// is taken during one.
pub(crate) fn busy() -> Vec<u8> {
    assemble(|a| {
        let (handler, again, inner) = (a.create_label(), a.create_label(), a.create_label());
        timer(a, 25_000, handler)?;
        a.sti()?;
        a.mov(r12d, 200)?;
        a.set_label(again)?;
        a.mov(ecx, 5000)?;
        a.set_label(inner)?;
        a.mov(rbx, DATA)?;
        a.add(qword_ptr(rbx + 0x100), rcx)?;
        a.dec(ecx)?;
        a.jnz(inner)?;
        a.mov(r13, r15)?;
        a.rdtsc()?;
        a.mov(r14, rax)?;
        a.mov(ecx, 100)?;
        a.mov(rbx, DATA)?;
        a.mov(rsi, rbx)?;
        a.lea(rdi, qword_ptr(rbx + 0x200))?;
        a.rep().movsb()?;
        a.rdtsc()?;
        // Both differences are 0 unless time passed or an interrupt was taken during the copy.
        a.sub(rax, r14)?;
        a.or(qword_ptr(rbx + 0x180), rax)?;
        a.sub(r13, r15)?;
        a.or(qword_ptr(rbx + 0x188), r13)?;
        out(a, UART, u32::from(b'.'))?;
        a.dec(r12d)?;
        a.jnz(again)?;
        a.cli()?;
        a.hlt()?;
        a.set_label(handler)?;
        count_tick(a)
    })
}

/// Runs to the end. Returns the final count and vtime.
fn finish(machine: &mut Machine) -> (u64, u64) {
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
    (machine.icount(), machine.vtime())
}

fn word(machine: &Machine, at: u64) -> u64 {
    let mut word = [0; 8];
    assert_eq!(machine.read_virtual(at, &mut word), 8);
    u64::from_le_bytes(word)
}

#[test]
fn time_passes_and_interrupts_are_taken_only_at_exits() {
    let mut machine = machine(&busy());
    let (exits, vtime) = finish(&mut machine);
    let ticks = machine.cpu().gpr[15];
    // The guest has four exits for the setup of the timer, one for each dot, one for the EOI of each tick, and HLT.
    assert_eq!((exits, vtime), (4 + 200 + ticks + 1, exits * EXIT_NS));
    assert!(ticks > 50 && machine.stats().interrupts >= ticks, "the timer ticked {ticks} times");
    assert_eq!((word(&machine, DATA + 0x180), word(&machine, DATA + 0x188)), (0, 0));
}

#[test]
fn a_stop_at_a_vtime_is_the_first_exit_at_or_after_it() {
    let mut machine = machine(&busy());
    for (to, at) in [(1, 1), (EXIT_NS, 1), (EXIT_NS + 1, 2), (10 * EXIT_NS - 1, 10)] {
        assert_eq!(machine.run(&Until::vtime(to)), Stop::Time);
        assert_eq!((machine.icount(), machine.vtime()), (at, at * EXIT_NS));
    }
    assert_eq!(machine.run(&Until::icount(17)), Stop::Count);
    assert_eq!(machine.icount(), 17);
    assert!(!machine.set_breakpoints(&[DATA]), "a count of exits does not say which instruction comes next");
}

#[test]
fn a_repeated_access_to_a_device_is_one_exit() {
    let code = assemble(|a| {
        a.mov(rsi, DATA)?;
        a.mov(ecx, 9)?;
        a.mov(edx, UART)?;
        a.rep().outsb()?;
        a.cli()?;
        a.hlt()
    });
    let mut machine = machine(&code);
    assert_eq!(finish(&mut machine).0, 2);
    assert_eq!(machine.output().take_console().len(), 9);
}

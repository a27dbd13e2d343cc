//! Clock mode `branch` on the soft CPU: time is counted in branches, stops are exact, and due events wait for an
//! exit, but only for a limited time.

use everett_assembler::*;
use everett_cpu::{CacheConfig, Watchpoint};
use everett_snapshot::Pool;
use everett_vmm::clock::BRANCH_INSTRUCTIONS;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::counting::CountingEngine;
use everett_vmm::engine::soft::{FlushSchedule, SoftEngine};
use everett_vmm::machine::journal::EntryKind;
use everett_vmm::machine::{End, LATE_NS, Moment};
use everett_vmm::ram::Ram;
use everett_vmm::{ClockMode, Digest, Machine, Stop, Until};

use crate::guest::{DATA, ENTRY, LAPIC, UART, assemble, config_in, count_tick, out, store, timer};

/// Time of a branch, in nanoseconds.
const BRANCH_NS: u64 = BRANCH_INSTRUCTIONS;
const CACHES: CacheConfig = CacheConfig {
    tlb_entries: 256,
    block_entries: 1024,
    translate_after: Some(2),
    edges: false,
    branches: true,
};

fn engine(ram: &Ram, caches: CacheConfig) -> CountingEngine {
    CountingEngine::branches(SoftEngine::new(ram.shared(), caches))
}
fn machine_with(code: &[u8], caches: CacheConfig) -> Machine {
    let (config, _folder) = config_in(ClockMode::Branch, code);
    Machine::new(config, |ram| Ok(engine(ram, caches))).unwrap()
}
fn machine(code: &[u8]) -> Machine {
    machine_with(code, CACHES)
}
fn from_moment(code: &[u8], moment: &Moment) -> Machine {
    let (config, _folder) = config_in(ClockMode::Branch, code);
    Machine::from_moment(config, moment, |ram| Ok(engine(ram, CACHES))).unwrap()
}

/// Executes this many branches, and little else. Uses RCX.
fn spin(a: &mut Assembler, branches: u32) -> Result<(), Error> {
    let again = a.create_label();
    a.mov(ecx, branches)?;
    a.set_label(again)?;
    a.add(r14, rcx)?;
    a.dec(ecx)?;
    a.jnz(again)
}

/// A guest with a timer of 25 us. It reads the TSC and computes with interrupts on and off, in one loop for longer than
/// `LATE_NS`, the time that a due event waits for an exit.
fn busy() -> Vec<u8> {
    assemble(|a| {
        let (handler, again) = (a.create_label(), a.create_label());
        timer(a, 25_000, handler)?;
        a.mov(r12d, 12)?;
        a.set_label(again)?;
        a.sti()?;
        spin(a, 10_000)?;
        a.rdtsc()?;
        a.mov(r13, rax)?;
        a.cli()?;
        spin(a, 30_000)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 1000)?;
        a.sti()?;
        a.nop()?;
        spin(a, (2 * LATE_NS / BRANCH_NS) as u32)?;
        a.rdtsc()?;
        a.imul_3(r14, r14, 31)?;
        a.sub(rax, r13)?;
        a.add(r14, rax)?;
        a.dec(r12d)?;
        a.jnz(again)?;
        a.cli()?;
        a.hlt()?;
        a.set_label(handler)?;
        a.imul_3(r14, r14, 17)?;
        a.push(rax)?;
        a.push(rdx)?;
        a.rdtsc()?;
        a.add(r14, rax)?;
        a.pop(rdx)?;
        a.pop(rax)?;
        count_tick(a)
    })
}

fn finish(machine: &mut Machine) -> (u64, u64, u64, Digest) {
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
    (machine.icount(), machine.vtime(), machine.cpu().gpr[14], machine.digest())
}

/// Returns the count and the vtime of each interrupt.
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
    let nowhere = Until { breakpoints: &[DATA], ..Until::icount(2000) };
    assert_eq!(machine.run(&nowhere), Stop::NoBreakpoints);
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
    assert_eq!(machine.icount(), 1000);
}

#[test]
fn stops_observers_and_caches_change_nothing() {
    let code = busy();
    let expected = finish(&mut machine(&code));
    let interpreted = CacheConfig { translate_after: None, ..CACHES };
    assert_eq!(finish(&mut machine_with(&code, interpreted)), expected);

    let mut stopped = machine(&code);
    for n in 0..4000 {
        stopped.run(&Until::vtime(stopped.vtime() + 1 + (n * n) % 77_777));
        if n % 100 == 0 {
            stopped.digest();
        }
    }
    assert!(stopped.vtime() < expected.1);
    assert_eq!(finish(&mut stopped), expected);

    let mut flushed = machine(&code);
    flushed.engine_mut().soft_mut().unwrap().flush_at_random(FlushSchedule { interval: 100_000, seed: 1 });
    assert_eq!(finish(&mut flushed), expected);

    let mut watched = machine(&code);
    let stack = Watchpoint { address: DATA - 0x100, len: 0x100, loads: true, stores: true };
    assert!(watched.watch(&[stack]));
    assert_eq!(finish(&mut watched), expected);
    assert!(watched.output().take_notes().len() > 100, "each access is reported");

    let mut lockstep = {
        let (config, _folder) = config_in(ClockMode::Branch, &code);
        let engine = |ram: &Ram| {
            let mut soft = SoftEngine::new(ram.shared(), CACHES);
            soft.run_in_lockstep(CACHES);
            CountingEngine::branches(soft)
        };
        Machine::new(config, |ram| Ok(engine(ram))).unwrap()
    };
    assert_eq!(finish(&mut lockstep), expected);
}

#[test]
fn a_moment_at_any_branch_continues_identically() {
    let code = busy();
    let expected = finish(&mut machine(&code));
    let pool = Pool::default();
    let mut travelling = machine(&code);
    let mut moments = Vec::new();
    while travelling.end().is_none() {
        travelling.run(&Until::icount(travelling.icount() + 777_777));
        let moment = travelling.moment(&pool);
        travelling = from_moment(&code, &moment);
        assert_eq!(travelling.moment(&pool).state(), moment.state());
        moments.push(moment);
    }
    assert!(moments.len() > 20);
    assert_eq!(finish(&mut travelling), expected);
    for moment in moments.iter().step_by(7) {
        assert_eq!(finish(&mut from_moment(&code, moment)), expected);
    }
}

/// A guest that waits for a timer, computes, and waits again.
fn waiting() -> Vec<u8> {
    assemble(|a| {
        let (handler, again) = (a.create_label(), a.create_label());
        timer(a, 25_000, handler)?;
        a.mov(r12d, 9)?;
        a.set_label(again)?;
        a.sti()?;
        a.hlt()?;
        a.cli()?;
        a.rdtsc()?;
        a.add(r14, rax)?;
        spin(a, 500)?;
        a.dec(r12d)?;
        a.jnz(again)?;
        a.hlt()?;
        a.set_label(handler)?;
        count_tick(a)
    })
}

#[test]
fn a_moment_of_a_waiting_guest_continues_identically() {
    let code = waiting();
    let expected = finish(&mut machine(&code));
    let pool = Pool::default();
    let mut travelling = machine(&code);
    while travelling.end().is_none() {
        travelling.run(&Until::vtime(travelling.vtime() + 7_000));
        let moment = travelling.moment(&pool);
        travelling = from_moment(&code, &moment);
        assert_eq!(travelling.moment(&pool).state(), moment.state());
    }
    assert_eq!(finish(&mut travelling), expected);
}

#[test]
fn earlier_stops_do_not_change_a_digest() {
    const EVERY: u64 = 5_000;
    for code in [waiting(), busy()] {
        // Returns the digest at each multiple of `EVERY`, with `stops` further stops before each.
        let digests = |stops: u64| {
            let (mut machine, mut digests) = (machine(&code), Vec::new());
            for place in 1..100 {
                for stop in 1..=stops {
                    let at = (place - 1) * EVERY + stop * EVERY / (stops + 1) + stop;
                    machine.run(&Until::vtime(at));
                }
                machine.run(&Until::vtime(place * EVERY));
                digests.push((machine.vtime(), machine.digest()));
            }
            digests
        };
        let expected = digests(0);
        for stops in [1, 2, 7] {
            assert_eq!(digests(stops), expected, "{stops}");
        }
    }
}

/// Runs a guest that starts a timer at count 0 and then executes `body`. The timer expires once. Returns the count and
/// the vtime of each interrupt.
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
    // The guest has an exit before the event has waited for `LATE_NS`.
    let at_exit = taken(1000, |a| {
        a.sti()?;
        spin(a, 100_000)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 10)
    });
    assert_eq!(at_exit, [(100_000, 100_000 * BRANCH_NS)]);
    // The guest has no exit, and is stopped when the event has waited for `LATE_NS`.
    let late = taken(1000, |a| {
        a.sti()?;
        spin(a, 3_000_000)
    });
    let count = (1000 + LATE_NS).div_ceil(BRANCH_NS);
    assert_eq!(late, [(count, count * BRANCH_NS)]);
    // The first exit is before the timer expires, the second after it.
    let second = taken(5000, |a| {
        a.sti()?;
        spin(a, 600)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 100)?;
        out(a, UART, u32::from(b'.'))
    });
    assert_eq!(second, [(700, 700 * BRANCH_NS)]);
    // An interrupt that is blocked is taken as soon as possible: not directly after STI, but after the instruction
    // that follows it.
    let window = taken(1000, |a| {
        spin(a, 2000)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 50)?;
        a.sti()?;
        spin(a, 10)
    });
    assert_eq!(window, [(2050, 2050 * BRANCH_NS)]);
    // The same without an exit: the guest is stopped for the event while its interrupts are still off.
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
        // The interrupt is due and waits for STI.
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
fn a_guest_without_branches_is_ended() {
    let code = assemble(|a| {
        let forever = a.create_label();
        spin(a, 10)?;
        a.set_label(forever)?;
        a.inc(rsi)?;
        a.jmp(forever)
    });
    let mut digests = Vec::new();
    for step in [u64::MAX, 3] {
        let mut machine = machine(&code);
        let AnyEngine::Counting(engine) = machine.engine_mut() else { unreachable!("it counts branches") };
        engine.give_up_after(30_000);
        while machine.end().is_none() {
            machine.run(&Until::icount(machine.icount().saturating_add(step)));
        }
        assert_eq!((machine.end(), machine.icount()), (Some(&End::NoBranch), 10));
        digests.push(machine.digest());
    }
    assert_eq!(digests[0], digests[1]);
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
    assert_eq!(finish(&mut self::machine(&code)).0, 0, "9000 accesses are within the bound");
}

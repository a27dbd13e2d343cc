//! Tests that run in each clock mode: caches, stops, observers and moments do not change a guest's trail, and a machine
//! ends if its guest makes no progress.

use everett_assembler::*;
use everett_cpu::{CacheConfig, Traces, Watchpoint};
use everett_snapshot::Pool;
use everett_vmm::clock::{BRANCH_INSTRUCTIONS, EXIT_INSTRUCTIONS};
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::soft::{FlushSchedule, SoftEngine};
use everett_vmm::machine::{End, LATE_NS, Moment};
use everett_vmm::ram::Ram;
use everett_vmm::{ClockMode, Digest, Machine, Stop, Until};

use crate::exits;
use crate::guest::{DATA, UART, assemble, config_in, count_tick, machine_on, out, spin, timer};

/// Makes a module of tests for each clock mode.
macro_rules! tests {
    ($($module:ident($clock:ident): $($name:ident)*;)*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                super::$name(super::ClockMode::$clock);
            })*
        })*
    };
}

tests! {
    insn(Insn):
        caches_stops_and_observers_change_nothing
        a_moment_at_any_count_continues_identically
        a_moment_of_a_waiting_guest_continues_identically
        earlier_stops_do_not_change_a_digest;
    exit(Exit):
        caches_stops_and_observers_change_nothing
        a_moment_at_any_count_continues_identically
        a_moment_of_a_waiting_guest_continues_identically
        earlier_stops_do_not_change_a_digest
        a_guest_without_progress_is_ended_at_one_place;
    branch(Branch):
        caches_stops_and_observers_change_nothing
        a_moment_at_any_count_continues_identically
        a_moment_of_a_waiting_guest_continues_identically
        earlier_stops_do_not_change_a_digest
        a_guest_without_progress_is_ended_at_one_place;
}

/// Caches for tests. The CPU translates blocks early.
const CACHES: CacheConfig = CacheConfig {
    tlb_entries: 256,
    block_entries: 1024,
    translate_after: Some(2),
    traces: Traces::EAGER,
    edges: false,
    branches: false,
};

fn soft_engine(clock: ClockMode, caches: CacheConfig, ram: &Ram) -> SoftEngine {
    SoftEngine::new(ram.shared(), AnyEngine::soft_caches(clock, caches))
}

fn machine(clock: ClockMode, code: &[u8]) -> Machine {
    machine_on(clock, code, |ram| soft_engine(clock, CACHES, ram))
}

fn from_moment(clock: ClockMode, code: &[u8], moment: &Moment) -> Machine {
    let (config, _folder) = config_in(clock, code);
    let engine = |ram: &Ram| AnyEngine::on_soft(clock, soft_engine(clock, CACHES, ram));
    Machine::from_moment(config, moment, |ram| Ok(engine(ram))).unwrap()
}

/// Returns a guest that computes, waits and takes interrupts in this clock mode.
fn busy(clock: ClockMode) -> Vec<u8> {
    if clock == ClockMode::Branch { computing() } else { exits::busy() }
}

/// A guest with a timer of 25 us. It reads the TSC and computes with interrupts on and off. One of its loops takes
/// longer than `LATE_NS`, the maximum time that a due event waits for the guest's next exit.
fn computing() -> Vec<u8> {
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
        spin(a, (2 * LATE_NS / BRANCH_INSTRUCTIONS) as u32)?;
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

/// State in which a guest has ended.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    icount: u64,
    vtime: u64,
    sum: u64,
    digest: Digest,
}

/// Runs to the end.
fn finish(machine: &mut Machine) -> Place {
    assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
    let (icount, vtime, sum) = (machine.icount(), machine.vtime(), machine.cpu().gpr[14]);
    Place { icount, vtime, sum, digest: machine.digest() }
}

fn caches_stops_and_observers_change_nothing(clock: ClockMode) {
    let code = busy(clock);
    let expected = finish(&mut machine(clock, &code));

    let interpreted = CacheConfig { translate_after: None, ..CACHES };
    let mut interpreting = machine_on(clock, &code, |ram| soft_engine(clock, interpreted, ram));
    assert_eq!(finish(&mut interpreting), expected);

    let mut stopped = machine(clock, &code);
    let step = expected.vtime / 5000;
    let mut stops = 0;
    for n in 0..4000 {
        let stop = stopped.run(&Until::vtime(stopped.vtime() + 1 + (n * n) % (2 * step)));
        stops += u64::from(stop == Stop::Time);
        if expected.icount < 4000 || n % 100 == 0 {
            stopped.digest();
        }
    }
    assert!(stops >= (expected.icount - 1).min(4000), "{stops} stops");
    assert_eq!(finish(&mut stopped), expected);

    let mut flushed = machine(clock, &code);
    let interval = if clock == ClockMode::Branch { 100_000 } else { 1000 };
    flushed.engine_mut().soft_mut().unwrap().flush_at_random(FlushSchedule { interval, seed: 1 });
    assert_eq!(finish(&mut flushed), expected);

    let mut watched = machine(clock, &code);
    let on = |address, len| Watchpoint { address, len, loads: true, stores: true };
    assert!(watched.watch(&[on(DATA - 0x100, 0x100), on(DATA + 0x180, 16)]));
    assert_eq!(finish(&mut watched), expected);
    let accesses = if clock == ClockMode::Branch { 100 } else { 400 };
    assert!(watched.output().take_notes().len() > accesses, "each access is reported");

    let caches = AnyEngine::soft_caches(clock, CACHES);
    let mut lockstep = machine_on(clock, &code, |ram| {
        let mut soft = soft_engine(clock, CACHES, ram);
        soft.run_in_lockstep(caches);
        soft
    });
    assert_eq!(finish(&mut lockstep), expected);
}

fn a_moment_at_any_count_continues_identically(clock: ClockMode) {
    let code = busy(clock);
    let expected = finish(&mut machine(clock, &code));
    let moments =
        travel(clock, &code, &expected, |machine| Until::icount(machine.icount() + expected.icount / 25));
    assert!(moments.len() > 20);
    for moment in moments.iter().step_by(7) {
        assert_eq!(finish(&mut from_moment(clock, &code, moment)), expected);
    }
}

fn a_moment_of_a_waiting_guest_continues_identically(clock: ClockMode) {
    let code = waiting();
    let expected = finish(&mut machine(clock, &code));
    travel(clock, &code, &expected, |machine| Until::vtime(machine.vtime() + 7_000));
}

/// Runs to the end in several parts. `leg` returns where the next part ends. After each part, a new machine continues
/// from a moment of the previous one. Returns the moments.
fn travel(clock: ClockMode, code: &[u8], expected: &Place, leg: impl Fn(&Machine) -> Until) -> Vec<Moment> {
    let pool = Pool::default();
    let mut travelling = machine(clock, code);
    let mut moments = Vec::new();
    while travelling.end().is_none() {
        let until = leg(&travelling);
        travelling.run(&until);
        let moment = travelling.moment(&pool);
        travelling = from_moment(clock, code, &moment);
        assert_eq!(travelling.moment(&pool).state(), moment.state());
        moments.push(moment);
    }
    assert_eq!(finish(&mut travelling), *expected);
    moments
}

fn earlier_stops_do_not_change_a_digest(clock: ClockMode) {
    let every = if clock == ClockMode::Exit { 2 * EXIT_INSTRUCTIONS } else { 5_000 };
    for code in [waiting(), busy(clock)] {
        // Returns the digest at each multiple of `every`, with `stops` further stops before each digest.
        let digests = |stops: u64| {
            let (mut machine, mut digests) = (machine(clock, &code), Vec::new());
            for place in 1..100 {
                for stop in 1..=stops {
                    let at = (place - 1) * every + stop * every / (stops + 1) + stop;
                    machine.run(&Until::vtime(at));
                }
                machine.run(&Until::vtime(place * every));
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

fn a_guest_without_progress_is_ended_at_one_place(clock: ClockMode) {
    // The guest has one exit and ten conditional branches, and then an endless loop without either, so that the count
    // no longer changes in either clock mode.
    let code = assemble(|a| {
        let forever = a.create_label();
        out(a, UART, u32::from(b'.'))?;
        spin(a, 10)?;
        a.mov(rbx, DATA)?;
        a.set_label(forever)?;
        a.inc(rsi)?;
        a.mov(qword_ptr(rbx), rsi)?;
        a.jmp(forever)
    });
    let run = |step: u64, watches: bool| {
        let mut machine = machine(clock, &code);
        let AnyEngine::Counting(engine) = machine.engine_mut() else { unreachable!("it counts") };
        engine.give_up_after(30_000);
        if watches {
            let stores = Watchpoint { address: DATA, len: 8, loads: false, stores: true };
            assert!(machine.watch(&[stores]));
        }
        while machine.end().is_none() {
            machine.run(&Until::icount(machine.icount().saturating_add(step)));
        }
        // In clock mode `branch`, the guest executes some instructions after its last branch before the machine ends.
        // Their number depends on earlier stops, so the digest of the ended machine leaves out the registers. This test
        // does, too.
        let cpu = (clock == ClockMode::Exit).then(|| machine.cpu());
        (machine.end().cloned(), machine.icount(), cpu, machine.digest())
    };
    let expected = run(u64::MAX, false);
    let (end, count) = if clock == ClockMode::Exit { (End::NoExit, 1) } else { (End::NoBranch, 10) };
    assert_eq!((expected.0.as_ref(), expected.1), (Some(&end), count));
    assert_eq!(run(3, false), expected);
    assert_eq!(run(u64::MAX, true), expected);
}

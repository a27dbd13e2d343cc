//! Clock mode `branch`, in which retired conditional branches of the guest's code advance virtual time. A "branch" in
//! this file is always such an instruction. A machine has the same trail on the soft engine (Everett's own CPU), on the
//! kvm engine (`/dev/kvm`), and if the two engines take turns. The kvm engine detects disturbances by the host, e.g. a
//! stop that comes too late. The machine then returns to its last stop and runs again from there. After too many
//! disturbed attempts it ends with an error.
//!
//! The host is either scripted or `/dev/kvm`. The processor of a scripted host is a soft CPU, which stops as late as a
//! script says. With `/dev/kvm`, a soft CPU replaces the processor's branch counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use everett_assembler::*;
use everett_snapshot::Pool;
use everett_vmm::ClockMode;
use everett_vmm::digest::registers::compared;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::kvm::Host;
use everett_vmm::machine::{End, Machine, MachineError, Stop, TRIES_MAX, Until};
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;

use crate::beside::Beside;
use crate::lacks::ticking_host;
use crate::lockstep::Gates;
use crate::rng::Rng;
use crate::scripted::{MARGIN, Shared, Trouble};
use crate::small::{UART, assemble, count_tick, out, plain_in, spin, timer};
use crate::trail::{EngineMaker, MachineMaker, Pace, difference};
use crate::trials::{Ran, trial};
use crate::wander::{self, Also};

/// Number of guests, if the environment variable `KVM_PROGRAMS` is not set.
const GUESTS: u64 = 300;
/// The test compares the first digests a thousand branches apart. The distance grows over time.
const PACE: Pace = Pace {
    step: |looks| 1000 * (looks * looks).max(1),
    swap: |rng| rng.below(400_000) >> rng.below(18),
    counts_max: 40_000_000,
    looks_max: 60,
};

/// Engine that executes a machine.
#[derive(Debug, Clone)]
enum On {
    Soft,
    Host(Shared),
    /// `/dev/kvm`.
    Kvm(Arc<Host>, Shared, Arc<AtomicU64>),
}

impl EngineMaker for On {
    fn engine(&self, ram: &Ram) -> Result<AnyEngine, MachineError> {
        Ok(match self {
            On::Soft => plain_in(ClockMode::Branch, ram),
            On::Host(shared) => shared.engine_on(ram)?.into(),
            On::Kvm(host, shared, entered) => {
                let beside = Beside::new(host, ram, shared, entered)?;
                shared.engine(ram, beside)?.into()
            }
        })
    }
}

fn maker(code: Vec<u8>) -> MachineMaker {
    MachineMaker { clock: ClockMode::Branch, code }
}

fn machines_that_change_their_engine_at_any_branch_have_the_trail_of_those_that_do_not() {
    let guests = crate::programs_or(GUESTS);
    let (mut swaps, mut interrupts, mut points) = (0, 0, 0);
    for seed in 0..guests {
        let maker = maker(wander::guest_that(seed, Also::ComputeAndLook));
        let soft = maker.trail(&PACE, &[On::Soft], None);
        let host = On::Host(Shared::sound(seed));
        let kvm = maker.trail(&PACE, std::slice::from_ref(&host), None);
        assert_eq!(
            difference(&soft, &kvm),
            None,
            "seed {seed}: the soft engine and the scripted host differ"
        );
        let both = maker.trail(&PACE, &[On::Soft, host], Some(Rng::for_case(seed, 8)));
        assert_eq!(
            difference(&soft, &both),
            None,
            "seed {seed}: the soft engine, and both engines by turns, differ"
        );
        assert_eq!(
            kvm.disturbed + both.disturbed,
            0,
            "seed {seed}: entries were disturbed although the host is sound"
        );
        swaps += both.swapped;
        interrupts += soft.interrupts;
        points += soft.lines.lines().count() / 3;
    }
    eprintln!(
        "{guests} guests, {points} places compared, {interrupts} interrupts, {swaps} changes of the engine"
    );
    assert!(swaps > guests && interrupts > guests, "too few cases for a meaningful test");
}

fn machines_on_dev_kvm_are_those_on_the_soft_cpu() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let (host, entered) = (Arc::new(host), Arc::new(AtomicU64::new(0)));
    let guests = crate::programs_or(GUESTS);
    let (mut swaps, mut interrupts) = (0, 0);
    for seed in 0..guests / 10 {
        let maker = maker(wander::guest_that(seed, Also::Compute));
        let soft = maker.trail(&PACE, &[On::Soft], None);
        let kvm = On::Kvm(Arc::clone(&host), Shared::sound(seed), Arc::clone(&entered));
        let all = maker.trail(&PACE, std::slice::from_ref(&kvm), None);
        assert_eq!(difference(&soft, &all), None, "seed {seed}: the soft engine and /dev/kvm differ");
        let scripted = On::Host(Shared::sound(seed));
        let turns = maker.trail(&PACE, &[On::Soft, kvm, scripted], Some(Rng::for_case(seed, 10)));
        assert_eq!(
            difference(&soft, &turns),
            None,
            "seed {seed}: the soft engine, and all engines by turns, differ"
        );
        swaps += turns.swapped;
        interrupts += soft.interrupts;
    }
    let entered = entered.load(Ordering::Relaxed);
    eprintln!("{entered} exits on /dev/kvm, {interrupts} interrupts, {swaps} changes of the engine");
    assert!(entered > guests && interrupts > 0 && swaps > 0, "too few cases for a meaningful test");
    Ok(())
}

fn whatever_goes_wrong_now_and_then_shows_nowhere() {
    let guests = crate::programs_or(GUESTS);
    let (mut disturbed, mut troubles) = (0, [0; 4]);
    for seed in 0..guests / 3 {
        let maker = maker(wander::guest_that(seed, Also::ComputeAndLook));
        let soft = maker.trail(&PACE, &[On::Soft], None);
        let (mut rng, mut last) = (Rng::for_case(seed, 32), false);
        let shared = Shared::new(move |_| {
            // The host disturbs no two entries into the guest in a row, so a new attempt from the last stop usually
            // succeeds soon. If [`TRIES_MAX`] attempts from the same stop are disturbed, the machine ends.
            last = !last && rng.one_in(9);
            match rng.below(4) {
                0 if last => Trouble::Late(MARGIN + rng.below(1000)),
                1 if last => Trouble::Lost,
                2 if last => Trouble::Tick,
                3 if last => Trouble::Uncounted,
                _ => Trouble::Late(rng.below(MARGIN)),
            }
        });
        let host = On::Host(shared.clone());
        let kvm = maker.trail(&PACE, &[On::Soft, host], Some(Rng::for_case(seed, 9)));
        if kvm.lines.contains(&format!("in all {TRIES_MAX} attempts")) {
            // By chance, the host disturbed all attempts from one stop.
            continue;
        }
        assert_eq!(difference(&soft, &kvm), None, "seed {seed}");
        disturbed += kvm.disturbed;
        for (sum, times) in troubles.iter_mut().zip(shared.script().troubles) {
            *sum += times;
        }
    }
    eprintln!("{disturbed} runs were made again, for {troubles:?}");
    let few = guests / 30;
    assert!(
        disturbed > few && troubles.iter().all(|&times| times > few),
        "too few cases for a meaningful test"
    );
}

/// A guest that computes, reads the TSC and prints a dot, five times, with a timer whose interrupts are always late.
fn computing() -> MachineMaker {
    let code = assemble(|a| {
        let (handler, again) = (a.create_label(), a.create_label());
        timer(a, 25_000, handler)?;
        a.sti()?;
        a.mov(r12d, 5)?;
        a.set_label(again)?;
        spin(a, 1_500_000)?;
        a.rdtsc()?;
        a.imul_3(r14, r14, 31)?;
        a.add(r14, rax)?;
        out(a, UART, u32::from(b'.'))?;
        a.dec(r12d)?;
        a.jnz(again)?;
        a.cli()?;
        a.hlt()?;
        a.set_label(handler)?;
        count_tick(a)
    });
    maker(code)
}

/// Runs in steps of a million branches to the end. Returns the output, the last stop, and the digest there.
fn finish(machine: &mut Machine) -> (String, Stop, String) {
    let mut said = Vec::new();
    loop {
        let stop = machine.run(&Until::icount(machine.icount() + 1_000_000));
        said.extend(machine.output().take_console());
        if stop != Stop::Count {
            return (String::from_utf8_lossy(&said).into_owned(), stop, machine.digest().to_string());
        }
    }
}

/// A guest in which a due interrupt waits for STI. The guest reads the TSC while the interrupt waits, and in the
/// handler.
fn waiting() -> MachineMaker {
    let look = |a: &mut Assembler| {
        a.imul_3(r14, r14, 31)?;
        a.rdtsc()?;
        a.add(r14, rax)
    };
    let code = assemble(|a| {
        let (handler, again) = (a.create_label(), a.create_label());
        timer(a, 1000, handler)?;
        a.mov(r12d, 5)?;
        a.set_label(again)?;
        spin(a, 300)?;
        out(a, UART, u32::from(b'.'))?;
        spin(a, 33)?;
        look(a)?;
        a.sti()?;
        a.nop()?;
        spin(a, 77)?;
        look(a)?;
        a.cli()?;
        a.dec(r12d)?;
        a.jnz(again)?;
        a.hlt()?;
        a.set_label(handler)?;
        a.push(rax)?;
        a.push(rdx)?;
        look(a)?;
        a.imul_3(r14, r14, 31)?;
        a.add(r14, rcx)?;
        a.pop(rdx)?;
        a.pop(rax)?;
        count_tick(a)
    });
    maker(code)
}

fn whoever_executes_the_last_stretch_it_is_the_same() {
    let maker = waiting();
    let run = |on: &On, step: u64| {
        let mut machine = maker.machine(on);
        while machine.run(&Until::icount(machine.icount() + step)) == Stop::Count {}
        let interrupts = machine.cpu().gpr[15];
        (
            machine.end().cloned(),
            machine.vtime(),
            compared(ClockMode::Branch, machine.cpu()),
            interrupts,
            machine.digest(),
        )
    };
    let expected = run(&On::Soft, u64::MAX >> 1);
    assert_eq!((&expected.0, expected.3), (&Some(End::HaltedForever), 5));
    for step in [1, 2, 7, MARGIN - 1, MARGIN, MARGIN + 1, 100, 1000] {
        assert_eq!(run(&On::Soft, step), expected, "the soft engine, in steps of {step}");
        for skid in [0, 1, MARGIN - 1] {
            let host = On::Host(Shared::new(move |_| Trouble::Late(skid)));
            assert_eq!(
                run(&host, step),
                expected,
                "the scripted host, in steps of {step}, with a skid of {skid}"
            );
        }
    }
}

fn each_thing_that_goes_wrong_is_seen_and_the_run_made_again() {
    let maker = computing();
    let expected = finish(&mut maker.machine(&On::Soft));
    assert_eq!((&*expected.0, &expected.1), (".....", &Stop::End(End::HaltedForever)));
    let all =
        [Trouble::Late(MARGIN), Trouble::Late(MARGIN + 1), Trouble::Lost, Trouble::Tick, Trouble::Uncounted];
    for trouble in all {
        for at in 0..12 {
            // The trouble comes once, or several times in a row.
            for times in [1, 2, u64::from(TRIES_MAX) - 1] {
                let wrong = at..at + times;
                let plan =
                    move |entry| if wrong.contains(&entry) { trouble } else { Trouble::Late(MARGIN - 1) };
                let mut machine = maker.machine(&On::Host(Shared::new(plan)));
                assert_eq!(finish(&mut machine), expected, "{trouble:?} from entry {at} on, {times} times");
                let seen = machine.stats().disturbed;
                // A signal stops the guest at a count of branches. If the guest exits before the signal is due, a late
                // or lost signal has no effect.
                let may_be_nothing = matches!(trouble, Trouble::Late(_) | Trouble::Lost);
                assert!(
                    seen <= times && (seen > 0 || may_be_nothing),
                    "{trouble:?} from entry {at} on, {times} times: {seen} disturbances were counted"
                );
            }
        }
    }
}

fn what_goes_wrong_in_each_attempt_is_the_hosts_failure() {
    let maker = computing();
    for (trouble, says) in [
        (Trouble::Late(MARGIN), "the host disturbed the guest: it was stopped at least 0 branches too late"),
        (Trouble::Lost, "the host disturbed the guest: it was stopped at least 49936 branches too late"),
        (Trouble::Tick, "the host disturbed the guest: its TSC ticked"),
        (Trouble::Uncounted, "the host disturbed the guest: the counter was taken away for a while"),
    ] {
        let sound = 7;
        let plan = move |entry| if entry < sound { Trouble::Late(0) } else { trouble };
        let mut machine = maker.machine(&On::Host(Shared::new(plan)));
        let (_, stop, _) = finish(&mut machine);
        let why = format!("{says}, in all {TRIES_MAX} attempts");
        assert_eq!(stop, Stop::End(End::Host(why)));
        assert_eq!(machine.stats().disturbed, u64::from(TRIES_MAX) - 1);
        assert_eq!(machine.run(&Until::vtime(u64::MAX)), stop, "the machine must stay ended");
        let pool = Pool::default();
        let moment = machine.moment(&pool);
        assert_eq!(
            maker.from(&On::Soft, &moment).run(&Until::vtime(u64::MAX)),
            stop,
            "the machine must stay ended on another engine, too"
        );
    }
}

fn a_machine_that_the_host_disturbed_for_good_can_be_restored() {
    let maker = computing();
    let wrong = 7..7 + u64::from(TRIES_MAX);
    let plan = move |entry| if wrong.contains(&entry) { Trouble::Tick } else { Trouble::Late(0) };
    let mut machine = maker.machine(&On::Host(Shared::new(plan)));
    let pool = Pool::default();
    let before = machine.moment(&pool);
    let (_, stop, _) = finish(&mut machine);
    assert!(matches!(stop, Stop::End(End::Host(_))), "{stop:?}");
    machine.restore(&before).expect("its own moment");
    assert_eq!(finish(&mut machine), finish(&mut maker.machine(&On::Soft)));
}

fn a_host_that_fails_for_good_is_not_said_to_have_disturbed_the_guest() {
    let maker = computing();
    let plan = |entry| match entry {
        ..7 => Trouble::Late(0),
        7 | 8 => Trouble::Tick,
        _ => Trouble::Gone,
    };
    let mut machine = maker.machine(&On::Host(Shared::new(plan)));
    let (_, stop, _) = finish(&mut machine);
    let Stop::End(End::Host(why)) = stop else { panic!("{stop:?}") };
    assert!(why.ends_with("the counter is gone"), "{why}");
}

fn the_signals_that_hold_the_tsc_end_with_each_entry() {
    let maker = computing();
    for trouble in [Trouble::Late(MARGIN + 1), Trouble::Uncounted, Trouble::Gone] {
        let shared = Shared::new(move |entry| if entry < 7 { Trouble::Late(0) } else { trouble });
        let mut machine = maker.machine(&On::Host(shared.clone()));
        let (_, stop, _) = finish(&mut machine);
        assert!(matches!(stop, Stop::End(End::Host(_))), "{trouble:?}: {stop:?}");
        let script = shared.script();
        assert_eq!(script.asked, script.entries, "{trouble:?}");
    }
}

fn a_run_that_is_made_again_has_said_everything_once() {
    let maker = computing();
    let mut expected = maker.machine(&On::Soft);
    expected.keep_journal(true);
    let plan = |entry| if entry == 9 { Trouble::Tick } else { Trouble::Late(3) };
    let mut machine = maker.machine(&On::Host(Shared::new(plan)));
    machine.keep_journal(true);
    for machine in [&mut expected, &mut machine] {
        // The test does not take the output at this stop, so the machine still has it.
        assert_eq!(machine.run(&Until::icount(2_000_000)), Stop::Count);
        assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
        assert_eq!(machine.output().take_console(), b".....");
    }
    assert_eq!(machine.stats().disturbed, 1);
    let entries = expected.journal().expect("kept").entries().to_vec();
    assert_eq!(machine.journal().expect("kept").entries(), entries);
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(machines_that_change_their_engine_at_any_branch_have_the_trail_of_those_that_do_not),
        trial(machines_on_dev_kvm_are_those_on_the_soft_cpu),
        trial(whatever_goes_wrong_now_and_then_shows_nowhere),
        trial(whoever_executes_the_last_stretch_it_is_the_same),
        trial(each_thing_that_goes_wrong_is_seen_and_the_run_made_again),
        trial(what_goes_wrong_in_each_attempt_is_the_hosts_failure),
        trial(a_machine_that_the_host_disturbed_for_good_can_be_restored),
        trial(a_host_that_fails_for_good_is_not_said_to_have_disturbed_the_guest),
        trial(the_signals_that_hold_the_tsc_end_with_each_entry),
        trial(a_run_that_is_made_again_has_said_everything_once),
    ]
}

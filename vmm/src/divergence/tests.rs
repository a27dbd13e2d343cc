use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};

use everett_streams::BootSeed;

use super::*;
use crate::clock::NANOS;
use crate::devices::lapic::reg::TIMER_CURRENT;
use crate::digest::Breakdown;
use crate::layout::LAPIC;
use crate::leak::Leak;
use crate::machine::fake::{Defect, Op, Script};
use crate::machine::journal::EntryKind;
use crate::machine::tests::{HANDLER, busy, timer};
use crate::machine::{Machine, Stop, Until};

fn search(make: impl Fn(Side) -> Machine, horizon_ns: u64, interval_ns: u64) -> Option<Divergence> {
    let mut make = |side| Ok::<_, Infallible>(make(side));
    let Ok(found) = first_difference(&mut make, horizon_ns, interval_ns);
    found
}

#[test]
fn a_trail_repeats_and_is_independent_of_slices() {
    let mut whole = Trail::new(10_000);
    assert_eq!(whole.run(&mut busy().machine(), &Until::vtime(95_000)), Stop::Time);
    let mut sliced = Trail::new(10_000);
    let mut machine = busy().machine();
    for at in (0..=95_000).step_by(1_234) {
        sliced.run(&mut machine, &Until::vtime(at));
    }
    sliced.run(&mut machine, &Until::vtime(95_000));
    assert_eq!(whole, sliced);
    assert_eq!(whole.points().len(), 10);
    assert_eq!(whole.first_difference(&sliced), None);
}

#[test]
fn memory_is_digested_by_content() {
    let script = |value: &[Op]| {
        let mut machine = Script::new(&[value, &[Op::Work(100)]].concat(), &[]).machine();
        machine.run(&Until::icount(3));
        machine.breakdown()
    };
    let nothing = script(&[Op::Work(3)]);
    let zero = script(&[Op::Save(0x30_0000), Op::Work(2)]);
    let memory = |b: &Breakdown| b.parts.iter().find(|(name, _)| name == "memory").unwrap().1;
    assert_eq!(memory(&nothing), memory(&zero), "a page that was zeroed equals one that was never written");
    let one = script(&[Op::Work(1), Op::Save(0x30_0000), Op::Work(1)]);
    assert_ne!(memory(&one), memory(&zero));
}

#[test]
fn equal_runs_have_no_difference() {
    assert!(search(|_| busy().machine(), 100_000, 10_000).is_none());
}

#[test]
fn another_seed_differs_from_the_start() {
    let found = search(
        |side| busy().machine_with(|c| c.boot_seed = BootSeed::new(u64::from(side == Side::B))),
        100_000,
        10_000,
    )
    .unwrap();
    assert_eq!((found.icount, &found.cause), (0, &Cause::Construction));
    assert!(found.differences.iter().any(|d| d.name.starts_with("memory page")), "{found}");
}

#[test]
fn a_defect_of_the_engine_is_found_to_the_instruction() {
    // The trail has a digest every 10,000 instructions. The defective instruction is near the start, at and next to a
    // digest, and between two digests.
    for at in [7u64, 9_999, 10_000, 10_001, 31_415] {
        let make = |side| {
            let mut script = Script::new(&[Op::Work(50_000), Op::Jump(0)], &HANDLER);
            script.defect = Defect((side == Side::B).then_some(at));
            script.machine()
        };
        let found = search(make, 100_000, 10_000).unwrap();
        assert_eq!((found.icount, found.vtime), (at - 1, at - 1), "{found}");
        assert_eq!(found.cause, Cause::Execution);
        assert!(found.differences.iter().any(|d| d.name == "cpu.gpr.0 (rax)"), "{found}");
    }
}

/// Simulates host time: each call returns a new number, whichever machine calls.
fn noise() -> u32 {
    static ASKED: AtomicU32 = AtomicU32::new(1);
    let number = ASKED.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9);
    number ^ number >> 15
}

#[test]
fn host_time_in_an_mmio_read_is_found_to_the_instruction() {
    let main = [Op::Work(12_345), Op::Load(LAPIC + TIMER_CURRENT), Op::Work(1_000_000)];
    let leak = Leak { mmio: Some(noise), ..Leak::default() };
    let found =
        search(|_| Script::new(&main, &HANDLER).machine_with(|c| c.leak = leak), 100_000, 10_000).unwrap();
    assert_eq!(found.icount, 12_345, "{found}");
    let Cause::Input { a: Some(a), b: Some(b) } = found.cause else { panic!("{found}") };
    assert!(matches!(a.kind, EntryKind::Mmio { gpa, .. } if gpa == LAPIC + TIMER_CURRENT));
    assert_ne!(a.kind, b.kind);
    assert!(!found.differences.is_empty());
}

#[test]
fn a_lost_lapic_bit_is_found_to_the_instruction() {
    let mut main = timer(5_000, true);
    main.extend([Op::Sti, Op::Work(10_000_000), Op::Jump(5)]);
    let leak = Leak { lapic_bit: Some(noise), ..Leak::default() };
    let make = |_| Script::new(&main, &HANDLER).machine_with(|c| c.leak = leak);
    // Each run loses one interrupt in 64 at random. The probability that two runs agree on 10,000 interrupts is
    // negligible.
    let found = search(make, NANOS / 20, 1_000_000).unwrap();
    let Cause::Input { a, b } = &found.cause else { panic!("{found}") };
    let lost = |e: &Option<crate::machine::journal::Entry>| e.is_some_and(|e| e.icount == found.icount);
    assert!(lost(a) != lost(b), "one run took an interrupt that the other lost: {found}");
    assert_eq!((found.vtime - 3) % 5_000, 0, "at an expiry of the timer: {found}");
}

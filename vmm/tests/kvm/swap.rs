//! Clock mode `exit`: machines on the soft engine (Everett's own CPU), on the kvm engine (`/dev/kvm`) and on both by
//! turns have the same trail.

use everett_vmm::ClockMode;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::kvm::Host;
use everett_vmm::machine::MachineError;
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;

use crate::lacks::ticking_host;
use crate::lockstep::{Gates, kvm_engine_on};
use crate::rng::Rng;
use crate::small::plain_in;
use crate::trail::{EngineMaker, MachineMaker, Pace, difference};
use crate::trials::{Ran, trial};
use crate::wander;

/// Number of guests, if the environment variable `KVM_PROGRAMS` is not set. For half of the guests, the soft CPU
/// delivers exceptions and system calls in place of the host's processor ([`Gates::Closed`]).
const GUESTS: u64 = 300;
/// Digests are seven exits apart.
const PACE: Pace = Pace { step: |_| 7, swap: |rng| rng.below(12), counts_max: 700, looks_max: 100 };

/// Engine that executes a machine.
enum On<'h> {
    Soft,
    Kvm(&'h Host, Gates),
}

impl EngineMaker for On<'_> {
    fn engine(&self, ram: &Ram) -> Result<AnyEngine, MachineError> {
        Ok(match self {
            On::Soft => plain_in(ClockMode::Exit, ram),
            On::Kvm(host, gates) => kvm_engine_on(host, *gates, ram)?.into(),
        })
    }
}

fn machines_have_one_trail(gates: Gates) -> Ran {
    let (host, _ticker) = ticking_host(gates)?;
    let guests = crate::programs_or(GUESTS);
    let (mut swaps, mut interrupts, mut points) = (0, 0, 0);
    for seed in (0..guests).filter(|seed| seed & 1 == gates as u64) {
        let maker = MachineMaker { clock: ClockMode::Exit, code: wander::guest(seed) };
        let soft = maker.trail(&PACE, &[On::Soft], None);
        let kvm = maker.trail(&PACE, &[On::Kvm(&host, gates)], None);
        assert_eq!(difference(&soft, &kvm), None, "seed {seed}: the soft and the kvm engine differ");
        let both = maker.trail(&PACE, &[On::Soft, On::Kvm(&host, gates)], Some(Rng::for_case(seed, 8)));
        assert_eq!(
            difference(&soft, &both),
            None,
            "seed {seed}: the soft engine, and both engines by turns, differ"
        );
        swaps += both.swapped;
        interrupts += soft.interrupts;
        points += soft.lines.lines().count() / 3;
    }
    eprintln!(
        "{} of {guests} guests, gates {gates:?}, {points} places compared, {interrupts} interrupts, {swaps} changes of the engine",
        guests / 2
    );
    assert!(swaps > guests / 2 && interrupts > guests / 2, "too few cases for a meaningful test");
    Ok(())
}

fn machines_that_change_their_engine_have_the_trail_of_those_that_do_not() -> Ran {
    machines_have_one_trail(Gates::Open)
}

fn machines_that_change_their_engine_have_one_trail_if_the_soft_cpu_delivers() -> Ran {
    machines_have_one_trail(Gates::Closed)
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(machines_that_change_their_engine_have_the_trail_of_those_that_do_not),
        trial(machines_that_change_their_engine_have_one_trail_if_the_soft_cpu_delivers),
    ]
}

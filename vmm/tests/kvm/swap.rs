//! In clock mode `exit`, machines on either engine, and machines that alternate between both, have the same trail.

use std::fmt::Write as _;

use everett_cpu::CacheConfig;
use everett_snapshot::Pool;
use everett_vmm::ClockMode;
use everett_vmm::digest::registers::compared;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::counting::CountingEngine;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::kvm::Host;
use everett_vmm::machine::{Machine, MachineConfig, MachineError, Moment, Stop, Until};
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;
use tempfile::TempDir;

use crate::lacks::host_with;
use crate::lockstep::{Gates, kvm_engine_on, tick};
use crate::rng::Rng;
use crate::small::{DATA, config_in_exits};
use crate::trail::{Trail, difference};
use crate::trials::{Ran, trial};
use crate::wander;

/// Number of guests, if `KVM_PROGRAMS` is not set; half of them have closed gates.
const GUESTS: u64 = 300;
/// Number of exits between two digests.
const STEP: u64 = 7;
/// Number of exits after which a guest is stopped, e.g. one whose timer never lets it finish.
const EXITS_MAX: u64 = 700;

/// Engine that executes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum On {
    Soft,
    Kvm,
}

/// Makes the machines of a guest.
struct Bench<'h> {
    host: &'h Host,
    gates: Gates,
    code: Vec<u8>,
}

impl Bench<'_> {
    fn config(&self) -> (MachineConfig, TempDir) {
        config_in_exits(&self.code)
    }
    fn engine(&self, on: On, ram: &Ram) -> Result<AnyEngine, MachineError> {
        Ok(match on {
            On::Soft => {
                let soft = SoftEngine::new(ram.shared(), CacheConfig::default());
                AnyEngine::Counting(Box::new(CountingEngine::exits(soft)))
            }
            On::Kvm => AnyEngine::Kvm(Box::new(kvm_engine_on(self.host, self.gates, ram)?)),
        })
    }
    fn machine(&self, on: On) -> Machine {
        let (config, _folder) = self.config();
        Machine::new(config, |ram| self.engine(on, ram)).expect("a machine")
    }
    fn from(&self, on: On, moment: &Moment) -> Machine {
        let (config, _folder) = self.config();
        Machine::from_moment(config, moment, |ram| self.engine(on, ram)).expect("a machine")
    }

    /// Runs to the end. With `swaps`, a machine on the other engine continues at random exits.
    fn trail(&self, on: On, mut swaps: Option<Rng>) -> Trail {
        let mut machine = self.machine(on);
        let (mut on, mut trail, mut swapped) = (on, String::new(), 0);
        let pool = Pool::default();
        loop {
            let next = (machine.icount() / STEP + 1) * STEP;
            let swap = swaps.as_mut().map_or(u64::MAX, |rng| machine.icount() + rng.below(12));
            let stop = machine.run(&Until::icount(next.min(swap).min(EXITS_MAX)));
            if machine.icount() == next || stop != Stop::Count || machine.icount() >= EXITS_MAX {
                let said = machine.output().take_console();
                let _ = writeln!(
                    trail,
                    "{stop:?} at exit {}, {} ns: {:x?}\n{:?}\n{:?}",
                    machine.icount(),
                    machine.vtime(),
                    compared(ClockMode::Exit, machine.cpu()),
                    String::from_utf8_lossy(&said),
                    machine.breakdown().parts,
                );
            }
            if stop != Stop::Count || machine.icount() >= EXITS_MAX {
                break;
            }
            if machine.icount() == swap {
                on = if on == On::Soft { On::Kvm } else { On::Soft };
                let said = machine.output().take_console();
                machine = self.from(on, &machine.moment(&pool));
                machine.output().console_again(&said);
                swapped += 1;
            }
        }
        let mut memory = vec![0; 0x1_0000];
        assert_eq!(machine.read_virtual(DATA, &mut memory), memory.len());
        Trail { lines: trail, memory, swapped, disturbed: 0, interrupts: machine.cpu().gpr[15] }
    }
}

fn machines_have_one_trail(gates: Gates) -> Ran {
    let host = host_with(gates)?;
    let _ticker = tick();
    let guests = std::env::var("KVM_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(GUESTS);
    let (mut swaps, mut interrupts, mut points) = (0, 0, 0);
    for seed in (0..guests).filter(|seed| seed & 1 == gates as u64) {
        let bench = Bench { host: &host, gates, code: wander::guest(seed) };
        let soft = bench.trail(On::Soft, None);
        let kvm = bench.trail(On::Kvm, None);
        assert_eq!(difference(&soft, &kvm), None, "seed {seed}: the soft and the kvm engine differ");
        let both = bench.trail(On::Soft, Some(Rng::for_case(seed, 8)));
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

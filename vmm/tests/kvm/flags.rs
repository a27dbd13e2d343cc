//! In clock modes `exit` and `branch`, machines on a simulated processor of another make have the same trail as on the
//! soft CPU (Everett's own CPU). The values that the processor leaves in undefined status flags do not matter.

use everett_cpu::CpuState;
use everett_vmm::ClockMode;
use everett_vmm::digest::registers::{STATUS_FLAGS, compared};
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::machine::{Machine, MachineError, Stop, Until};
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;

use crate::makes::Make;
use crate::scripted::{MARGIN, Shared};
use crate::small::{DATA, config_in, plain_in};
use crate::trials::trial;
use crate::wander::{self, Also};

/// Number of guests, if the environment variable `KVM_PROGRAMS` is not set.
const GUESTS: u64 = 100;
/// Maximum number of digests of a guest. At this number the test stops the guest, because some guests never finish,
/// e.g. if their timer interrupts them too often.
const LOOKS_MAX: usize = 300;

/// Returns the number of exits or branches between two digests. In clock mode `branch`, the engine's soft CPU executes
/// up to [`MARGIN`] branches before each digest. The step is longer, so that the other processor executes the rest.
fn step(clock: ClockMode) -> u64 {
    if clock == ClockMode::Exit { 1 } else { 5 * MARGIN }
}

/// Observations of a machine.
struct Seen {
    /// Stops and digests, with the compared registers.
    looks: Vec<String>,
    /// Status flags at each digest.
    flags: Vec<u64>,
    memory: Vec<u8>,
}

/// Runs a guest to its end, with a digest every [`step`].
fn run(clock: ClockMode, code: &[u8], engine: impl Fn(&Ram) -> Result<AnyEngine, MachineError>) -> Seen {
    let (config, _folder) = config_in(clock, code);
    let mut machine = Machine::new(config, |ram| engine(ram)).expect("a machine");
    let (mut looks, mut flags) = (Vec::new(), Vec::new());
    loop {
        let stop = machine.run(&Until::icount(machine.icount() + step(clock)));
        let cpu: CpuState = machine.cpu();
        flags.push(cpu.rflags & STATUS_FLAGS);
        let said = machine.output().take_console();
        looks.push(format!(
            "{stop:?} at {}, {} ns, {said:?}: {}\n{:x?}",
            machine.icount(),
            machine.vtime(),
            machine.digest(),
            compared(clock, cpu),
        ));
        if stop != Stop::Count || looks.len() >= LOOKS_MAX {
            break;
        }
    }
    let mut memory = vec![0; 0x1_0000];
    assert_eq!(machine.read_virtual(DATA, &mut memory), memory.len());
    Seen { looks, flags, memory }
}

fn other_makes_have_the_same_trail(clock: ClockMode) {
    let guests = crate::programs_or(GUESTS);
    let (mut looks, mut shown, mut replaced) = (0, 0, 0);
    for seed in 0..guests {
        let code = wander::guest_that(seed, Also::LeaveUndefined);
        let plain = run(clock, &code, |ram| Ok(plain_in(clock, ram)));
        for make in [Make::Inverted, Make::Noisy, Make::Amd] {
            let shared = Shared::sound(seed);
            let other = run(clock, &code, |ram| {
                let engine = match clock {
                    ClockMode::Branch => shared.engine_of(ram, make, seed)?,
                    _ => shared.exits_of(ram, make, seed)?,
                };
                Ok(engine.into())
            });
            let parted = plain.looks.iter().zip(&other.looks).find(|(plain, other)| plain != other);
            assert_eq!(parted, None, "seed {seed}, {make:?}");
            assert_eq!((plain.looks.len(), &plain.memory), (other.looks.len(), &other.memory), "seed {seed}");
            looks += other.looks.len();
            shown += plain.flags.iter().zip(&other.flags).filter(|(plain, other)| plain != other).count();
            replaced += shared.script().replaced;
        }
    }
    eprintln!("{guests} guests, {replaced} flags replaced; other flags at {shown} of {looks} places");
    assert!(replaced > guests * 10 && shown as u64 > guests, "too few cases for a meaningful test");
}

fn another_make_of_processor_has_the_same_trail_in_exits() {
    other_makes_have_the_same_trail(ClockMode::Exit);
}

fn another_make_of_processor_has_the_same_trail_in_branches() {
    other_makes_have_the_same_trail(ClockMode::Branch);
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(another_make_of_processor_has_the_same_trail_in_exits),
        trial(another_make_of_processor_has_the_same_trail_in_branches),
    ]
}

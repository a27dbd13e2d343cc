//! A panic in the engine's own code ends its machine with the panic's message. Other machines continue.

use everett_assembler::*;
use everett_cpu::{CacheConfig, Code};
use everett_snapshot::Pool;
use everett_vmm::clock::ClockMode;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::End;
use everett_vmm::{Machine, Stop, Until};

use crate::guest::{UART, assemble, machine_on, out};

/// Message of the planted panic.
const MESSAGE: &str = "a planted panic of CPUID";
/// Number of iterations of the guest's loop. The CPU has translated the loop long before the panic.
const ROUNDS: u32 = 20_000;
/// CPUID panics at this instruction count and later.
const FROM: u64 = 60_000;

/// Returns a guest that executes CPUID in each iteration, prints a dot every 256 iterations, and finally halts for
/// ever.
fn guest() -> Vec<u8> {
    assemble(|a| {
        let (again, quiet) = (a.create_label(), a.create_label());
        a.mov(r12d, ROUNDS)?;
        a.set_label(again)?;
        a.xor(eax, eax)?;
        a.xor(ecx, ecx)?;
        a.cpuid()?;
        a.add(r13, rbx)?;
        a.test(r12d, 0xff)?;
        a.jnz(quiet)?;
        out(a, UART, u32::from(b'.'))?;
        a.set_label(quiet)?;
        a.dec(r12d)?;
        a.jnz(again)?;
        a.cli()?;
        a.hlt()
    })
}

fn caches(clock: ClockMode, translate_after: Option<u32>) -> CacheConfig {
    AnyEngine::soft_caches(clock, CacheConfig { translate_after, ..CacheConfig::default() })
}

/// Returns a machine in this clock mode whose CPU uses `code`, a cache of decoded and translated code.
fn machine(clock: ClockMode, code: &Code) -> Machine {
    machine_on(clock, &guest(), |ram| SoftEngine::sharing(ram.shared(), code))
}

fn plant(machine: &mut Machine) {
    machine.engine_mut().soft_mut().unwrap().leak_panic(Some(FROM));
}

fn translated(machine: &mut Machine) -> u64 {
    machine.engine_mut().soft_mut().unwrap().blocks_translated()
}

/// Translated code calls handlers, i.e. functions of Everett. A panic in a handler must be caught there, because
/// unwinding through translated code would abort the process.
#[test]
fn a_panic_in_a_handler_ends_the_machine_with_its_message() {
    let failed = End::Engine(MESSAGE.to_owned());
    for clock in [ClockMode::Insn, ClockMode::Exit, ClockMode::Branch] {
        for translate_after in [Some(2), None] {
            let code = Code::new(caches(clock, translate_after));
            let mut machine = machine(clock, &code);
            let before = machine.moment(&Pool::default());
            plant(&mut machine);
            for _ in 0..2 {
                assert_eq!(machine.run(&Until::vtime(u64::MAX)), Stop::End(failed.clone()), "{clock:?}");
            }
            assert_eq!(translated(&mut machine) > 0, translate_after.is_some());
            // The machine has ended with the panic. Taking a digest, taking a moment and restoring a moment do not
            // change this end.
            machine.digest();
            let after = machine.moment(&Pool::default());
            machine.restore(&before).unwrap();
            assert_eq!(machine.end(), Some(&failed), "a CPU that has panicked is never used again");

            // Another machine shares the cache `code` and continues from the moment `before`. Its end and its digest
            // equal those of a machine that has its own cache and runs from the beginning.
            let mut other = self::machine(clock, &code);
            other.restore(&before).unwrap();
            assert_eq!(other.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
            let mut fresh = self::machine(clock, &Code::new(caches(clock, translate_after)));
            assert_eq!(fresh.run(&Until::vtime(u64::MAX)), Stop::End(End::HaltedForever));
            assert_eq!(other.digest(), fresh.digest());
            other.restore(&after).unwrap();
            assert_eq!(other.run(&Until::vtime(u64::MAX)), Stop::End(failed.clone()));
        }
    }
    assert_eq!(
        failed.to_string(),
        "engine failure, a defect of Everett: panicked with \"a planted panic of CPUID\""
    );
}

/// In lockstep, a second CPU, which only interprets, checks the first. In this test, only the second CPU panics.
#[test]
fn a_panic_in_lockstep_is_a_failure_of_the_engine() {
    for clock in [ClockMode::Insn, ClockMode::Exit, ClockMode::Branch] {
        let caches = caches(clock, Some(2));
        let run = |from: Option<u64>| {
            let mut machine = machine_on(clock, &guest(), |ram| {
                let mut soft = SoftEngine::sharing(ram.shared(), &Code::new(caches));
                soft.run_in_lockstep(caches);
                soft.leak_panic_in_lockstep(from);
                soft
            });
            let ends: [Stop; 2] = std::array::from_fn(|_| machine.run(&Until::vtime(u64::MAX)));
            assert_eq!(ends[0], ends[1], "{clock:?}");
            ends[0].clone()
        };
        assert_eq!(run(Some(FROM)), Stop::End(End::Engine(MESSAGE.to_owned())), "{clock:?}");
        assert_eq!(run(None), Stop::End(End::HaltedForever), "{clock:?}");
    }
}

#[test]
fn a_planted_panic_that_is_never_reached_changes_nothing() {
    let run = |from: Option<u64>| {
        let mut machine = machine(ClockMode::Insn, &Code::new(caches(ClockMode::Insn, Some(2))));
        machine.engine_mut().soft_mut().unwrap().leak_panic(from);
        machine.run(&Until::vtime(u64::MAX));
        machine.digest()
    };
    assert_eq!(run(None), run(Some(u64::MAX)));
}

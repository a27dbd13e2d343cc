//! A guest that moves between the soft engine (Everett's own CPU) and the kvm engine (`/dev/kvm`) at its exits ends in
//! the same state as a guest that stays on one engine.

use std::sync::Arc;

use everett_cpu::CacheConfig;
use everett_cpu::Request;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::engine::{Engine, Exit, Until};
use libtest_mimic::Trial;
use vm_memory::{Bytes, GuestAddress};

use crate::ground::{END, Guest, RAM_BYTES};
use crate::lacks::{Lacks, ticking_host};
use crate::lockstep::{Gates, Memory, bytes, comparable, difference, kvm_engine, memory, memory_difference};
use crate::program::program;
use crate::trials::{Ran, trial};

/// Number of programs. For half of the programs, the kvm engine delivers exceptions and system calls on its own soft
/// CPU, in place of the host's processor ([`Gates::Closed`]).
const PROGRAMS: u64 = 200;
const EXITS_MAX: usize = 300;

/// Runs until the guest is between two instructions, just after a device access. Returns false if the guest has ended
/// or has had [`EXITS_MAX`] exits.
fn leg(engine: &mut dyn Engine, exits: &mut usize) -> bool {
    loop {
        let mut exit = engine.run(Until { icount: u64::MAX, ..Until::default() });
        loop {
            *exits += 1;
            let end = matches!(exit, Exit::Device(Request::MmioWrite { gpa: END, .. }));
            match exit {
                Exit::Device(Request::MmioRead { gpa, .. }) => {
                    engine.complete_read(gpa.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                }
                Exit::Device(Request::PioRead { port, .. }) => engine.complete_read(u64::from(port) * 77),
                Exit::Device(Request::MmioWrite { .. }) => {}
                Exit::Device(Request::PioWrite { .. }) => {}
                Exit::Halt if engine.interruptible() => {
                    engine.interrupt(0x55);
                    break;
                }
                _ => return false,
            }
            exit = engine.run(Until { icount: engine.icount() + 1, ..Until::default() });
            if exit == Exit::Count {
                return !end && *exits < EXITS_MAX;
            }
        }
    }
}

fn soft(memory: &Memory, guest: &Guest) -> SoftEngine {
    let mut engine = SoftEngine::new(Arc::clone(memory), CacheConfig::default());
    engine.set_state(&guest.state);
    engine
}

fn a_guest_that_moves_ends_as_one_that_stays(gates: Gates) -> Ran {
    let (host, _ticker) = ticking_host(gates)?;
    let lacks = Lacks::of(&host, gates);
    for seed in (0..PROGRAMS).filter(|seed| seed >> 1 & 1 == gates as u64) {
        let guest = program(seed, seed & 1 == 1, lacks);
        let stays = memory();
        stays.write_slice(&guest.ram, GuestAddress(0)).unwrap();
        let mut one = soft(&stays, &guest);
        let mut exits = 0;
        while leg(&mut one, &mut exits) {}

        let moves = memory();
        moves.write_slice(&guest.ram, GuestAddress(0)).unwrap();
        let mut on_soft = soft(&moves, &guest);
        let mut on_kvm = kvm_engine(&host, gates, &moves);
        let pages: Vec<u64> = (0..RAM_BYTES as u64 / 4096).collect();
        let (mut other_exits, mut n) = (0, 0u64);
        loop {
            // Before the next `leg`, the other engine gets the state and drops what it has cached of the memory.
            let (from, to): (&mut dyn Engine, &mut dyn Engine) =
                if n.is_multiple_of(2) { (&mut on_soft, &mut on_kvm) } else { (&mut on_kvm, &mut on_soft) };
            if !leg(from, &mut other_exits) {
                let (a, b) = (comparable(one.state()), comparable(from.state()));
                let differs =
                    difference(&a, &b).or_else(|| memory_difference(&bytes(&stays), &bytes(&moves)));
                assert_eq!((exits, differs), (other_exits, None), "seed {seed}");
                break;
            }
            to.memory_replaced(&pages);
            to.set_state(&from.state());
            n += 1;
        }
    }
    Ok(())
}

fn a_guest_that_moves_from_soft_to_kvm_and_back_ends_as_one_that_stays() -> Ran {
    a_guest_that_moves_ends_as_one_that_stays(Gates::Open)
}

fn a_guest_that_moves_ends_as_one_that_stays_if_the_soft_cpu_delivers() -> Ran {
    a_guest_that_moves_ends_as_one_that_stays(Gates::Closed)
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(a_guest_that_moves_from_soft_to_kvm_and_back_ends_as_one_that_stays),
        trial(a_guest_that_moves_ends_as_one_that_stays_if_the_soft_cpu_delivers),
    ]
}

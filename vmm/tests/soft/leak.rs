//! Tests of the bisection, which finds the first instruction at which two runs differ. In one of two runs, the CPU
//! keeps stale TLB entries (a planted defect), and the bisection must find the instruction that used a stale entry. In
//! a world, the bisection must find planted differences of the wire and of a node's clock.

use std::convert::Infallible;

use everett_assembler::*;
use everett_fault::{Links, NetworkFault};
use everett_vmm::digest::Digest;
use everett_vmm::divergence::bisect::Subject;
use everett_vmm::divergence::{Cause, Side, first_difference};
use everett_vmm::machine::{Machine, Stop, Until};
use everett_vmm::world::{World, WorldStop, WorldUntil};

use crate::guest::{DATA, assemble, plain};
use crate::plan::{trio, world};

/// Address of the page directory for the third GiB, one of the boot page tables.
const DIRECTORY: u64 = 0xd000;
/// Guest-virtual address of a 2 MiB page in that directory. Only the test uses it.
const WINDOW: u64 = 0x8000_0000;
/// Offset in the window at which the guest reads. No other code or data of the guest uses the TLB entry of this
/// address.
const OFFSET: i32 = 0x5000;

/// Returns a guest that reads memory through a window, maps the window to another address without a flush, and reads
/// again with instruction [`LOOKS_AGAIN`]. A CPU without stale TLB entries then reads the zeroes at the new address.
fn revoking() -> Vec<u8> {
    assemble(|a| {
        let wait = a.create_label();
        a.mov(rsi, DATA)?;
        a.mov(qword_ptr(rsi + OFFSET), 0x1111)?;
        a.mov(rdi, DIRECTORY)?;
        a.mov(rbx, WINDOW)?;
        // Maps the window to the 2 MiB at DATA: present, writable, large.
        a.mov(rax, DATA | 0x83)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mov(rcx, 50_000u64)?;
        a.set_label(wait)?;
        a.add(rdx, qword_ptr(rbx + OFFSET))?;
        a.dec(rcx)?;
        a.jnz(wait)?;
        // Maps the window to zeroes at another address.
        a.mov(rax, 0x1c0_0083u64)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mov(r9, qword_ptr(rbx + OFFSET))?;
        a.nop()?;
        a.hlt()
    })
}

/// Number of instructions before the one that reads the window again.
const LOOKS_AGAIN: u64 = 7 + 3 * 50_000 + 2;

#[test]
fn a_stale_translation_is_found_to_the_instruction() {
    let code = revoking();
    for interval in [1_000, 40_000, 1_000_000] {
        let mut make = |side| {
            let mut machine = plain(&code);
            machine.engine_mut().soft_mut().unwrap().leak_stale_translations(side == Side::B);
            Ok::<_, Infallible>(machine)
        };
        let Ok(found) = first_difference(&mut make, 1_000_000, interval);
        let found = found.expect("the stale entry makes a difference");
        assert_eq!((found.icount, &found.cause), (LOOKS_AGAIN, &Cause::Execution), "{found}");
        let register = found.differences.iter().find(|d| d.name == "cpu.gpr.9 (r9)").expect("R9 differs");
        assert_eq!((register.a.as_str(), register.b.as_str()), ("0x0", "0x1111"));
    }
}

#[test]
fn a_sound_engine_shows_the_new_place() {
    let code = revoking();
    let mut make = |_| Ok::<_, Infallible>(plain(&code));
    let Ok(found) = first_difference(&mut make, 1_000_000, 100_000);
    assert!(found.is_none());
}

/// A world of three nodes. At the vtime in `flaw`, its wire becomes slow or the clock of node 2 begins to drift.
struct Flawed {
    world: World,
    flaw: Option<(u64, Flaw)>,
}

#[derive(Debug, Clone, Copy)]
enum Flaw {
    Wire,
    Clock,
}

impl Subject for Flawed {
    fn run(&mut self, node: usize, until: &Until) -> Stop {
        loop {
            let flaw = self.flaw.filter(|(at, _)| *at > self.world.vtime());
            let vtime = flaw.map_or(until.vtime, |(at, _)| at.min(until.vtime));
            let stop = self.world.run(&WorldUntil { vtime, port_lines: 0, node, icount: until.icount });
            match (stop, flaw) {
                (WorldStop::Time, Some((at, flaw))) if at == vtime => match flaw {
                    Flaw::Wire => {
                        let slow = NetworkFault::Bandwidth { links: Links::all(), bits_per_s: 1_000_000 };
                        self.world.wire().apply(1, &slow, at).unwrap();
                    }
                    Flaw::Clock => self.world.drift(2, 100),
                },
                (WorldStop::Time, _) => return Stop::Time,
                (WorldStop::Node { stop, .. }, _) => return stop,
            }
            if vtime == until.vtime {
                return Stop::Time;
            }
        }
    }
    fn retired(&self, node: usize) -> u64 {
        self.world.nodes()[node].retired()
    }
    fn world_ns(&self, node: usize, vtime: u64) -> u64 {
        self.world.nodes()[node].clock().world(vtime)
    }
    fn nodes(&self) -> usize {
        self.world.nodes().len()
    }
    fn machine(&mut self, node: usize) -> &mut Machine {
        self.world.node_mut(node).machine_mut()
    }
    fn digest(&mut self) -> Digest {
        self.world.digest()
    }
    fn between(&self) -> Vec<(String, Digest)> {
        self.world.between()
    }
}

#[test]
fn a_difference_between_machines_is_named() {
    const AT: u64 = 777_777;
    for (flaw, named) in [(Flaw::Wire, "the wire"), (Flaw::Clock, "n2: clock and power")] {
        let mut make = |side| {
            let flaw = (side == Side::B).then_some((AT, flaw));
            Ok::<_, Infallible>(Flawed { world: world(trio()), flaw })
        };
        let Ok(found) = first_difference(&mut make, 2_000_000, 500_000);
        let found = found.expect("the runs differ");
        assert_eq!((found.cause, found.vtime), (Cause::Between, AT));
        assert_eq!(found.differences.iter().map(|part| &*part.name).collect::<Vec<_>>(), [named]);
    }
}

//! The same small guests on `/dev/kvm` and on the soft CPU, in lockstep.
//!
//! Programs of random pieces run in ring 0 and in ring 3 on both engines. At each exit the guest's wish must be the same, and
//! when the instruction is finished, so must be all registers; at the end, so must be memory, and what was written must have
//! been reported. One vCPU serves many programs, so that what one left behind would show in the next.
//!
//! - [`ground`]: tables, handlers, memory; [`program`]: the pieces; [`lacks`]: those that a host cannot run
//! - [`lockstep`]: running and comparing; [`moves`]: a guest that moves between the engines
//! - [`machines`]: whole machines on the kvm engine; [`swap`]: machines that change their engine; [`wander`]: random guests for them;
//!   [`trail`]: what they did
//! - [`branches`]: machines in clock mode `branch`, on a host that is [`scripted`] and needs no `/dev/kvm`, and on one
//!   with a soft CPU [`beside`] it, which counts
//! - [`gates`]: what goes through a gate, where the soft CPU does that; [`tables`]: page tables that change
//! - [`unfinished`]: instructions of several exits, and states that replace one within; [`ends`]: other ends of a run
//!
//! Left out, because processors or hosts differ: CPUID, RDTSC, RDRAND and what else the model hides; flags that the manual
//! leaves undefined; the last x87 instruction's addresses; accessed and dirty bits of page tables.
//!
//! `KVM_PROGRAMS` sets how many there are. Without `/dev/kvm` the tests say so and pass.

mod beside;
mod branches;
#[allow(dead_code, reason = "shared with the CPU's tests, which use all of it")]
#[path = "../../../cpu/tests/soup/ground.rs"]
mod common;
mod ends;
mod gates;
mod ground;
mod lacks;
mod lockstep;
mod machines;
mod moves;
mod program;
#[allow(dead_code, reason = "shared with the CPU's oracle, which uses all of it")]
#[path = "../../../cpu/tests/oracle/rng.rs"]
mod rng;
mod scripted;
#[allow(dead_code, reason = "shared with the tests of the soft engine, which use all of it")]
#[path = "../soft/guest.rs"]
mod small;
mod swap;
mod tables;
mod trail;
mod unfinished;
mod wander;

use everett_vmm::kvm::Host;

/// The host's KVM, or nothing after a line that says why.
fn host() -> Option<Host> {
    match Host::open() {
        Ok(host) => Some(host),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

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
//! - [`flags`]: machines on a processor of another make, which leaves other values in undefined status flags ([`makes`]); [`kernel`]: a stock
//!   kernel there
//! - [`gates`]: what goes through a gate, where the soft CPU does that; [`tables`]: page tables that change
//! - [`unfinished`]: instructions of several exits, and states that replace one within; [`ends`]: other ends of a run
//! - [`registers`]: states go into a vCPU and come out; [`counter`]: the processor's counter of branches
//! - [`trials`]: tests that the host may be unable to run
//!
//! Left out, because processors or hosts differ: CPUID, RDTSC, RDRAND and what else the model hides; flags that the manual
//! leaves undefined; the last x87 instruction's addresses; accessed and dirty bits of page tables. Machines are compared by the rule of
//! their clock mode (`digest::registers`).
//!
//! `KVM_PROGRAMS` sets how many there are. A test that needs something that the host lacks (`/dev/kvm`, a counter, registers that
//! survive a shutdown, an instruction) is *ignored*, with what is lacking as the reason. None passes without having run.

mod beside;
mod branches;
#[allow(dead_code, reason = "shared with the CPU's tests, which use all of it")]
#[path = "../../../cpu/tests/soup/ground.rs"]
mod common;
mod counter;
mod ends;
#[allow(dead_code, reason = "shared with the CPU's oracle, which uses all of it")]
#[path = "../../../cpu/tests/oracle/flag.rs"]
mod flag;
mod flags;
mod gates;
mod ground;
mod kernel;
mod lacks;
mod lockstep;
mod machines;
mod makes;
mod moves;
mod program;
mod registers;
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
mod trials;
#[allow(dead_code, reason = "shared with the CPU's oracle, which uses all of it")]
#[path = "../../../cpu/tests/oracle/undefined.rs"]
mod undefined;
mod unfinished;
mod wander;

use std::path::Path;
use std::process::ExitCode;

use everett_vmm::kvm::Host;
use libtest_mimic::{Arguments, Trial};

use crate::trials::{Lacking, each_test_is_listed, trial};

/// The host's KVM.
///
/// # Errors
/// The reason why there is none that tests can use.
fn host() -> Result<Host, Lacking> {
    Host::open().map_err(Lacking::new)
}

fn no_test_is_left_out() {
    each_test_is_listed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kvm"));
}

fn trials() -> Vec<Trial> {
    let modules = [
        branches::trials,
        counter::trials,
        ends::trials,
        flags::trials,
        gates::trials,
        kernel::trials,
        lacks::trials,
        lockstep::trials,
        machines::trials,
        moves::trials,
        registers::trials,
        swap::trials,
        tables::trials,
        unfinished::trials,
    ];
    let listed = modules.into_iter().flat_map(|trials| trials());
    listed.chain([trial(no_test_is_left_out)]).collect()
}

fn main() -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

//! The same small guests on the host's processor through `/dev/kvm` (the *kvm engine*) and on Everett's own CPU (the
//! *soft engine*), in lockstep.
//!
//! Programs of random pieces run in ring 0 and in ring 3 on both engines. At each exit both guests must make the same
//! request. When the exit's instruction is finished, all registers must be equal. At the end memory must be equal, and
//! both engines must have reported all written pages. One vCPU runs many programs, so remains of one program would show
//! in the next.
//!
//! - [`ground`]: tables, handlers, memory; [`program`]: the pieces; [`lacks`]: pieces that a host executes wrongly
//! - [`lockstep`]: execution and comparison; [`moves`]: a guest that moves between the engines
//! - [`machines`]: whole machines on the kvm engine; [`swap`]: machines that change their engine; [`wander`]: random
//!   guests for these machines; [`trail`]: makes the machines, observes them and compares the observations
//! - [`branches`]: machines in clock mode `branch`, on a simulated host ([`scripted`]) that needs no `/dev/kvm`, and on
//!   `/dev/kvm`, where a soft CPU counts the branches in place of the host's counter ([`beside`])
//! - [`flags`]: machines on a processor of another make ([`makes`]), which leaves other values in undefined status
//!   flags; [`kernel`]: a stock kernel on that processor
//! - [`gates`]: exceptions, interrupts and system calls that the soft CPU delivers; [`tables`]: page tables that change
//! - [`resume`]: RFLAGS.RF after exits; [`queued`]: instructions that access a device and then raise an exception
//! - [`unfinished`]: instructions that take several exits, and states that are loaded in the middle of an instruction;
//!   [`ends`]: runs that end without an exit
//! - [`registers`]: states are loaded into a vCPU and read back; [`counter`]: the processor's counter of branches
//! - [`trials`]: tests that the host may be unable to run
//!
//! Processors or hosts differ in the following features, so programs leave them out: CPUID; RDTSC; RDRAND and other
//! features that the CPU model hides; flags that the manual leaves undefined, also x87 condition codes; RCPPS, RSQRTPS
//! and the x87 functions, which each make approximates in its own way; data breakpoints at MOV SS; CR8; bits 19:16 of
//! LAR's result; the last x87 instruction's addresses; accessed and dirty bits of page tables. When tests compare whole
//! machines, they compare the registers that digests cover in the clock mode of the machines (`digest::registers`).
//!
//! The environment variable `KVM_PROGRAMS` sets the number of programs. If the host lacks something that a test
//! needs (`/dev/kvm`, a counter, registers that survive a shutdown, an instruction), the test is *ignored*, with the
//! missing feature as the reason. A test passes only if it has run.

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
mod queued;
mod registers;
mod resume;
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

use everett_input::causes::with_causes;
use everett_vmm::kvm::Host;
use libtest_mimic::{Arguments, Trial};

use crate::trials::{Lacking, each_test_is_listed, trial};

/// Returns the host's KVM.
///
/// # Errors
/// Returns the reason why tests cannot use it.
fn host() -> Result<Host, Lacking> {
    Host::open().map_err(|error| Lacking::new(with_causes(&error)))
}

/// Returns the number of programs or guests: the value of the environment variable `KVM_PROGRAMS`, or `default` if it
/// is not set.
fn programs_or(default: u64) -> u64 {
    number_or("KVM_PROGRAMS", default)
}

/// Returns the number in an environment variable, or `default` if the variable is not set.
///
/// # Panics
/// Panics if the variable's value is not a number.
fn number_or(variable: &str, default: u64) -> u64 {
    let Some(value) = std::env::var_os(variable) else { return default };
    let number = value.to_str().and_then(|value| value.parse().ok());
    number
        .unwrap_or_else(|| panic!("the environment variable {variable} is {value:?}, and a number is needed"))
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
        queued::trials,
        registers::trials,
        resume::trials,
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

//! Tests of how Everett uses this host. If the host lacks a capability that a test needs, the test is *ignored*, with
//! the reason.

mod agent;
#[path = "../cmd/cases.rs"]
mod cases;
#[path = "../../../vmm/tests/kvm/trials.rs"]
mod trials;
mod without_apt;

use std::path::Path;
use std::process::ExitCode;

use everett_host::doctor;
use everett_host::doctor::kvm::guest::{Guest, Ring};
use everett_host::doctor::kvm::host::{End, Host as _};
use everett_host::doctor::kvm::real::Real;
use everett_input::causes::with_causes;
use everett_vmm::kvm::Host;
use libtest_mimic::Arguments;

use trials::{Lacking, Ran, each_test_is_listed, trial};

/// Everett ends an endless guest after a fixed number of timer signals, and not after a fixed time. While a thread is
/// not scheduled, at most one signal is pending for it. On a slow host, signals are therefore lost, and the guest ends
/// later.
fn a_guest_that_does_not_end_is_ended() -> Ran {
    let opened = Host::open().map_err(|error| Lacking::new(with_causes(&error)));
    let mut host = Real::new(opened?);
    for ring in [Ring::Zero, Ring::Three] {
        // jmp to itself
        let ran = host.run(&Guest::new("endless", ring, &[0xeb, 0xfe])).unwrap();
        assert_eq!(ran.end, End::TimedOut, "{ring:?}");
    }
    Ok(())
}

/// Runs the command lines in `tests/cmd/inexact`. Their expected outputs hold for hosts whose `/dev/kvm` is not exact.
fn command_lines_where_kvm_is_not_exact() -> Ran {
    if doctor::examine().unproven.is_empty() {
        return Err(Lacking::new("/dev/kvm is exact on this host"));
    }
    cases::run("tests/cmd/inexact");
    Ok(())
}

fn no_test_is_left_out() {
    each_test_is_listed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host"));
}

fn main() -> ExitCode {
    let trials = vec![
        trial(a_guest_that_does_not_end_is_ended),
        trial(command_lines_where_kvm_is_not_exact),
        trial(agent::the_recorded_tools_build_the_recorded_agent),
        trial(without_apt::a_root_without_apt_runs_the_same_world),
        trial(no_test_is_left_out),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

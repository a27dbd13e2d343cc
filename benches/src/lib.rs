//! Parts that benches share.
//!
//! A bench in `benches/` measures Everett on one host and prints medians. Where there are peers, i.e. comparable
//! programs such as QEMU, it measures them in the same run and also prints ratios. Benches are measurements, not tests:
//! they do not fail when a figure is bad.
//!
//! - [`browser`]: headless browser that opens the report's page
//! - [`debian`]: Debian guest, and the programs that it runs
//! - [`everett`]: lets a bench start its own program as `everett`, because cargo builds no `everett` for benches
//! - [`figures`]: collects measurements and prints their medians
//! - [`guest`]: small guest that dirties pages
//! - [`host`]: processor, memory, CPU time and caches of the host
//! - [`instant`]: simulated processor that takes no time, to measure only the work of the kvm engine, i.e. of the code
//!   that runs guests through KVM
//! - [`marks`]: parses the lines by which a guest says that a workload begins or ends
//! - [`night`]: measures the explorer's search. It executes no branch, but computes each branch's result from the path
//! - [`peer`]: runs the peers

pub mod browser;
pub mod debian;
pub mod everett;
pub mod figures;
pub mod guest;
pub mod host;
pub mod instant;
pub mod marks;
pub mod night;
pub mod peer;

pub use figures::{Figure, Pairs, Report, Samples};

use std::error::Error;
use std::process::ExitCode;

use everett_input::causes::with_causes;

/// Returns the exit code of a bench. If there was an error, prints it in one line and returns 2.
pub fn end<E: Into<Box<dyn Error>>>(bench: &str, result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{bench}: {}", with_causes(error.into().as_ref()));
            ExitCode::from(2)
        }
    }
}

/// Options of every bench.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Number of rounds. Each round measures every engine and peer once.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Cargo passes this.
    #[arg(long, hide = true)]
    pub bench: bool,
}

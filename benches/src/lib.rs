//! Shared parts of the benches: options, samples and their medians, and printing of figures.
//!
//! A bench under `benches/` measures Everett on one host, and prints medians. Where there are peers, it measures them
//! in the same run and prints ratios, too. No figure is compared with a bound: these are measurements, not tests.
//!
//! - [`figures`]: samples and reports; [`host`]: memory, CPU time and caches of the host
//! - [`guest`]: a small guest that dirties pages; [`debian`]: a Debian guest with workloads; [`marks`]: its console marks
//! - [`peer`]: other programs that do the same job; [`everett`]: Everett as a separate process
//! - [`night`]: a scripted world for measuring the search; [`instant`]: a processor that takes no time
//! - [`browser`]: a browser for the report of a scripted world

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

pub use figures::{Figure, Report, Samples};

use std::error::Error;
use std::process::ExitCode;

use everett_input::causes::with_causes;

/// Returns the exit code of a bench. On an error, prints one line and returns 2.
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
    /// Rounds; each one measures every contestant once.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Cargo passes this.
    #[arg(long, hide = true)]
    pub bench: bool,
}

//! Parts that benches share.
//!
//! A bench in `benches/` measures Everett on one host and prints medians. Where there are peers, it measures them in
//! the same run and also prints ratios. Benches are measurements, not tests: they do not fail when a figure is bad.
//!
//! - [`browser`]: browser for the report of a scripted world
//! - [`debian`]: Debian guest with workloads
//! - [`everett`]: Everett as a separate process
//! - [`figures`]: samples and reports
//! - [`guest`]: small guest that dirties pages
//! - [`host`]: memory, CPU time and caches of the host
//! - [`instant`]: processor that takes no time
//! - [`marks`]: marks on a guest's console
//! - [`night`]: scripted world that measures the search
//! - [`peer`]: other programs that do the same job

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

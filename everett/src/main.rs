//! The `everett` program: parses arguments, runs the command and sets the exit status.

use std::process::ExitCode;

use clap::Parser;
use everett::commands::{self, Cli};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match commands::run(&cli) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            commands::report_error(&cli, &error);
            ExitCode::from(2)
        }
    }
}

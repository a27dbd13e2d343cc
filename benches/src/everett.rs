//! Runs a bench's own program as `everett`. Benches need `everett` in separate processes, but cargo builds only the
//! bench. So the bench contains the whole of `everett`, and becomes it with the option `--everett`.

use std::process::{Command, ExitCode};

use clap::Parser;
use everett::commands::{self, Cli};

/// Option that turns a bench's program into `everett`.
#[derive(Debug, Clone, clap::Args)]
pub struct AsEverett {
    /// Run as the program `everett` with these arguments
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true)]
    everett: Vec<String>,
}

impl AsEverett {
    /// If this process was started with `--everett`, runs `everett` and returns its exit code.
    #[must_use]
    pub fn run(&self) -> Option<ExitCode> {
        if self.everett.is_empty() {
            return None;
        }
        let cli = Cli::parse_from(&self.everett);
        Some(match commands::run(&cli) {
            Ok(outcome) => outcome.into(),
            Err(error) => {
                commands::report_error(&cli, &error);
                ExitCode::from(2)
            }
        })
    }
}

/// Returns a command that runs this program with these arguments.
#[must_use]
pub fn this(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.args(arguments);
    command
}

/// Returns a command that runs this program as `everett` with these arguments.
#[must_use]
pub fn everett(arguments: &[&str]) -> Command {
    let mut command = this(&["--everett", "everett"]);
    command.args(arguments);
    command
}

//! Sends the SDK lines of programs from a guest to Everett.
//!
//! Everett puts this program into a guest as `/usr/bin/ANTITHESIS_STOP_FAULTS`. Workloads call it by this name:
//!
//! ```text
//! ANTITHESIS_STOP_FAULTS SECONDS         asks for a quiet period
//! ANTITHESIS_STOP_FAULTS --collect       starts the collector in the background
//! ANTITHESIS_STOP_FAULTS --serve         runs the collector, with its socket as standard input
//! ```
//!
//! - `serve`: the collector, which opens the port to Everett and passes it to each process that connects to its socket.
//! - `files`: reading of lines that programs write to the output folder.
//! - `port`: the packets that go through the port.
//! - `quiet`: requests for quiet periods.
//!
//! This program does not interpret the lines. Everett does.
//!
//! **Invariants.** If `--collect` ends with status 0, programs can connect to the socket. A failure prints one line on
//! standard error and ends with exit status 2.

mod files;
mod port;
mod quiet;
mod serve;

use std::process::ExitCode;

/// Failure with its text: the failed action, and the reason.
#[derive(Debug)]
struct Failure(String);

/// Exit status after a failure.
const FAILED: u8 = 2;

/// Conversion of errors to a [`Failure`] that names the failed action.
trait Context<T> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: std::fmt::Display> Context<T> for Result<T, E> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("cannot {}: {error}", action())))
    }
}

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--collect"] => serve::start(),
        ["--serve"] => serve::serve(),
        [seconds] => quiet::ask(seconds),
        _ => Err(Failure("use: ANTITHESIS_STOP_FAULTS SECONDS".to_owned())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(text)) => {
            eprintln!("everett: {text}");
            ExitCode::from(FAILED)
        }
    }
}

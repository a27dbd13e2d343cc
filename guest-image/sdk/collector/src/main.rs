//! Carries what programs say through the SDK out of a guest.
//!
//! Everett puts this program into a guest at `/usr/bin/ANTITHESIS_STOP_FAULTS`, because workloads call it by that name:
//!
//! ```text
//! ANTITHESIS_STOP_FAULTS SECONDS         asks for a quiet period
//! ANTITHESIS_STOP_FAULTS --collect       starts the collector in the background
//! ANTITHESIS_STOP_FAULTS --serve         is the collector; its standard input is its socket
//! ```
//!
//! - `serve`: the collector. It holds the port to Everett and passes it to each process that connects to its socket.
//! - `files`: lines that programs write to the output folder.
//! - `port`: packets.
//! - `quiet`: requests for quiet periods.
//!
//! Not here: what a line means. Everett reads it.
//!
//! **Invariants.** When `--collect` ends with status 0, a connection to the socket does not fail. A failure is one line
//! on standard error and exit status 2.

mod files;
mod port;
mod quiet;
mod serve;

use std::process::ExitCode;

/// A failure: the action that failed, and why.
#[derive(Debug)]
struct Failure(String);

/// Exit status of a failure.
const FAILED: u8 = 2;

/// Adds the failed action to an error.
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

//! Starts a process of a container image as a container engine would, and becomes that process.
//!
//! Everett puts this program into a guest whose root filesystem is a container image, at `/run/everett/shim`. The agent
//! starts it in place of the image's programs:
//!
//! ```text
//! shim [--env NAME=VALUE]… [--user USER[:GROUP]] [--cwd FOLDER] [--volume NUMBER:PATH]…
//!      [--bind NUMBER:ro|rw:FROM:PATH]… [--tmpfs OPTIONS:PATH]… [--ulimit NAME=SOFT:HARD]… [--sysctl NAME=VALUE]…
//!      [--cap-drop NAME|ALL]… [--cap-add NAME|ALL]… -- PROGRAM [ARGUMENT]…
//! ```
//!
//! - [`options`]: the command line.
//! - [`prepare`]: what the first process of the machine does for all: `/run` from the image, volumes, the kernel's
//!   settings. [`volumes`], [`copy`]: volumes and copies of folders.
//! - [`users`]: users and groups from the image's own files.
//! - [`resolver`]: with the word `--resolver` alone, a DNS server for the names in `/etc/hosts`.
//! - [`enter`]: environment, folder, capabilities, user, and the program itself.
//!
//! Not here: policy. Everett decides what runs; the agent starts it, watches it and reports its end.
//!
//! **Invariants.** A failure is one line on standard error and exit status 125 (the environment), 126 (the program cannot
//! be executed) or 127 (there is no such program), as in container engines. The process inherits no descriptor of the
//! shim's.

mod copy;
mod enter;
mod options;
mod prepare;
mod resolver;
mod users;
mod volumes;

use std::process::ExitCode;

/// A failure: the action that failed, and why.
#[derive(Debug)]
struct Failure {
    text: String,
    status: u8,
}

/// Exit status if the environment of the program cannot be made.
const NOT_PREPARED: u8 = 125;

impl Failure {
    fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), status: NOT_PREPARED }
    }
}

/// Adds the failed action to an error.
trait Context<T> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: std::fmt::Display> Context<T> for Result<T, E> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(format!("cannot {}: {error}", action())))
    }
}

fn main() -> ExitCode {
    let failure = match run() {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    eprintln!("everett: {}", failure.text);
    ExitCode::from(failure.status)
}

/// Word that makes the shim a DNS server instead.
const RESOLVER: &str = "--resolver";

fn run() -> Result<std::convert::Infallible, Failure> {
    if std::env::args_os().nth(1).is_some_and(|word| word == RESOLVER) {
        return resolver::serve();
    }
    let options = options::Options::parse(std::env::args_os().skip(1))?;
    prepare::once(&options)?;
    enter::enter(options)
}

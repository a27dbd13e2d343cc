//! Starts a process of a container image as a container engine would, and becomes that process.
//!
//! Everett puts this program into guests whose root filesystem is a container image, as `/run/everett/shim`. The agent
//! starts it instead of the image's programs:
//!
//! ```text
//! shim [--env NAME=VALUE]… [--user USER[:GROUP]] [--cwd FOLDER] [--volume NUMBER:PATH]…
//!      [--bind NUMBER:ro|rw:FROM:PATH]… [--tmpfs OPTIONS:PATH]… [--ulimit NAME=SOFT:HARD]… [--sysctl NAME=VALUE]…
//!      [--cap-drop NAME|ALL]… [--cap-add NAME|ALL]… -- PROGRAM [ARGUMENT]…
//! ```
//!
//! - [`options`]: the command line.
//! - [`prepare`]: steps that only the first shim of a machine performs: `/run` from the image, volumes, and sysctls.
//!   [`volumes`], [`copy`]: volumes and copies of folders.
//! - [`users`]: users and groups from the image's own files.
//! - [`resolver`]: a DNS server for the names in `/etc/hosts`. The word `--resolver` as the only argument starts it.
//! - [`enter`]: environment, folder, capabilities and user of the program, and the start of the program.
//!
//! The shim has no policy. Everett decides which programs run. The agent starts them and reports their ends.
//!
//! **Invariants.** A failure prints one line on standard error. As in container engines, the exit status is 126 if the
//! program cannot be executed, 127 if it does not exist, and 125 after any other failure. The program inherits no
//! descriptor that the shim has opened.

mod copy;
mod enter;
mod options;
mod prepare;
mod resolver;
mod users;
mod volumes;

use std::process::ExitCode;

/// Failure with its text (the failed action and the reason) and the exit status.
#[derive(Debug)]
struct Failure {
    text: String,
    status: u8,
}

/// Exit status if the shim cannot set up the program's process.
const NOT_PREPARED: u8 = 125;

impl Failure {
    fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), status: NOT_PREPARED }
    }
}

/// Conversion of errors to a [`Failure`] that names the failed action.
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

/// Argument that starts a DNS server instead of a program.
const RESOLVER: &str = "--resolver";

fn run() -> Result<std::convert::Infallible, Failure> {
    if std::env::args_os().nth(1).is_some_and(|word| word == RESOLVER) {
        return resolver::serve();
    }
    let options = options::Options::parse(std::env::args_os().skip(1))?;
    prepare::once(&options)?;
    enter::enter(options)
}

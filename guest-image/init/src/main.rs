//! Supervises a service of a compose file as a container engine does, and sends it signals.
//!
//! Everett puts this program into a guest, at `/run/everett/init`, if a service of the compose file has one of the keys
//! `init`, `stop_signal` and `stop_grace_period`. The agent starts it in place of the service:
//!
//! ```text
//! init run UNIT [--init] -- PROGRAM [ARGUMENT]…     supervises PROGRAM until it ends, and ends as it did
//! init signal UNIT NUMBER                           sends the signal to the service, as `docker stop` does
//! ```
//!
//! - [`options`]: the command lines.
//! - [`supervise`]: the supervisor, and the process that becomes the service.
//! - [`deliver`]: the sending of a signal.
//! - [`record`]: the record of a running service's processes. [`processes`]: what `/proc` says about processes.
//!
//! In a container, the service would be process 1. Here it has another number, so this program arranges what process 1 has:
//! the service adopts its orphans, ignores signals that it does not catch, and takes all of its processes with it when it
//! ends. With `--init`, process 1 is the supervisor, as with docker's init (tini): it reaps orphans, and the service is an
//! ordinary process that gets the signals.
//!
//! Not here: which signal is sent, and how long Everett waits before it kills. Everett decides.
//!
//! **Invariants.**
//! - The supervisor and the service have one session and one process group, whose leader is the supervisor. By this group
//!   the agent finds the threads of a service, and kills a service that it cannot stop otherwise.
//! - The supervisor forwards no signal. One that is sent to the whole group therefore reaches the service once.
//! - The service does not outlive its supervisor, unless it became another user (prctl(2), `PR_SET_PDEATHSIG`).
//! - Exit statuses of failures are those of the shim: 125, 126 and 127.

mod deliver;
mod options;
mod processes;
mod record;
mod supervise;

use std::process::ExitCode;

use options::Options;

/// Exit status of a failure of this program, as in container engines.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let words: Result<Vec<String>, _> = std::env::args_os().skip(1).map(|word| word.into_string()).collect();
    let done = match words {
        Ok(words) => Options::parse(&words).and_then(|options| match options {
            Options::Run { unit, init, argv } => supervise::run(&unit, init, &argv),
            Options::Become { init, argv } => {
                supervise::become_service(init, &argv).map(|never| match never {})
            }
            Options::Signal { unit, number } => deliver::deliver(&unit, number),
        }),
        Err(_) => Err(String::from("wrong use of the init program: a word that is not text")),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(problem) => {
            eprintln!("everett: {problem}");
            ExitCode::from(FAILED)
        }
    }
}

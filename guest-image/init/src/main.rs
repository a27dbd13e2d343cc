//! Supervises a service of a compose file, and sends signals to the service, as container engines do.
//!
//! Everett puts this program into a guest as `/run/everett/init` if a service of the compose file has one of the keys
//! `init`, `stop_signal` and `stop_grace_period`. The agent starts this program instead of the service:
//!
//! ```text
//! init run UNIT [--init] -- PROGRAM [ARGUMENT]…     supervises PROGRAM until it ends, and ends as it did
//! init signal UNIT NUMBER                           sends the signal to the service, as `docker stop` does
//! ```
//!
//! - [`options`]: command lines.
//! - [`supervise`]: the supervisor, and the process that becomes the service.
//! - [`deliver`]: sending of a signal.
//! - [`record`]: file with the processes of a running service. [`processes`]: facts about processes from `/proc`.
//!
//! In a container, the service would be process 1. Here it has another number, so this program imitates process 1. The
//! service adopts orphans, `init signal` drops signals that the service could catch but does not, and the supervisor
//! kills the processes that the service leaves. With `--init`, the supervisor takes the part of process 1, like tini,
//! docker's init. The supervisor then reaps orphans, and the service is an ordinary process that gets all signals.
//!
//! This program has no policy. Everett decides which signal to send, and how long to wait before killing the service.
//!
//! **Invariants.**
//! - The supervisor leads a session and a process group, which also contain the service. The agent finds the threads of
//!   a service by this group. The agent also kills the group if the service does not stop otherwise.
//! - The supervisor forwards no signal. So a signal to the whole group reaches the service only once.
//! - If the supervisor ends, the kernel kills the service, unless the service changed its user (`PR_SET_PDEATHSIG`).
//! - After a failure, the exit status is 125, 126 or 127, with the same meanings as in the shim.

mod deliver;
mod options;
mod processes;
mod record;
mod supervise;

use std::process::ExitCode;

use options::Options;

/// Exit status after a failure of this program, as in container engines.
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

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
//! - [`record`]: the file in which the supervisor tells who runs. [`processes`]: what `/proc` says about processes.
//!
//! The service is the first process of a container: in a container it would have process number 1. Here it has another
//! number, and the supervisor sees to what follows from 1: it adopts orphans of the service, does not end by signals that it
//! does not catch, and takes all of its processes with it when it ends. With `--init` all of this holds for the supervisor
//! instead, as for docker's init (tini): it reaps orphans and forwards signals, and the service is an ordinary process.
//!
//! Not here: which signal is sent, and how long Everett waits before it kills. Everett decides.
//!
//! **Invariants.** The supervisor and the service have one session and one process group, whose leader is the supervisor.
//! Exit statuses of failures are those of the shim: 125, 126 and 127.

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

//! Sends signals to a service.

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::processes;
use crate::record::Record;

/// Exit status if the service does not run.
const NOT_RUNNING: u8 = 3;

/// Sends a signal to a service, by the rules for the first process
/// of a container. Returns the exit status for this program.
pub(crate) fn deliver(unit: &str, number: i32) -> Result<u8, String> {
    let Some(record) = Record::of(unit) else {
        println!("{unit} does not run");
        return Ok(NOT_RUNNING);
    };
    let forced = number == Signal::SIGKILL as i32 || number == Signal::SIGSTOP as i32;
    if !record.init && !forced && !processes::catches(record.service, number) {
        println!("{unit} does not catch signal {number}, and has no init: the signal has no effect");
        return Ok(0);
    }
    send(record.service, number)
}

/// Sends a signal to a process. Refuses real-time signals, because nix has no names for them.
fn send(to: Pid, number: i32) -> Result<u8, String> {
    let signal = Signal::try_from(number).map_err(|_| format!("there is no signal {number}"))?;
    match nix::sys::signal::kill(to, signal) {
        // The service has ended in the meantime, and its supervisor will end soon.
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(0),
        Err(error) => Err(format!("cannot send signal {number} to process {to}: {error}")),
    }
}

//! The supervisor of a service, and the process that becomes the service.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};

use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::options::{BECOME, INIT};
use crate::processes;
use crate::record::Record;

/// Path of this program's executable.
const SELF: &str = "/proc/self/exe";
/// Exit statuses that container engines use if they cannot start a program.
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// Base of the exit status of a process that a signal has ended. The signal's number is added.
const BY_SIGNAL: i32 = 128;

/// Starts a service, waits for its end, and kills the processes that it leaves. Returns this program's exit status.
pub(crate) fn run(unit: &str, init: bool, argv: &[String]) -> Result<u8, String> {
    // The nearest subreaper adopts an orphan. Without `--init`, the service is also a subreaper, and nearer.
    set_child_subreaper(true).map_err(|error| format!("cannot adopt orphans: {error}"))?;
    let all = SigSet::all();
    all.thread_block().map_err(|error| format!("cannot block signals: {error}"))?;
    let options = if init { &[BECOME, INIT, "--"][..] } else { &[BECOME, "--"] };
    let child = Command::new(SELF).args(options).args(argv).spawn();
    let mut child = child.map_err(|error| format!("cannot start the service: {error}"))?;
    let service = pid_of(&child)?;
    Record::new(service, init)?.write(unit)?;
    let status = wait(&mut child, service, init, &all)?;
    end_the_rest()?;
    Record::remove(unit);
    Ok(end_like(status, init))
}

/// Turns this process into the service. Without `init`, the service adopts its own orphans.
pub(crate) fn become_service(init: bool, argv: &[String]) -> Result<Infallible, String> {
    if !init {
        set_child_subreaper(true).map_err(|error| format!("cannot adopt orphans: {error}"))?;
    }
    // Everett may start another supervisor with its own service, so this service must not outlive its supervisor.
    set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("cannot end with the supervisor: {error}"))?;
    // The supervisor has blocked all signals, and a child inherits the blocked signals.
    SigSet::empty().thread_set_mask().map_err(|error| format!("cannot unblock signals: {error}"))?;
    let error = match argv {
        [program, rest @ ..] => Command::new(program).args(rest).exec(),
        [] => io::Error::from(io::ErrorKind::NotFound),
    };
    std::process::exit(not_started(argv, &error).into())
}

fn not_started(argv: &[String], error: &io::Error) -> u8 {
    eprintln!("everett: cannot start {}: {error}", argv.first().map_or("", String::as_str));
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_EXECUTE }
}

fn pid_of(child: &Child) -> Result<Pid, String> {
    let pid = i32::try_from(child.id()).map_err(|_| String::from("a process number above 2^31"))?;
    Ok(Pid::from_raw(pid))
}

/// Waits for the end of the service. With `init`, also reaps orphans.
fn wait(child: &mut Child, service: Pid, init: bool, all: &SigSet) -> Result<ExitStatus, String> {
    loop {
        match all.wait() {
            Ok(Signal::SIGCHLD) => {
                let ended =
                    child.try_wait().map_err(|error| format!("cannot wait for the service: {error}"))?;
                if let Some(status) = ended {
                    return Ok(status);
                }
                if init {
                    reap(service)?;
                }
            }
            // The supervisor ignores other signals. EINVAL means a real-time signal, for which nix has no name.
            Ok(_) | Err(Errno::EINVAL | Errno::EINTR) => {}
            Err(error) => return Err(format!("cannot wait for signals: {error}")),
        }
    }
}

/// Reaps the orphans that have ended.
fn reap(service: Pid) -> Result<(), String> {
    for orphan in children()? {
        if orphan != service {
            // With WNOHANG, the call does not wait for an orphan that still runs.
            let _ = waitpid(orphan, Some(WaitPidFlag::WNOHANG));
        }
    }
    Ok(())
}

/// Returns the children of this process.
fn children() -> Result<Vec<Pid>, String> {
    processes::children_of(Pid::this()).map_err(|error| format!("cannot list processes: {error}"))
}

/// Kills the processes that the service left, as a container engine does when the container's process 1 has ended. The
/// children of killed processes become children of this process, which kills them as well.
fn end_the_rest() -> Result<(), String> {
    loop {
        for process in children()? {
            // Fails if the process has ended by itself.
            let _ = kill(process, Signal::SIGKILL);
        }
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return Ok(());
        }
    }
}

/// Ends this process like the service. If signal N ended the service, N also ends this process. With `init`, or if this
/// process ignores N (Rust programs ignore SIGPIPE), the function returns the exit status 128 + N instead.
fn end_like(status: ExitStatus, init: bool) -> u8 {
    let number = match (status.code(), status.signal()) {
        (Some(code), _) => return status_of(code),
        (None, number) => number.unwrap_or_default(),
    };
    if let (false, Ok(signal)) = (init, Signal::try_from(number)) {
        let mut one = SigSet::empty();
        one.add(signal);
        // If this fails, the exit status below shows the signal.
        let _ = kill(Pid::this(), signal).and_then(|()| one.thread_unblock());
    }
    status_of(BY_SIGNAL + number)
}

/// Returns the low eight bits of a status, because an exit status has only eight.
fn status_of(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_with_init_ends_with_its_status_or_that_of_its_signal() {
        let status = |raw| end_like(ExitStatus::from_raw(raw), true);
        assert_eq!(status(7 << 8), 7);
        assert_eq!(status(15), 143);
        assert_eq!(status(34), 162, "a real-time signal");
    }
}

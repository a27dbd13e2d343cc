//! Everett's program for shells and files (`guest-image/inside/`), which only throw-away forks have.

use everett_input::text;
use everett_protocol::{Exec, Stream};

use super::fork::{Fork, ForkError, Job, Progress};
use super::frames::{self, Frame};
use super::limits::COMPLAINT_BYTES_MAX;
use super::program_copy::ProgramCopy;
use crate::guest::programs::INSIDE;

/// The program, while it runs in a machine of a fork.
pub(super) struct Program {
    job: Job,
    copy: ProgramCopy,
    /// Error output of the program, or of the shim, which starts it.
    complaint: Vec<u8>,
}

/// Progress of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// The program has written a frame.
    Frame(Frame),
    /// The fork has reached the vtime up to which the caller let it run.
    Nothing,
    /// The program has ended, and has done what it was asked for.
    Done,
}

/// Writes a copy of the program into a machine of a fork.
pub(super) fn install(fork: &mut Fork, node: usize) -> Result<ProgramCopy, ForkError> {
    let copy = ProgramCopy::first_besides(node, &fork.running_copies);
    fork.put_file(node, &copy.path(), 0o755, None, INSIDE)?;
    Ok(copy)
}

impl Program {
    /// Starts the program with a command line from [`ProgramCopy::argv`].
    pub(super) fn start(fork: &mut Fork, copy: ProgramCopy, command: Exec) -> Result<Program, ForkError> {
        let job = fork.start(copy.node(), command)?;
        fork.running_copies.insert(copy);
        Ok(Program { job, copy, complaint: Vec::new() })
    }

    /// Gives up waiting for the program, which goes on with the fork. Every caller does so at the end, also after an error.
    pub(super) fn give_up(&self, fork: &mut Fork) {
        fork.forget(self.job);
    }

    /// Lets the fork run until the program writes a frame or ends, but at most up to the vtime `until_ns`.
    pub(super) fn next(&mut self, fork: &mut Fork, until_ns: u64) -> Result<Said, ForkError> {
        loop {
            let progress = fork.next(self.job, until_ns)?;
            if matches!(progress, Progress::Ended(_)) {
                fork.running_copies.remove(&self.copy);
            }
            let output = match progress {
                Progress::Runs => return Ok(Said::Nothing),
                Progress::Ended(exit) if exit.success() => return Ok(Said::Done),
                Progress::Ended(exit) => {
                    let complaint = text::one_line(String::from_utf8_lossy(&self.complaint).trim_end());
                    let why = if complaint.is_empty() { exit.to_string() } else { complaint };
                    return Err(ForkError::Program(format!(
                        "Everett's program in the machine failed: {why}"
                    )));
                }
                Progress::Output(output) => output,
            };
            if output.stream == Stream::Stderr {
                let room = COMPLAINT_BYTES_MAX.saturating_sub(self.complaint.len());
                self.complaint.extend(output.bytes.iter().take(room));
                continue;
            }
            let line = output.bytes.strip_suffix(b"\n").unwrap_or(&output.bytes);
            return match frames::decode(line).filter(|_| !output.truncated) {
                Some(Frame::Failure(why)) => Err(ForkError::Program(why)),
                Some(frame) => Ok(Said::Frame(frame)),
                None => Err(ForkError::Program(
                    "Everett's program in the machine wrote an invalid line".to_owned(),
                )),
            };
        }
    }
}

/// Returns the error for a frame that does not fit what the program was asked for.
pub(super) fn unexpected() -> ForkError {
    ForkError::Program("Everett's program in the machine said something unexpected".to_owned())
}

//! Commands of the host: start, standard input, time limit and exit.

use std::os::fd::{AsFd as _, OwnedFd};

use everett_protocol::{Exec, Exit, Reply, Unit};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::agent::Agent;
use crate::clock::{ms, now_ns};
use crate::failure::{Context as _, Failure};
use crate::spawn::{Program, start};

/// Command that the agent has started and that has not exited yet.
pub(crate) struct Running {
    pub(crate) pid: Pid,
    /// Pipe to the command's standard input, and the bytes that the agent has not written yet.
    pub(crate) stdin: Option<(OwnedFd, Vec<u8>)>,
    /// Time at which the agent kills the command (`CLOCK_MONOTONIC`, ns).
    pub(crate) deadline_ns: Option<u64>,
}

impl Agent {
    /// Starts a command. [`Self::command_exited`] answers the request when the command has exited.
    pub(crate) fn start_command(&mut self, id: u64, exec: &Exec) -> Result<(), Failure> {
        if self.commands.contains_key(&id) {
            return Err(Failure::new(format!("the number {id} is taken by a command that still runs")));
        }
        let mut started = start(&Program {
            argv: &exec.argv,
            env: &exec.env,
            cwd: exec.cwd.as_deref(),
            user: exec.user.as_deref(),
            stdin: exec.stdin.is_some(),
            output: true,
            history: exec.history.then(|| self.ports.history.as_fd()),
        })?;
        let text = exec.stdin.clone().unwrap_or_default().into_bytes();
        let stdin = started.stdin.take().map(|pipe| (pipe, text));
        let deadline_ns = exec.limit_ms.map(|limit| now_ns() + ms(limit));
        self.commands.insert(id, Running { pid: started.pid, stdin, deadline_ns });
        self.capture(started, &Unit::Exec(id), exec.output);
        Ok(())
    }

    /// Writes more of a command's input. Closes the command's standard input after the last byte.
    pub(crate) fn feed_command(&mut self, id: u64) -> Result<(), Failure> {
        let Some(command) = self.commands.get_mut(&id) else { return Ok(()) };
        let Some((pipe, text)) = &mut command.stdin else { return Ok(()) };
        match rustix::io::write(&*pipe, text) {
            Ok(written) => {
                text.drain(..written);
                if text.is_empty() {
                    command.stdin = None;
                }
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            // The command may close its input before it has read everything. That is not a failure.
            Err(Errno::PIPE) => {
                command.stdin = None;
                Ok(())
            }
            Err(error) => {
                command.stdin = None;
                Err(error).context(|| format!("write the input of command {id}"))
            }
        }
    }

    /// Kills the process groups of all commands that have exceeded their time limit.
    pub(crate) fn tick_commands(&mut self) {
        let now_ns = now_ns();
        for command in self.commands.values_mut() {
            if command.deadline_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                command.deadline_ns = None;
                // Fails if the process has exited already. The event loop then reaps the process.
                let _ = kill_process_group(command.pid, Signal::KILL);
            }
        }
    }

    /// Handles the exit of a child. If the child was a command, answers the command's request and returns true.
    pub(crate) fn command_exited(&mut self, pid: Pid, exit: Exit) -> Result<bool, Failure> {
        let Some((&id, _)) = self.commands.iter().find(|(_, command)| command.pid == pid) else {
            return Ok(false);
        };
        self.commands.remove(&id);
        self.flush_captures(&Unit::Exec(id))?;
        self.respond(id, Reply::Exited(exit))?;
        Ok(true)
    }
}

//! Requests of the host: decoding, execution and answers.

use everett_protocol::{Message, Operation, Reply, Request, Response, decode_request};
use rustix::process::{Signal, WaitOptions, kill_process_group, waitpid};

use crate::agent::Agent;
use crate::failure::Failure;
use crate::{clock, entropy, files, listing, pack, power};

impl Agent {
    /// Handles a line that the host has sent on the control port.
    pub(crate) fn serve(&mut self, line: &[u8]) -> Result<(), Failure> {
        let Request { id, op } = match decode_request(line) {
            Ok(request) => request,
            // The request's number is unknown, so this error cannot be an answer.
            Err(error) => return self.report(&Failure::new(format!("cannot read a request: {error}"))),
        };
        match self.perform(id, op) {
            Ok(Some(reply)) => self.respond(id, reply),
            Ok(None) => Ok(()),
            Err(failure) => self.respond(id, Reply::Error { message: failure.to_string() }),
        }
    }

    /// Sends the answer to a request.
    pub(crate) fn respond(&mut self, id: u64, reply: Reply) -> Result<(), Failure> {
        self.ports.send(&Message::Response(Response { id, reply }))
    }

    /// Performs an operation. Returns the reply, or `None` if the reply follows later.
    fn perform(&mut self, id: u64, op: Operation) -> Result<Option<Reply>, Failure> {
        match op {
            Operation::Mount(mount) => self.mount(&mount)?,
            Operation::Join(join) => return self.join(&join).map(Some),
            Operation::Reseed { entropy: bytes } => entropy::reseed(&bytes.0)?,
            Operation::Start { services } => self.start_services(&services)?,
            Operation::Exec(exec) => {
                self.start_command(id, &exec)?;
                return Ok(None);
            }
            Operation::Signal { service, signal } => self.signal_service(&service, signal)?,
            Operation::Prioritize { service, priorities } => self.prioritize(&service, &priorities)?,
            Operation::PutFile(file) => files::put(&file)?,
            Operation::List { path } => return Ok(Some(Reply::Names(listing::programs(&path)?))),
            Operation::SetClock(value) => clock::set(value)?,
            Operation::Pack(what) => {
                let upper =
                    self.upper.as_ref().ok_or_else(|| Failure::new("there is no root disk to pack"))?;
                return pack::pack(&what, upper).map(Some);
            }
            Operation::Ping => {}
            Operation::PowerOff => {
                self.stop_everything();
                self.respond(id, Reply::Done)?;
                power::off();
            }
        }
        Ok(Some(Reply::Done))
    }

    /// Kills all services and commands, so that they write nothing while the kernel flushes the filesystems.
    fn stop_everything(&mut self) {
        let services = self.services.values().filter_map(|watched| watched.pid);
        let commands = self.commands.values().map(|command| command.pid);
        for pid in services.chain(commands) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

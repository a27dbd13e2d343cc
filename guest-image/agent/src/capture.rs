//! Capturing of a program's output and forwarding to the host.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use everett_protocol::limits::{EXEC_TEXT_BYTES_MAX, LOG_TEXT_BYTES_MAX};
use everett_protocol::{ExecOutput, Line, LineCutter, LineText, Message, Output, Stream, Unit};
use rustix::io::Errno;

use crate::failure::{Context as _, Failure};
use crate::ports::Ports;

/// Maximum number of bytes read from a pipe at once: a pipe's default capacity.
const READ_BYTES: usize = 64 << 10;

/// Maximum number of reads from a pipe after its program has exited: a pipe can hold up to 1 MiB (pipe(7)). Later
/// output of other programs on the same pipe waits for its turn.
const LAST_READS_MAX: usize = 16;

/// One output stream of one program.
pub(crate) struct Capture {
    pipe: OwnedFd,
    pub(crate) unit: Unit,
    stream: Stream,
    to: ExecOutput,
    cutter: LineCutter,
    closed: bool,
}

impl Capture {
    pub(crate) fn new(pipe: OwnedFd, unit: Unit, stream: Stream, to: ExecOutput) -> Self {
        let max = match to {
            ExecOutput::Control => EXEC_TEXT_BYTES_MAX,
            ExecOutput::Log => LOG_TEXT_BYTES_MAX,
        };
        Capture { pipe, unit, stream, to, cutter: LineCutter::new(max), closed: false }
    }

    /// True if the pipe is closed, so that no more output can come.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// Reads the pipe once and forwards the lines; every pipe gets its turn.
    pub(crate) fn forward(&mut self, ports: &mut Ports) -> Result<(), Failure> {
        self.forward_reads(1, ports)
    }

    /// Forwards all that an exited program has left in the pipe.
    pub(crate) fn forward_all(&mut self, ports: &mut Ports) -> Result<(), Failure> {
        self.forward_reads(LAST_READS_MAX, ports)
    }

    fn forward_reads(&mut self, reads: usize, ports: &mut Ports) -> Result<(), Failure> {
        let mut buffer = [0u8; READ_BYTES];
        for _ in 0..reads {
            if self.closed {
                break;
            }
            let mut lines = Vec::new();
            match rustix::io::read(&self.pipe, &mut buffer) {
                Ok(0) => {
                    self.cutter.finish(|line| lines.push(line));
                    self.closed = true;
                }
                Ok(length) => self.cutter.push(&buffer[..length], |line| lines.push(line)),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error).context(|| format!("read the output of {}", self.unit)),
            }
            for line in lines {
                self.send(line, ports)?;
            }
        }
        Ok(())
    }

    /// Sends later output to the log port: the command's request is answered, but its children may still print.
    pub(crate) fn outlive(&mut self) {
        self.to = ExecOutput::Log;
    }

    fn send(&self, line: Line, ports: &mut Ports) -> Result<(), Failure> {
        let Line { bytes, truncated, unfinished } = line;
        let text = LineText::from(bytes);
        let output = Output { unit: self.unit.clone(), stream: self.stream, text, truncated, unfinished };
        match self.to {
            ExecOutput::Control => ports.send(&Message::Output(output)),
            ExecOutput::Log => ports.log(&output),
        }
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

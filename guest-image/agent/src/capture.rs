//! Captures the output of programs and forwards it to the host.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use everett_protocol::limits::{EXEC_TEXT_BYTES_MAX, LOG_TEXT_BYTES_MAX};
use everett_protocol::{ExecOutput, Line, LineCutter, LineText, Message, Output, Stream, Unit};
use rustix::io::Errno;

use crate::failure::{Context as _, Failure};
use crate::ports::Ports;

/// Maximum number of bytes that one read takes from a pipe: the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// Maximum number of reads from a pipe after its program has exited. This many reads empty a full pipe of 1 MiB
/// (pipe(7)). If other programs still write to the pipe, the event loop forwards their output later.
const LAST_READS_MAX: usize = 16;

/// An output stream of a program: the pipe, and the destination of its lines.
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

    /// True if every writer has closed the pipe, so that no more output can come.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// Reads the pipe once and forwards the complete lines. One read is the limit, so that other pipes get their turn.
    pub(crate) fn forward(&mut self, ports: &mut Ports) -> Result<(), Failure> {
        self.forward_reads(1, ports)
    }

    /// Forwards all output that an exited program has left in the pipe.
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

    /// Sends later output to the log port. The request is answered by then, but the command's children may still print.
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

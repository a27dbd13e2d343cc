//! Messages to lines and back, and lines out of a stream of bytes.

use crate::check;
use crate::limits::{CONTROL_LINE_BYTES_MAX, LOG_LINE_BYTES_MAX};
use crate::message::{Message, Output};
use crate::request::Request;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Why a line or a value was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line is longer than its port allows.
    #[error("a line of {bytes} bytes on {port}; at most {max} fit")]
    TooLong {
        /// Its length, or how much of it was seen.
        bytes: usize,
        /// The bound.
        max: usize,
        /// The port's name.
        port: &'static str,
    },
    /// A line is not the JSON that belongs there.
    #[error("a line on {port} is not what belongs there: {reason}: {start}")]
    Malformed {
        /// The port's name.
        port: &'static str,
        /// What the parser says.
        reason: String,
        /// The line's first bytes, escaped.
        start: String,
    },
    /// A value is well-formed but not allowed.
    #[error(transparent)]
    Invalid(#[from] check::Error),
}

const CONTROL: &str = crate::Port::Control.name();
const LOG: &str = crate::Port::Log.name();

/// The request as a line of the control port, with its newline.
///
/// # Errors
/// The request is not allowed ([`check`]) or too long.
pub fn encode_request(request: &Request) -> Result<Vec<u8>, Error> {
    check::request(request)?;
    encode(request, CONTROL, CONTROL_LINE_BYTES_MAX)
}

/// The request in this line (without its newline).
///
/// # Errors
/// The line is too long, malformed, or the request not allowed.
pub fn decode_request(line: &[u8]) -> Result<Request, Error> {
    let request = decode(line, CONTROL, CONTROL_LINE_BYTES_MAX)?;
    check::request(&request)?;
    Ok(request)
}

/// The message as a line of the control port, with its newline.
///
/// # Errors
/// The message is not allowed ([`check`]) or too long.
pub fn encode_message(message: &Message) -> Result<Vec<u8>, Error> {
    check::message(message)?;
    encode(message, CONTROL, CONTROL_LINE_BYTES_MAX)
}

/// The message in this line (without its newline).
///
/// # Errors
/// The line is too long, malformed, or the message not allowed.
pub fn decode_message(line: &[u8]) -> Result<Message, Error> {
    let message = decode(line, CONTROL, CONTROL_LINE_BYTES_MAX)?;
    check::message(&message)?;
    Ok(message)
}

/// The output as a line of the log port, with its newline.
///
/// # Errors
/// The output is too long.
pub fn encode_output(output: &Output) -> Result<Vec<u8>, Error> {
    encode(output, LOG, LOG_LINE_BYTES_MAX)
}

/// The output in this line of the log port (without its newline).
///
/// # Errors
/// The line is too long or malformed.
pub fn decode_output(line: &[u8]) -> Result<Output, Error> {
    decode(line, LOG, LOG_LINE_BYTES_MAX)
}

fn encode<T: Serialize>(value: &T, port: &'static str, max: usize) -> Result<Vec<u8>, Error> {
    let malformed = |error: serde_json::Error| Error::Malformed {
        port,
        reason: error.to_string(),
        start: String::from("(not written)"),
    };
    let mut line = serde_json::to_vec(value).map_err(malformed)?;
    if line.len() > max {
        return Err(Error::TooLong { bytes: line.len(), max, port });
    }
    line.push(b'\n');
    Ok(line)
}

fn decode<T: DeserializeOwned>(line: &[u8], port: &'static str, max: usize) -> Result<T, Error> {
    if line.len() > max {
        return Err(Error::TooLong { bytes: line.len(), max, port });
    }
    serde_json::from_slice(line).map_err(|error| Error::Malformed {
        port,
        reason: error.to_string(),
        start: line[..line.len().min(SHOWN_BYTES)].escape_ascii().to_string(),
    })
}

/// How much of a malformed line an error shows.
const SHOWN_BYTES: usize = 80;

/// The beginning of a line, as a [`LineSplitter`] or a [`crate::LineCutter`] keeps it: all that there is to know of one
/// between two writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartialLine {
    /// The line's bytes so far.
    pub bytes: Vec<u8>,
    /// The line was too long: what comes up to its newline is passed over.
    pub skipping: bool,
}

/// Cuts a stream of bytes into lines, however the bytes arrive, within the port's bound.
///
/// A line that exceeds the bound is dropped up to its newline and reported once, as [`Error::TooLong`].
#[derive(Debug, Clone)]
pub struct LineSplitter {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were already given out.
    consumed: usize,
    /// Bytes of `buffer` that hold no newline.
    searched: usize,
    /// Inside a line that was too long.
    skipping: bool,
    port: &'static str,
    max: usize,
}

impl LineSplitter {
    /// For the control port.
    #[must_use]
    pub fn control() -> Self {
        Self::new(CONTROL, CONTROL_LINE_BYTES_MAX)
    }

    /// For the log port.
    #[must_use]
    pub fn log() -> Self {
        Self::new(LOG, LOG_LINE_BYTES_MAX)
    }

    fn new(port: &'static str, max: usize) -> Self {
        LineSplitter { buffer: Vec::new(), consumed: 0, searched: 0, skipping: false, port, max }
    }

    /// Takes bytes as they arrived. Call [`Self::next_line`] until it gives `None` before pushing more.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.searched -= self.consumed;
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, without its newline; `None` when more bytes are needed. Empty lines are passed over.
    ///
    /// # Errors
    /// [`Error::TooLong`], once for each line that is.
    pub fn next_line(&mut self) -> Option<Result<Vec<u8>, Error>> {
        loop {
            let Some(offset) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') else {
                self.searched = self.buffer.len();
                let pending = self.searched - self.consumed;
                if self.skipping {
                    self.consumed = self.searched;
                } else if pending > self.max {
                    self.consumed = self.searched;
                    self.skipping = true;
                    return Some(Err(self.too_long(pending)));
                }
                return None;
            };
            let end = self.searched + offset;
            let start = std::mem::replace(&mut self.consumed, end + 1);
            self.searched = end + 1;
            if std::mem::take(&mut self.skipping) || start == end {
                continue;
            }
            if end - start > self.max {
                return Some(Err(self.too_long(end - start)));
            }
            return Some(Ok(self.buffer[start..end].to_vec()));
        }
    }

    /// What is left when [`Self::next_line`] has given `None`: the beginning of the next line.
    #[must_use]
    pub fn partial(&self) -> PartialLine {
        PartialLine { bytes: self.buffer[self.consumed..].to_vec(), skipping: self.skipping }
    }

    /// Goes on where another splitter of the same port was.
    ///
    /// # Errors
    /// No splitter of this port could have left that: [`check::Error`] says why.
    pub fn restore(&mut self, partial: PartialLine) -> Result<(), Error> {
        let PartialLine { bytes, skipping } = partial;
        let refuse = |problem: &str| {
            let (field, problem) = (String::from(self.port), String::from(problem));
            Err(Error::Invalid(check::Error { field, problem }))
        };
        if bytes.len() > self.max {
            return Err(self.too_long(bytes.len()));
        }
        if bytes.contains(&b'\n') {
            return refuse("the beginning of a line holds a newline");
        }
        if skipping && !bytes.is_empty() {
            return refuse("bytes of a line that is passed over were kept");
        }
        (self.consumed, self.searched, self.skipping) = (0, bytes.len(), skipping);
        self.buffer = bytes;
        Ok(())
    }

    fn too_long(&self, bytes: usize) -> Error {
        Error::TooLong { bytes, max: self.max, port: self.port }
    }
}

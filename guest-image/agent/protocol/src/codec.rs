//! Encoding of requests and messages as lines, decoding of lines, and splitting of a byte stream into lines.

use crate::check;
use crate::limits::{CONTROL_LINE_BYTES_MAX, LOG_LINE_BYTES_MAX};
use crate::message::{Message, Output};
use crate::request::Request;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Reason for refusing a line or a value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line is longer than its port allows.
    #[error("a line of {bytes} bytes on {port}; at most {max} fit")]
    TooLong {
        /// Length of the line. If the line has not ended yet, the number of bytes received so far.
        bytes: usize,
        /// Longest allowed line, in bytes.
        max: usize,
        /// Name of the port.
        port: &'static str,
    },
    /// A line is not valid JSON, or its JSON does not have the expected type.
    #[error("a line on {port} is not what belongs there: {reason}: {start}")]
    Malformed {
        /// Name of the port.
        port: &'static str,
        /// Message of the JSON parser.
        reason: String,
        /// First bytes of the line, escaped.
        start: String,
    },
    /// A value is well-formed but not allowed.
    #[error(transparent)]
    Invalid(#[from] check::Error),
}

const CONTROL: &str = crate::Port::Control.name();
const LOG: &str = crate::Port::Log.name();

/// Encodes a request as a line of the control port, including its newline.
///
/// # Errors
/// Returns an error if [`check`] refuses the request or the line is too long.
pub fn encode_request(request: &Request) -> Result<Vec<u8>, Error> {
    check::request(request)?;
    encode(request, CONTROL, CONTROL_LINE_BYTES_MAX)
}

/// Decodes a line of the control port (without its newline) as a request.
///
/// # Errors
/// Returns an error if the line is too long or malformed, or if [`check`] refuses the request.
pub fn decode_request(line: &[u8]) -> Result<Request, Error> {
    let request = decode(line, CONTROL, CONTROL_LINE_BYTES_MAX)?;
    check::request(&request)?;
    Ok(request)
}

/// Encodes a message as a line of the control port, including its newline.
///
/// # Errors
/// Returns an error if [`check`] refuses the message or the line is too long.
pub fn encode_message(message: &Message) -> Result<Vec<u8>, Error> {
    check::message(message)?;
    encode(message, CONTROL, CONTROL_LINE_BYTES_MAX)
}

/// Decodes a line of the control port (without its newline) as a message.
///
/// # Errors
/// Returns an error if the line is too long or malformed, or if [`check`] refuses the message.
pub fn decode_message(line: &[u8]) -> Result<Message, Error> {
    let message = decode(line, CONTROL, CONTROL_LINE_BYTES_MAX)?;
    check::message(&message)?;
    Ok(message)
}

/// Encodes an output line as a line of the log port, including its newline.
///
/// # Errors
/// Returns an error if the line is too long.
pub fn encode_output(output: &Output) -> Result<Vec<u8>, Error> {
    encode(output, LOG, LOG_LINE_BYTES_MAX)
}

/// Decodes a line of the log port (without its newline).
///
/// # Errors
/// Returns an error if the line is too long or malformed.
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

/// Number of bytes of a malformed line that the error shows.
const SHOWN_BYTES: usize = 80;

/// Saved state of a [`LineSplitter`] or a [`crate::LineCutter`] between
/// two received chunks. It consists of the line that has no newline yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartialLine {
    /// Bytes of the line received so far.
    pub bytes: Vec<u8>,
    /// True if the line exceeded the bound. The reader drops the remaining bytes of the line, up to the newline.
    pub skipping: bool,
}

/// Splitter of a byte stream into lines of bounded length. The sizes of the received chunks do not change the lines.
///
/// If a line exceeds the port's bound, the splitter drops it and reports [`Error::TooLong`] once.
#[derive(Debug, Clone)]
pub struct LineSplitter {
    buffer: Vec<u8>,
    /// Number of bytes at the start of `buffer` that `next_line` has already returned or dropped.
    consumed: usize,
    /// Number of bytes at the start of `buffer` that `next_line` has already searched for a newline.
    searched: usize,
    /// True while the splitter drops the remaining bytes of a line that exceeded the bound.
    skipping: bool,
    port: &'static str,
    max: usize,
}

impl LineSplitter {
    /// Returns a splitter for the control port.
    #[must_use]
    pub fn control() -> Self {
        Self::new(CONTROL, CONTROL_LINE_BYTES_MAX)
    }

    /// Returns a splitter for the log port.
    #[must_use]
    pub fn log() -> Self {
        Self::new(LOG, LOG_LINE_BYTES_MAX)
    }

    fn new(port: &'static str, max: usize) -> Self {
        LineSplitter { buffer: Vec::new(), consumed: 0, searched: 0, skipping: false, port, max }
    }

    /// Appends received bytes. Before the next `push`, call [`Self::next_line`] until it returns `None`.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.searched -= self.consumed;
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete line without its newline, or `None` if more bytes are needed. Empty lines are skipped.
    ///
    /// # Errors
    /// Returns [`Error::TooLong`] once for each line that exceeds the bound.
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

    /// Returns the saved state. Call this after [`Self::next_line`] has returned `None`.
    #[must_use]
    pub fn partial(&self) -> PartialLine {
        PartialLine { bytes: self.buffer[self.consumed..].to_vec(), skipping: self.skipping }
    }

    /// Restores the state that a splitter of the same port has saved.
    ///
    /// # Errors
    /// Returns [`Error::TooLong`] or [`Error::Invalid`] if no splitter of this port can have saved this state.
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

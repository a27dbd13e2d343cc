//! What the agent tells the host.

use crate::text::LineText;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A message on the control port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The first one: the agent is up.
    Hello(Hello),
    /// Every service that was started so far is ready.
    Ready,
    /// A request's answer.
    Response(Response),
    /// A line that a command printed.
    Output(Output),
    /// A service has exited.
    Exited(Exited),
    /// A service is not ready, and nothing more is done about it.
    NotReady {
        /// Its name.
        service: String,
        /// What was tried.
        why: String,
    },
    /// Something failed that no request asked for.
    Error {
        /// What failed, naming the file, device or service.
        message: String,
    },
}

/// Who the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`crate::VERSION`] of the agent.
    pub version: u32,
    /// The kernel's release, as `uname -r` has it.
    pub release: String,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The request's number.
    pub id: u64,
    /// What came of it.
    pub reply: Reply,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is done.
    Done,
    /// The command has exited; its output came before.
    Exited(Exit),
    /// The changes of the root filesystem are packed.
    Packed {
        /// Length of the tar in bytes.
        bytes: u64,
        /// How many entries it has.
        entries: u64,
    },
    /// Names of programs in a folder: each once, in byte order, [`crate::limits::LISTED_NAMES_MAX`] and
    /// [`crate::limits::LISTED_BYTES_MAX`] at most.
    Names(Vec<String>),
    /// The machine has not joined: a data disk has a file system that the kernel does not mount.
    Damaged {
        /// Which, why, and what the kernel printed about it.
        message: String,
    },
    /// It failed.
    Error {
        /// What failed, naming the file, device or service.
        message: String,
    },
}

/// A line that a program printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Who printed it.
    pub unit: Unit,
    /// On which stream.
    pub stream: Stream,
    /// The line, without its newline.
    pub text: LineText,
    /// The line was longer than the port's bound, and cut.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// The stream ended without a newline after this line.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unfinished: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A program of the machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// The service with this name.
    Service(String),
    /// The command of the request with this number.
    Exec(u64),
}

impl fmt::Display for Unit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unit::Service(name) => out.write_str(name),
            Unit::Exec(id) => write!(out, "exec {id}"),
        }
    }
}

/// A program's output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A service has exited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    /// Its name.
    pub service: String,
    /// How.
    pub exit: Exit,
    /// It will be started again.
    pub restarting: bool,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// It exited with 0.
    #[must_use]
    pub const fn success(self) -> bool {
        matches!(self, Exit::Code(0))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(out, "exit status {code}"),
            Exit::Signal(signal) => write!(out, "signal {signal}"),
        }
    }
}

//! Messages from the agent to the host.

use crate::text::LineText;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A message on the control port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// First message of the agent after its boot.
    Hello(Hello),
    /// All services that the agent has started are ready.
    Ready,
    /// The answer to a request.
    Response(Response),
    /// A line that a command printed.
    Output(Output),
    /// A service has exited.
    Exited(Exited),
    /// A service did not become ready in time, or the agent could not restart or probe it.
    NotReady {
        /// Name of the service.
        service: String,
        /// Reason why the service is not ready.
        why: String,
    },
    /// A failure that the agent reports outside of an answer, for example a failure of the boot.
    Error {
        /// Description of the failure, naming the file, device or service.
        message: String,
    },
}

/// Identity of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Protocol version of the agent, its [`crate::VERSION`].
    pub version: u32,
    /// The kernel's release, as printed by `uname -r`.
    pub release: String,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// Number of the request ([`crate::Request::id`]).
    pub id: u64,
    /// Outcome of the request.
    pub reply: Reply,
}

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The operation has succeeded.
    Done,
    /// The command has exited. The agent has already sent all output of the command.
    Exited(Exit),
    /// The agent has packed the changes of the root filesystem.
    Packed {
        /// Length of the tar in bytes.
        bytes: u64,
        /// Number of entries in the tar.
        entries: u64,
    },
    /// Names of the programs in a folder, in byte order and without duplicates. There are at most
    /// [`crate::limits::LISTED_NAMES_MAX`] names, with [`crate::limits::LISTED_BYTES_MAX`] bytes in total.
    Names(Vec<String>),
    /// The machine has not joined its world, because the kernel refused to mount the filesystem of a data disk.
    Damaged {
        /// Filesystem type and mount point of the disk, the error, and the kernel's log lines about the disk.
        message: String,
    },
    /// The operation has failed.
    Error {
        /// Description of the failure, naming the file, device or service.
        message: String,
    },
}

/// A line that a program printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Program that printed the line.
    pub unit: Unit,
    /// Stream on which the program printed the line.
    pub stream: Stream,
    /// The line, without its newline.
    pub text: LineText,
    /// True if the line was longer than the bound and the agent cut it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// True if the stream ended after this line without a newline.
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
    /// The command that the request with this number started.
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

/// The exit of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    /// Name of the service.
    pub service: String,
    /// Exit status or signal.
    pub exit: Exit,
    /// True if the agent will start the service again.
    pub restarting: bool,
}

/// Way in which a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Exited with this status.
    Code(i32),
    /// Terminated by this signal.
    Signal(i32),
}

impl Exit {
    /// True if the program exited with status 0.
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

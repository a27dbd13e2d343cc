//! What happened on a timeline, with the vtime at which the host learned it.

use everett_protocol::{Exit, Stream};
use serde::{Deserialize, Serialize};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// Where.
    pub node: String,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// Kinds of events. None depends on anything but the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum What {
    /// The agent is up; the kernel's release.
    Hello {
        /// As `uname -r` has it.
        release: String,
    },
    /// The root is mounted: the machine is at its restart point.
    Mounted,
    /// Every service is ready.
    Ready,
    /// A timeline begins: what is drawn from here on, by host and guest, follows this seed.
    Begin {
        /// The seed.
        seed: u64,
    },
    /// A driver or check was started.
    Start {
        /// Its name.
        unit: String,
        /// How often it had been started before.
        round: u64,
    },
    /// A unit printed a line.
    Line {
        /// Its name.
        unit: String,
        /// Which of its streams.
        stream: StreamName,
        /// The line; what is not UTF-8 is replaced.
        text: String,
        /// It was longer than the port's bound, and cut.
        truncated: bool,
    },
    /// A unit ended.
    Exit {
        /// Its name.
        unit: String,
        /// How, in words.
        status: String,
        /// With status 0.
        success: bool,
    },
    /// Something is wrong.
    Finding {
        /// What, in one line.
        text: String,
    },
    /// Drivers were stopped and checks begin.
    End,
}

/// An output stream's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl From<Stream> for StreamName {
    fn from(stream: Stream) -> StreamName {
        match stream {
            Stream::Stdout => StreamName::Stdout,
            Stream::Stderr => StreamName::Stderr,
        }
    }
}

impl What {
    pub(super) fn exit(unit: &str, exit: Exit) -> What {
        What::Exit { unit: unit.to_owned(), status: exit.to_string(), success: exit.success() }
    }

    pub(super) fn finding(text: impl Into<String>) -> What {
        What::Finding { text: text.into() }
    }
}

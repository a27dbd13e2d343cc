//! What happened on a timeline, with the vtime at which the host learned it.

use everett_cpu::Hit;
use everett_protocol::{Exit, Stream};
use everett_vmm::disk::PowerLoss;
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

impl Event {
    /// What it takes of memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = match &self.what {
            What::Hello { release: text }
            | What::Start { unit: text, .. }
            | What::Kernel { text }
            | What::Fork { path: text }
            | What::Fault { line: text, .. }
            | What::Effect { text }
            | What::History { text, .. } => text.len(),
            What::Finding { property: unit, text }
            | What::Line { unit, text, .. }
            | What::Exit { unit, status: text, .. } => unit.len() + text.len(),
            What::Mounted
            | What::Ready
            | What::Begin { .. }
            | What::End
            | What::Loss(_)
            | What::Access { .. }
            | What::Healed { .. } => 0,
        };
        size_of::<Event>() + self.node.len() + texts
    }
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
    /// A driver or a check wrote a line to the history port.
    History {
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
    /// The kernel printed a line on the console.
    Kernel {
        /// The line; what is not UTF-8 is replaced.
        text: String,
    },
    /// Bytes that somebody watches were accessed.
    Access {
        /// The instruction, or the one before which an interrupt or exception was delivered that did it.
        #[serde(with = "hex")]
        rip: u64,
        /// The name of the kernel's function, and how far into it, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symbol: Option<String>,
        /// The root of the page tables: tells processes apart.
        #[serde(with = "hex")]
        cr3: u64,
        /// The linear address.
        #[serde(with = "hex")]
        address: u64,
        /// In bytes.
        size: u8,
        /// A store; else a load.
        store: bool,
        /// What was loaded or stored: its low eight bytes.
        #[serde(with = "hex")]
        value: u64,
    },
    /// Something is wrong.
    Finding {
        /// Which property does not hold: one of `everett_explorer::property::builtin`.
        property: String,
        /// What, in one line.
        text: String,
    },
    /// The timeline becomes a child of its moment here: what is drawn from here on follows its path.
    Fork {
        /// The child's path.
        path: String,
    },
    /// Drivers were stopped and checks begin.
    End,
    /// A fault begins.
    Fault {
        /// Its number in the plan.
        id: u32,
        /// The plan's line.
        line: String,
    },
    /// A disk has lost power, and this is what that did to it. Counts are of sectors, or of requests.
    Loss(Loss),
    /// What came of a fault, or why it was not done.
    Effect {
        /// In one line.
        text: String,
    },
    /// A fault that lasted ends.
    Healed {
        /// Its number in the plan.
        id: u32,
    },
}

/// What a loss of power did to a data disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Which of the node's data disks, from 0.
    pub disk: u32,
    /// Sectors that had been written and not flushed.
    pub unflushed: u64,
    /// Of these, those that do not hold what was written last.
    pub lost: u64,
    /// Of these, those that hold neither that nor what was flushed, but something in between.
    pub in_between: u64,
    /// Sectors that hold parts of two contents.
    pub torn: u64,
    /// Requests to write that had not completed.
    pub requests: u64,
    /// Of these, those that are on the disk as a whole.
    pub landed: u64,
    /// Of these, those that are there in part.
    pub in_part: u64,
}

impl Loss {
    pub(super) fn of(disk: usize, loss: &PowerLoss) -> Loss {
        let in_flight = loss.in_flight;
        Loss {
            // A node has at most a handful of disks.
            disk: u32::try_from(disk).unwrap_or(u32::MAX),
            unflushed: loss.unflushed,
            lost: loss.lost_newest,
            in_between: loss.in_between,
            torn: loss.torn,
            requests: in_flight.requests,
            landed: in_flight.landed,
            in_part: in_flight.in_part,
        }
    }

    /// Whether anything is gone that the guest had been told was written, if not flushed.
    #[must_use]
    pub fn lost_anything(&self) -> bool {
        self.lost > 0 || self.torn > 0
    }
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

/// Addresses as people write them.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    // The signature is serde's.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub(super) fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{value:#x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").ok_or_else(|| D::Error::custom("an address begins with 0x"))?;
        u64::from_str_radix(digits, 16).map_err(D::Error::custom)
    }
}

impl What {
    pub(super) fn exit(unit: &str, exit: Exit) -> What {
        What::Exit { unit: unit.to_owned(), status: exit.to_string(), success: exit.success() }
    }

    pub(super) fn access(hit: &Hit, symbol: Option<String>) -> What {
        let Hit { rip, cr3, address, size, store, value } = *hit;
        What::Access { rip, symbol, cr3, address, size, store, value }
    }

    pub(super) fn finding(property: &str, text: impl Into<String>) -> What {
        What::Finding { property: property.to_owned(), text: text.into() }
    }
}

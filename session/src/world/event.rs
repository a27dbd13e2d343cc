//! Events of a timeline, each with the vtime at which Everett learned of it.

use everett_cpu::WatchpointHit;
use everett_protocol::{Exit, Stream};
use everett_streams::Seed;
use everett_vmm::disk::PowerLoss;
use serde::{Deserialize, Serialize};

/// An event of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// vtime at which Everett learned of it, in nanoseconds.
    pub vtime_ns: u64,
    /// Name of the node; empty for events of the whole world.
    pub node: String,
    /// The event's kind and data.
    #[serde(flatten)]
    pub what: What,
}

impl Event {
    /// Returns its size in memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = match &self.what {
            What::Hello { release: text }
            | What::Start { unit: text, .. }
            | What::Kernel { text }
            | What::Fork { path: text }
            | What::Fault { line: text, .. }
            | What::Effect { text }
            | What::History { text, .. }
            | What::Sdk { text }
            | What::Edge { module: text, .. } => text.len(),
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

/// Kinds of events. All of them depend on the timeline alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum What {
    /// The agent has started.
    Hello {
        /// Kernel release, as `uname -r` prints it.
        release: String,
    },
    /// The root file system is mounted: the machine is at its restart point.
    Mounted,
    /// Every service is ready.
    Ready,
    /// The timeline begins under a seed: from here on, everything that Everett and the guest draw follows from it.
    Begin {
        /// The seed.
        seed: Seed,
    },
    /// A driver, a check or a test command was started.
    Start {
        /// Name of the unit.
        unit: String,
        /// Number of earlier starts, or the number of the run of a test command.
        round: u64,
    },
    /// A unit printed a line.
    Line {
        /// Name of the unit.
        unit: String,
        /// The stream to which the line was written.
        stream: StreamName,
        /// The line; bytes that are not UTF-8 are replaced.
        text: String,
        /// True if the line was longer than the port's bound and was cut.
        truncated: bool,
    },
    /// A driver or a check wrote a line to the history port.
    History {
        /// The line; bytes that are not UTF-8 are replaced.
        text: String,
        /// True if the line was longer than the port's bound and was cut.
        truncated: bool,
    },
    /// A program sent a line through the SDK.
    Sdk {
        /// The line, which `everett_explorer::sdk::parse` reads.
        text: String,
    },
    /// An instrumented program reached an edge of its code.
    Edge {
        /// Program or module.
        module: String,
        /// Number of the edge in the module, from 0.
        edge: u32,
    },
    /// A unit ended.
    Exit {
        /// Name of the unit.
        unit: String,
        /// Exit status in words.
        status: String,
        /// True if the status is 0.
        success: bool,
    },
    /// The kernel printed a line on the console.
    Kernel {
        /// The line; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// Watched bytes were accessed.
    Access {
        /// Address of the accessing instruction. If the delivery of an interrupt or exception made the access, address
        /// of the instruction before which it was delivered.
        #[serde(with = "hex")]
        rip: u64,
        /// Kernel function and offset within it, if `rip` lies in a kernel function.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symbol: Option<String>,
        /// Value of CR3, the root of the page tables; it tells processes apart.
        #[serde(with = "hex")]
        cr3: u64,
        /// Guest-virtual (linear) address of the access.
        #[serde(with = "hex")]
        address: u64,
        /// Size of the access in bytes.
        size: u8,
        /// True for a store, false for a load.
        store: bool,
        /// Value that was loaded or stored; the low eight bytes of larger accesses.
        #[serde(with = "hex")]
        value: u64,
    },
    /// A property does not hold.
    Finding {
        /// Name of the property, one of `everett_explorer::property::builtin`.
        property: String,
        /// Description in one line.
        text: String,
    },
    /// The timeline becomes a child of its current moment: from here on, random draws follow the child's path.
    Fork {
        /// The child's path.
        path: String,
    },
    /// The workload ends: drivers are stopped, and checks follow.
    End,
    /// A fault begins.
    Fault {
        /// The fault's number in the plan.
        id: u32,
        /// The plan's line.
        line: String,
    },
    /// A data disk has lost power.
    Loss(Loss),
    /// Result of a fault, or the reason why it was not applied.
    Effect {
        /// Description in one line.
        text: String,
    },
    /// A fault with a duration ends.
    Healed {
        /// The fault's number in the plan.
        id: u32,
    },
}

/// Effects of a loss of power on a data disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Number of the disk among the node's data disks, from 0.
    pub disk: u32,
    /// Number of sectors that had been written and not flushed.
    pub unflushed: u64,
    /// Number of unflushed sectors that do not hold their newest contents.
    pub lost: u64,
    /// Number of `lost` sectors that hold neither the newest nor the flushed contents, but contents written in between.
    pub in_between: u64,
    /// Number of sectors that hold parts of two contents.
    pub torn: u64,
    /// Number of write requests that had not completed.
    pub requests: u64,
    /// Number of these requests that are on the disk completely.
    pub landed: u64,
    /// Number of these requests that are on the disk in part.
    pub in_part: u64,
}

impl Loss {
    pub(super) fn of(disk: usize, loss: &PowerLoss) -> Loss {
        let in_flight = loss.in_flight;
        Loss {
            // A node has only a handful of disks, so this does not saturate.
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

    /// Returns true if the disk lost data of completed writes that the guest had not flushed.
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

/// Addresses in JSON as hexadecimal strings, `0x…`.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    // serde's `with` requires this signature.
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

    pub(super) fn access(hit: &WatchpointHit, symbol: Option<String>) -> What {
        let WatchpointHit { rip, cr3, address, size, store, value } = *hit;
        What::Access { rip, symbol, cr3, address, size, store, value }
    }

    pub(super) fn finding(property: &str, text: impl Into<String>) -> What {
        What::Finding { property: property.to_owned(), text: text.into() }
    }
}

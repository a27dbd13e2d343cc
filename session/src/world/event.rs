//! Events of a timeline, each with the vtime at which Everett learned of it.

use everett_cpu::WatchpointHit;
use everett_protocol::{Exit, Stream};
use everett_streams::Seed;
use everett_vmm::disk::PowerLoss;
use serde::{Deserialize, Serialize};

/// An event of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Vtime at which Everett learned of the event, in nanoseconds.
    pub vtime_ns: u64,
    /// Name of the node. It is empty for events of the whole world.
    pub node: String,
    /// The event's kind and data.
    #[serde(flatten)]
    pub what: What,
}

impl Event {
    /// Returns the event's size in memory, in bytes.
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
            What::Probe { probe, text, variable, .. } => {
                probe.len() + text.len() + variable.as_ref().map_or(0, String::len)
            }
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

/// Kinds of events. Which events occur depends on the timeline alone, never on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum What {
    /// The agent has started.
    Hello {
        /// Kernel release, as `uname -r` prints it.
        release: String,
    },
    /// The root file system is mounted. Everett keeps a copy of the machine in this state. A warm restart after a power
    /// loss continues from the copy instead of booting.
    Mounted,
    /// All services of the node are ready.
    Ready,
    /// The timeline begins. From here on, `seed` determines all random draws by Everett and the guests.
    Begin {
        /// Seed of the timeline.
        seed: Seed,
    },
    /// A driver, a check or a test command was started.
    Start {
        /// Name of the driver, check or test command.
        unit: String,
        /// For a driver, the number of its earlier starts. For a test command, the number of this run, which the
        /// command also gets in its environment. For a check, 0.
        round: u64,
    },
    /// A driver, check, test command or service printed a line.
    Line {
        /// Name of the program that printed the line.
        unit: String,
        /// Stream on which the line was printed.
        stream: StreamName,
        /// Text of the line. U+FFFD replaces bytes that are not UTF-8.
        text: String,
        /// True if the line was longer than Everett accepts and was cut.
        truncated: bool,
    },
    /// A driver or check reported an operation of a client: it wrote a line to the history port.
    History {
        /// Text of the line. U+FFFD replaces bytes that are not UTF-8.
        text: String,
        /// True if the line was longer than Everett accepts and was cut.
        truncated: bool,
    },
    /// A program sent a line through the SDK.
    Sdk {
        /// Text of the line. `everett_explorer::sdk::parse` parses it.
        text: String,
    },
    /// An instrumented program reached an edge of its code.
    Edge {
        /// Name of the program or module.
        module: String,
        /// Index of the edge in its module.
        edge: u32,
    },
    /// A driver, check, test command or service ended.
    Exit {
        /// Name of the program that ended.
        unit: String,
        /// Exit status in words.
        status: String,
        /// True if the exit status is 0.
        success: bool,
    },
    /// The kernel printed a line on the console.
    Kernel {
        /// Text of the line. U+FFFD replaces bytes that are not UTF-8.
        text: String,
    },
    /// Watched bytes were accessed.
    Access {
        /// Address of the instruction that made the access. If the delivery of an interrupt or exception made the
        /// access, address at which the CPU was interrupted.
        #[serde(with = "hex")]
        rip: u64,
        /// Kernel function and offset within it, if `rip` lies in a kernel function.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symbol: Option<String>,
        /// Value of CR3, which contains the address of the page tables. Different processes have different values.
        #[serde(with = "hex")]
        cr3: u64,
        /// Guest-virtual address of the access.
        #[serde(with = "hex")]
        address: u64,
        /// Length of the access, in bytes.
        size: u8,
        /// True for a store, false for a load.
        store: bool,
        /// Value that was loaded or stored. For an access over eight bytes, only the low eight bytes.
        #[serde(with = "hex")]
        value: u64,
    },
    /// A property was violated.
    Finding {
        /// Name of the property, from `everett_explorer::property::builtin`.
        property: String,
        /// Description in one line.
        text: String,
    },
    /// The timeline continues as one of the branches that fork from its current moment. Later random draws depend on
    /// the path of this branch.
    Fork {
        /// Path of the branch.
        path: String,
    },
    /// The workload ends. Everett stops the drivers and then runs the checks.
    End,
    /// A fault begins.
    Fault {
        /// Number of the fault in the plan.
        id: u32,
        /// Line of the fault in the plan.
        line: String,
    },
    /// A data disk lost power.
    Loss(Loss),
    /// A fault had a result, or was not applied. The text describes the result or the reason.
    Effect {
        /// Description in one line.
        text: String,
    },
    /// A fault with a duration ended.
    Healed {
        /// Number of the fault in the plan.
        id: u32,
    },
    /// A probe of the world file hit.
    Probe {
        /// Name of the probe.
        probe: String,
        /// Values, process and thread, and for a violation what happened and the stack, in one line.
        text: String,
        /// True if the hit violates the probe.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        violated: bool,
        /// New value of the probe's state variable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variable: Option<String>,
    },
}

/// Effects of a power loss on a data disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Index of the disk among the node's data disks.
    pub disk: u32,
    /// Number of sectors that had been written but not flushed.
    pub unflushed: u64,
    /// Number of unflushed sectors that lost their newest contents.
    pub lost: u64,
    /// Number of `lost` sectors that hold an unflushed write older than the newest one.
    pub in_between: u64,
    /// Number of sectors that hold parts of two writes.
    pub torn: u64,
    /// Number of write requests in progress at the power loss.
    pub requests: u64,
    /// Number of these requests whose data is completely on the disk.
    pub landed: u64,
    /// Number of these requests whose data is partly on the disk.
    pub in_part: u64,
}

impl Loss {
    /// Returns the effects of a power loss on data disk number `disk` of a node.
    #[must_use]
    pub fn of(disk: usize, loss: &PowerLoss) -> Loss {
        let in_flight = loss.in_flight;
        Loss {
            // A node has few disks, so the number fits.
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

    /// Returns true if a sector lost the contents of its newest completed write, or is torn.
    #[must_use]
    pub fn lost_anything(&self) -> bool {
        self.lost > 0 || self.torn > 0
    }
}

/// Name of an output stream.
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

/// JSON form of addresses: hexadecimal strings, `0x…`.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    // serde's `with` requires a reference.
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

/// Adds the events of probes to the other events, each before the first event with a later vtime.
pub(crate) fn merged(events: Vec<Event>, probed: Vec<Event>) -> Vec<Event> {
    if probed.is_empty() {
        return events;
    }
    let mut all = Vec::with_capacity(events.len() + probed.len());
    let mut probed = probed.into_iter().peekable();
    for event in events {
        while let Some(earlier) = probed.next_if(|probed| probed.vtime_ns < event.vtime_ns) {
            all.push(earlier);
        }
        all.push(event);
    }
    all.extend(probed);
    all
}

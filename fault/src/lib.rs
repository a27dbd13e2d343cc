//! The catalogue of faults, as data: what can be done to a world. When it is done, and for how long, is a plan's business.
//!
//! Everything is done to machines and to the wire. Only what says so needs the guest's help, through its agent.
//!
//! - `kind`: the faults by name, and what is true of all of a kind
//! - `check`: the bounds of each fault's values
//! - `links`: which directions of which links a network fault is about
//! - `distribution`: how long something takes
//! - `limits`: bounds of a world
//!
//! Not here: the form in which people write faults, and plans (`everett-explorer`).
//!
//! **Invariants.**
//! - A fault is plain data with integers only, so that it means the same on every host.
//! - Its stored form depends on its type alone (no untagged or internally tagged enums), so that moments can hold faults.

pub mod check;
pub mod distribution;
pub mod kind;
pub mod limits;
pub mod links;

use serde::{Deserialize, Serialize};

pub use check::{FaultError, FieldError};
pub use distribution::Distribution;
pub use kind::FaultKind;
pub use links::{Group, Links};

/// Parts per million: how often something happens to a frame or a request.
pub type Ppm = u32;
/// Always.
pub const PPM: Ppm = 1_000_000;

/// One fault. Names of nodes are those of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Frames take longer, by a drawn time each.
    Latency {
        /// Where.
        links: Links,
        /// How much longer, in nanoseconds.
        extra: Distribution,
    },
    /// Frames are lost.
    Loss {
        /// Where.
        links: Links,
        /// How many.
        ppm: Ppm,
    },
    /// Frames arrive twice.
    Duplicate {
        /// Where.
        links: Links,
        /// How many.
        ppm: Ppm,
    },
    /// Frames are overtaken by later ones.
    Reorder {
        /// Where.
        links: Links,
        /// How many are held back.
        ppm: Ppm,
        /// For how long, in nanoseconds.
        hold: Distribution,
    },
    /// A bit of a frame flips on its way.
    Corrupt {
        /// Where.
        links: Links,
        /// How many frames.
        ppm: Ppm,
    },
    /// Links are slower.
    Bandwidth {
        /// Where.
        links: Links,
        /// What is left, in bits a second.
        bits_per_s: u64,
    },
    /// Nothing gets through.
    Partition {
        /// Where.
        links: Links,
        /// What becomes of the frames.
        mode: PartitionMode,
    },
    /// A node's card neither sends nor receives; what is on its way waits until the end.
    Clog {
        /// Which node.
        node: String,
    },
    /// A node loses power: what its disks had not flushed is lost, torn or kept, as it comes.
    PowerLoss {
        /// Which node.
        node: String,
        /// How it starts again when the fault ends; `None`: it stays off for good.
        restart: Option<Restart>,
        /// Sectors may be torn inside. Correct software relies on whole ones.
        tear_sectors: bool,
    },
    /// A node is reset: its memory is lost, its disks are not. It starts again at once.
    Reset {
        /// Which node.
        node: String,
        /// How.
        restart: Restart,
    },
    /// A node executes nothing while the world goes on.
    Pause {
        /// Which node.
        node: String,
    },
    /// A node's CPU is slower.
    SlowCpu {
        /// Which node.
        node: String,
        /// What is left of its speed, in parts per million.
        ppm: Ppm,
    },
    /// Requests to a disk fail.
    DiskError {
        /// Which disk.
        disk: DiskName,
        /// Which requests.
        requests: Requests,
        /// How many of them.
        ppm: Ppm,
    },
    /// Requests to a disk take longer.
    DiskLatency {
        /// Which disk.
        disk: DiskName,
        /// How much longer, in nanoseconds.
        extra: Distribution,
    },
    /// A disk has no room for blocks that were never written: such writes fail.
    DiskFull {
        /// Which disk.
        disk: DiskName,
    },
    /// Bits of a disk flip, in sectors that were written.
    BitRot {
        /// Which disk.
        disk: DiskName,
        /// How many.
        bits: u32,
    },
    /// A node's clock runs fast or slow.
    ClockDrift {
        /// Which node.
        node: String,
        /// By how much, in parts per million; negative is slow.
        ppm: i32,
    },
    /// A node's CLOCK_REALTIME is set forward or back, as NTP would. Through the agent.
    ClockStep {
        /// Which node.
        node: String,
        /// By how much, in nanoseconds.
        step_ns: i64,
    },
    /// Time is stolen from a node at drawn instructions, so that whatever runs there is preempted.
    Stalls {
        /// Which node.
        node: String,
        /// Instructions from one to the next: drawn evenly from 1 to twice this.
        every_instructions: u64,
        /// How long each is, in nanoseconds.
        stall: Distribution,
    },
    /// The threads of a unit get drawn real-time priorities, which change at drawn times. Through the agent.
    Priorities {
        /// Which node.
        node: String,
        /// Which unit's threads.
        unit: String,
        /// From one change to the next, in nanoseconds.
        every: Distribution,
    },
    /// The guest's kernel draws its randomness anew. Through the agent.
    Reseed {
        /// Which node.
        node: String,
    },
    /// A command of the user's runs. Through the agent.
    Command {
        /// On which node.
        node: String,
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// What becomes of frames at a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMode {
    /// They are lost.
    Drop,
    /// They wait and go on when the partition ends.
    Hold,
    /// They arrive, each a second later.
    Slow,
}

/// How a node starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// From the stored restart point, which costs the host nothing: kernel and agent are up there, nothing else is.
    Warm,
    /// By executing the whole boot.
    Cold,
}

/// A disk of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskName {
    /// Which node's.
    pub node: String,
    /// Which of its data disks, from 0, in the order of the world file.
    pub disk: u32,
}

/// Which requests to a disk fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requests {
    /// Reads.
    Read,
    /// Writes, discards and writes of zeroes.
    Write,
    /// Flushes.
    Flush,
    /// All.
    All,
}

impl Fault {
    /// The one node that it is done to; `None` if it is done to links.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self {
            Fault::Latency { .. }
            | Fault::Loss { .. }
            | Fault::Duplicate { .. }
            | Fault::Reorder { .. }
            | Fault::Corrupt { .. }
            | Fault::Bandwidth { .. }
            | Fault::Partition { .. } => None,
            Fault::Clog { node }
            | Fault::PowerLoss { node, .. }
            | Fault::Reset { node, .. }
            | Fault::Pause { node }
            | Fault::SlowCpu { node, .. }
            | Fault::ClockDrift { node, .. }
            | Fault::ClockStep { node, .. }
            | Fault::Stalls { node, .. }
            | Fault::Priorities { node, .. }
            | Fault::Reseed { node }
            | Fault::Command { node, .. } => Some(node),
            Fault::DiskError { disk, .. }
            | Fault::DiskLatency { disk, .. }
            | Fault::DiskFull { disk }
            | Fault::BitRot { disk, .. } => Some(&disk.node),
        }
    }

    /// The disk that it is done to, if it is.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskName> {
        match self {
            Fault::DiskError { disk, .. }
            | Fault::DiskLatency { disk, .. }
            | Fault::DiskFull { disk }
            | Fault::BitRot { disk, .. } => Some(disk),
            _ => None,
        }
    }

    /// The links that it is done to, if it is.
    #[must_use]
    pub fn links(&self) -> Option<&Links> {
        match self {
            Fault::Latency { links, .. }
            | Fault::Loss { links, .. }
            | Fault::Duplicate { links, .. }
            | Fault::Reorder { links, .. }
            | Fault::Corrupt { links, .. }
            | Fault::Bandwidth { links, .. }
            | Fault::Partition { links, .. } => Some(links),
            _ => None,
        }
    }
}

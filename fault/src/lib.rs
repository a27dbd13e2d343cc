//! The catalogue of faults, as plain data. Fault plans define when a fault starts and how long it lasts.
//!
//! Faults act on machines and on the wire. Only the faults marked "through the agent" need the guest's help.
//!
//! - `kind`: the kinds of faults, and the properties that all faults of a kind share
//! - `check`: bounds of each fault's values
//! - `links`: the link directions that a network fault affects
//! - `distribution`: distributions of times
//! - `limits`: bounds of a world
//!
//! Not here: the text form of faults, and plans (`everett-explorer`).
//!
//! **Invariants.**
//! - A fault is plain data, and its numbers are integers, so that it means the same on every host.
//! - No enum is untagged or internally tagged, because moments store faults in a format that does not describe its own
//!   types.

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

/// Parts per million: the unit of probabilities and relative speeds.
pub type Ppm = u32;
/// A probability of one.
pub const PPM: Ppm = 1_000_000;

/// A fault with its values. Node names are those of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Adds a random latency to each frame.
    Latency {
        /// Affected links.
        links: Links,
        /// Additional latency, in nanoseconds.
        extra: Distribution,
    },
    /// Loses frames.
    Loss {
        /// Affected links.
        links: Links,
        /// Share of frames that are lost.
        ppm: Ppm,
    },
    /// Delivers frames twice.
    Duplicate {
        /// Affected links.
        links: Links,
        /// Share of frames that are duplicated.
        ppm: Ppm,
    },
    /// Holds frames back, so that later ones overtake them.
    Reorder {
        /// Affected links.
        links: Links,
        /// Share of frames that are held back.
        ppm: Ppm,
        /// Time that a frame is held back, in nanoseconds.
        hold: Distribution,
    },
    /// Flips a bit of a frame in transit.
    Corrupt {
        /// Affected links.
        links: Links,
        /// Share of frames that are corrupted.
        ppm: Ppm,
    },
    /// Limits the bandwidth of links.
    Bandwidth {
        /// Affected links.
        links: Links,
        /// Remaining bandwidth, in bits per second.
        bits_per_s: u64,
    },
    /// Loses, holds back or delays every frame.
    Partition {
        /// Affected links.
        links: Links,
        /// Treatment of the frames.
        mode: PartitionMode,
    },
    /// Stops a node's network card from sending and receiving. Frames in transit wait until the fault ends.
    Clog {
        /// Affected node.
        node: String,
    },
    /// Cuts a node's power. Each write that its disk had not flushed is lost, torn or kept, at random.
    PowerLoss {
        /// Affected node.
        node: String,
        /// Kind of the restart when the fault ends. With `None` the node stays off until the end of the workload, when
        /// the session switches it on for the checks.
        restart: Option<Restart>,
        /// True if a sector may be written in part. Correct software may rely on sectors being written whole.
        tear_sectors: bool,
    },
    /// Resets a node: its memory is lost, its disks are not. The node starts again at once.
    Reset {
        /// Affected node.
        node: String,
        /// Kind of the restart.
        restart: Restart,
    },
    /// Stops a node's execution while the world goes on.
    Pause {
        /// Affected node.
        node: String,
    },
    /// Slows down a node's CPU.
    SlowCpu {
        /// Affected node.
        node: String,
        /// Remaining speed, in parts per million.
        ppm: Ppm,
    },
    /// Fails requests to a disk.
    DiskError {
        /// Affected disk.
        disk: DiskName,
        /// Affected kind of requests.
        requests: Requests,
        /// Share of these requests that fail.
        ppm: Ppm,
    },
    /// Adds a random latency to each request to a disk.
    DiskLatency {
        /// Affected disk.
        disk: DiskName,
        /// Additional latency, in nanoseconds.
        extra: Distribution,
    },
    /// Fails writes to blocks that were never written, as a full disk does.
    DiskFull {
        /// Affected disk.
        disk: DiskName,
    },
    /// Flips bits of a disk, in sectors that were written.
    BitRot {
        /// Affected disk.
        disk: DiskName,
        /// Number of bits.
        bits: u32,
    },
    /// Makes a node's clock run fast or slow.
    ClockDrift {
        /// Affected node.
        node: String,
        /// Drift in parts per million. Negative is slow.
        ppm: i32,
    },
    /// Sets a node's CLOCK_REALTIME forward or back, as NTP would. Through the agent.
    ClockStep {
        /// Affected node.
        node: String,
        /// Step in nanoseconds.
        step_ns: i64,
    },
    /// Steals time from a node at random instructions, so that the running program is preempted.
    Stalls {
        /// Affected node.
        node: String,
        /// Mean number of instructions between stalls. Each gap is drawn uniformly from 1 to twice this number.
        every_instructions: u64,
        /// Length of each stall, in nanoseconds.
        stall: Distribution,
    },
    /// Gives the threads of a unit random real-time priorities, which change at random times. Through the agent.
    Priorities {
        /// Affected node.
        node: String,
        /// Unit whose threads are affected.
        unit: String,
        /// Time between two changes, in nanoseconds.
        every: Distribution,
    },
    /// Reseeds the random generator of the guest's kernel. Through the agent.
    Reseed {
        /// Affected node.
        node: String,
    },
    /// Runs a command of the user. Through the agent.
    Command {
        /// Node on which the command runs.
        node: String,
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Asks a service to end, kills it if it does not, and starts it again, as `docker compose restart` does. Through the
    /// agent.
    RestartService {
        /// Affected node.
        node: String,
        /// Service of the node.
        unit: String,
    },
}

/// Treatment of frames during a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMode {
    /// The frames are lost.
    Drop,
    /// The frames wait until the partition ends.
    Hold,
    /// Each frame arrives one second later.
    Slow,
}

/// Way in which a node starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Restores the stored restart point, at which only the kernel and the agent run. This costs the host almost
    /// nothing.
    Warm,
    /// Executes the whole boot.
    Cold,
}

/// A data disk of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskName {
    /// Node that has the disk.
    pub node: String,
    /// Index of the data disk, from 0, in the order of the world file.
    pub disk: u32,
}

/// Kind of requests to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requests {
    /// Reads.
    Read,
    /// Writes, discards and writes of zeroes.
    Write,
    /// Flushes.
    Flush,
    /// All requests.
    All,
}

impl Fault {
    /// Returns the single node that the fault acts on, or `None` if it acts on links.
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
            | Fault::Command { node, .. }
            | Fault::RestartService { node, .. } => Some(node),
            Fault::DiskError { disk, .. }
            | Fault::DiskLatency { disk, .. }
            | Fault::DiskFull { disk }
            | Fault::BitRot { disk, .. } => Some(&disk.node),
        }
    }

    /// Returns the disk that the fault acts on, if any.
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

    /// Returns the links that the fault acts on, if any.
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

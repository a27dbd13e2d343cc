//! The catalogue of faults, as plain data. A fault plan defines when each fault starts and how long it lasts.
//!
//! Each part of a world that carries out faults has its own enum in its own file. The file also contains the bounds of
//! the faults' values:
//!
//! - `network`: faults of frames on links, and of network cards. The wire (the simulated network) carries these out
//! - `disk`: faults of requests to a disk. The disk carries these out
//! - `medium`: faults of a disk's contents. The disk carries these out
//! - `node`: faults of a machine's power, CPU and clock
//! - `guest`: faults of programs and of their clock. The agent (Everett's program in the guest) carries these out
//!
//! All faults share these modules:
//!
//! - `kind`: the kinds of faults, and the properties that all faults of a kind share
//! - `check`: the errors for values that are out of bounds
//! - `links`: sets of links that a fault affects
//! - `distribution`: distributions of times
//! - `limits`: the maximum numbers of nodes and of active network faults
//!
//! Not here: fault plans, and how faults are written as text (`everett-explorer`).
//!
//! **Invariants.**
//! - A fault is plain data, and all of its numbers are integers, so it means the same on every host.
//! - No enum is untagged or internally tagged in serde, because moments store faults in a format that does not describe
//!   its own types.

mod check;
mod disk;
pub mod distribution;
mod guest;
pub mod kind;
pub mod limits;
pub mod links;
mod medium;
mod network;
mod node;

use serde::{Deserialize, Serialize};

pub use check::{ARGUMENTS_MAX, ARGV_BYTES_MAX, FaultError, FieldError};
pub use disk::{DiskFault, DiskName, Requests};
pub use distribution::Distribution;
pub use guest::{CLOCK_STEP_NS_MAX, GuestFault, PRIORITIES_EVERY_NS_MIN};
pub use kind::FaultKind;
pub use links::{Group, Links};
pub use medium::{BIT_ROT_BITS, MediumFault};
pub use network::{BITS_PER_S, NetworkFault, PartitionMode};
pub use node::{
    CLOCK_DRIFT_PPM_MAX, NodeFault, Restart, SLOW_CPU_PPM, STALL_EVERY_INSTRUCTIONS, STALL_NS_MAX,
};

/// Parts per million, the unit of probabilities and relative speeds.
pub type Ppm = u32;
/// Number of parts per million that is a probability of 1.
pub const PPM: Ppm = 1_000_000;

/// Fault with its values. Node names are those of the world file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Fault of the network.
    Network(NetworkFault),
    /// Fault of the requests to a disk.
    Disk {
        /// Affected disk.
        disk: DiskName,
        /// Fault of the disk's requests.
        fault: DiskFault,
    },
    /// Fault of a disk's contents.
    Medium {
        /// Affected disk.
        disk: DiskName,
        /// Damage to the disk's contents.
        fault: MediumFault,
    },
    /// Fault of a machine.
    Node {
        /// Affected node.
        node: String,
        /// Fault of the node's machine.
        fault: NodeFault,
    },
    /// Fault inside a guest, which the guest's agent carries out.
    Guest {
        /// Affected node.
        node: String,
        /// Fault inside the node's guest.
        fault: GuestFault,
    },
}

impl Fault {
    /// Returns the fault's kind.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Fault::Network(fault) => fault.kind(),
            Fault::Disk { fault, .. } => fault.kind(),
            Fault::Medium { fault, .. } => fault.kind(),
            Fault::Node { fault, .. } => fault.kind(),
            Fault::Guest { fault, .. } => fault.kind(),
        }
    }

    /// Returns an error for each value that is out of bounds, in the order of the fault's fields.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        match self {
            Fault::Network(fault) => fault.problems(),
            Fault::Disk { fault, .. } => fault.problems(),
            Fault::Medium { fault, .. } => fault.problems(),
            Fault::Node { fault, .. } => fault.problems(),
            Fault::Guest { fault, .. } => fault.problems(),
        }
    }

    /// Returns the node that the fault affects, or `None` if the fault affects links.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self {
            Fault::Network(fault) => fault.node(),
            Fault::Disk { disk, .. } | Fault::Medium { disk, .. } => Some(&disk.node),
            Fault::Node { node, .. } | Fault::Guest { node, .. } => Some(node),
        }
    }

    /// Returns the disk that the fault affects, if any.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskName> {
        match self {
            Fault::Disk { disk, .. } | Fault::Medium { disk, .. } => Some(disk),
            Fault::Network(_) | Fault::Node { .. } | Fault::Guest { .. } => None,
        }
    }

    /// Returns the links that the fault affects, if any.
    #[must_use]
    pub fn links(&self) -> Option<&Links> {
        match self {
            Fault::Network(fault) => fault.links(),
            Fault::Disk { .. } | Fault::Medium { .. } | Fault::Node { .. } | Fault::Guest { .. } => None,
        }
    }

    /// True for a permanent power loss, i.e. if the plan does not switch the node on again.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        matches!(self, Fault::Node { fault: NodeFault::PowerLoss { restart: None, .. }, .. })
    }
}

#[cfg(test)]
mod tests;

//! The catalogue of faults, as plain data. Fault plans define when a fault starts and how long it lasts.
//!
//! A fault belongs to the part of a world that carries it out. Each part has an enum of its own, in a file of its own,
//! with the kinds and the bounds of its faults:
//!
//! - `network`: frames on links, and network cards. The wire carries these out
//! - `disk`: requests to a disk, and `medium`: what a disk holds. The disk carries these out
//! - `node`: a machine's power, CPU and clock
//! - `guest`: programs, and the clock that they set. These faults need the guest's agent
//!
//! For all of them:
//!
//! - `kind`: the kinds of faults, and the properties that all faults of a kind share
//! - `check`: checks of values
//! - `links`: the link directions that a fault affects
//! - `distribution`: distributions of times
//! - `limits`: bounds of a world
//!
//! Not here: the text form of faults, and plans (`everett-explorer`).
//!
//! **Invariants.**
//! - A fault is plain data, and its numbers are integers, so that it means the same on every host.
//! - No enum is untagged or internally tagged, because moments store faults in a format that does not describe its own
//!   types.

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

/// Parts per million: the unit of probabilities and relative speeds.
pub type Ppm = u32;
/// A probability of one.
pub const PPM: Ppm = 1_000_000;

/// A fault with its values, by what it acts on. Node names are those of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Acts on the network.
    Network(NetworkFault),
    /// Acts on the requests to a disk.
    Disk {
        /// Affected disk.
        disk: DiskName,
        /// Fault of the requests to this disk.
        fault: DiskFault,
    },
    /// Acts on what a disk holds.
    Medium {
        /// Affected disk.
        disk: DiskName,
        /// Damage to the contents of this disk.
        fault: MediumFault,
    },
    /// Acts on a machine.
    Node {
        /// Affected node.
        node: String,
        /// Fault of the machine.
        fault: NodeFault,
    },
    /// Acts inside a guest, through its agent.
    Guest {
        /// Affected node.
        node: String,
        /// Fault that the agent carries out.
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

    /// Returns the single node that the fault acts on, or `None` if it acts on links.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self {
            Fault::Network(fault) => fault.node(),
            Fault::Disk { disk, .. } | Fault::Medium { disk, .. } => Some(&disk.node),
            Fault::Node { node, .. } | Fault::Guest { node, .. } => Some(node),
        }
    }

    /// Returns the disk that the fault acts on, if any.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskName> {
        match self {
            Fault::Disk { disk, .. } | Fault::Medium { disk, .. } => Some(disk),
            Fault::Network(_) | Fault::Node { .. } | Fault::Guest { .. } => None,
        }
    }

    /// Returns the links that the fault acts on, if any.
    #[must_use]
    pub fn links(&self) -> Option<&Links> {
        match self {
            Fault::Network(fault) => fault.links(),
            Fault::Disk { .. } | Fault::Medium { .. } | Fault::Node { .. } | Fault::Guest { .. } => None,
        }
    }

    /// True for a power loss after which the plan does not switch the node on again.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        matches!(self, Fault::Node { fault: NodeFault::PowerLoss { restart: None, .. }, .. })
    }
}

#[cfg(test)]
mod tests;

//! Faults of the network.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::check::{self, FieldError, share, times, within};
use crate::{Distribution, FaultKind, Links, Ppm};

/// Bounds of a link's bandwidth, in bits per second. With a lower minimum, one frame could occupy a link for hours.
pub const BITS_PER_S: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// Fault of links, or of a network card. At most [`NETWORK_FAULTS_MAX`](crate::limits::NETWORK_FAULTS_MAX) network
/// faults can be active in a world at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkFault {
    /// Each frame takes an additional random time.
    Latency {
        /// Affected links.
        links: Links,
        /// Additional latency, in nanoseconds.
        extra: Distribution,
    },
    /// Frames are lost.
    Loss {
        /// Affected links.
        links: Links,
        /// Share of frames that are lost, in ppm.
        ppm: Ppm,
    },
    /// Frames arrive twice.
    Duplicate {
        /// Affected links.
        links: Links,
        /// Share of frames that are duplicated, in ppm.
        ppm: Ppm,
    },
    /// Frames are held back, so that later frames overtake them.
    Reorder {
        /// Affected links.
        links: Links,
        /// Share of frames that are held back, in ppm.
        ppm: Ppm,
        /// Time for which a frame is held back, in nanoseconds.
        hold: Distribution,
    },
    /// One bit of a frame is flipped in transit.
    Corrupt {
        /// Affected links.
        links: Links,
        /// Share of frames that are corrupted, in ppm.
        ppm: Ppm,
    },
    /// Links have less bandwidth.
    Bandwidth {
        /// Affected links.
        links: Links,
        /// Remaining bandwidth, in bits per second.
        bits_per_s: u64,
    },
    /// Every frame is lost, held back or delayed.
    Partition {
        /// Affected links.
        links: Links,
        /// Treatment of the frames.
        mode: PartitionMode,
    },
    /// A node's network card neither sends nor receives. Frames in transit wait until the fault ends.
    Clog {
        /// Affected node.
        node: String,
    },
}

/// Treatment of frames during a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMode {
    /// The frames are lost.
    Drop,
    /// The frames arrive after the partition ends.
    Hold,
    /// Each frame arrives one second later.
    Slow,
}

/// Part of the network that a fault affects.
enum Target<'f> {
    Links(&'f Links),
    /// Card of the node with this name.
    Card(&'f str),
}

impl NetworkFault {
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            NetworkFault::Latency { .. } => FaultKind::Latency,
            NetworkFault::Loss { .. } => FaultKind::Loss,
            NetworkFault::Duplicate { .. } => FaultKind::Duplicate,
            NetworkFault::Reorder { .. } => FaultKind::Reorder,
            NetworkFault::Corrupt { .. } => FaultKind::Corrupt,
            NetworkFault::Bandwidth { .. } => FaultKind::Bandwidth,
            NetworkFault::Partition { .. } => FaultKind::Partition,
            NetworkFault::Clog { .. } => FaultKind::Clog,
        }
    }

    /// Returns an error for each value that is out of bounds, in the order of the fields.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        match self {
            NetworkFault::Latency { extra, .. } => check::errors([("extra", times(extra))]),
            NetworkFault::Loss { ppm, .. }
            | NetworkFault::Duplicate { ppm, .. }
            | NetworkFault::Corrupt { ppm, .. } => check::errors([("ppm", share(*ppm))]),
            NetworkFault::Reorder { ppm, hold, .. } => {
                check::errors([("ppm", share(*ppm)), ("hold", times(hold))])
            }
            NetworkFault::Bandwidth { bits_per_s, .. } => {
                check::errors([("bits_per_s", within(*bits_per_s, &BITS_PER_S, "bits a second"))])
            }
            NetworkFault::Partition { .. } | NetworkFault::Clog { .. } => Vec::new(),
        }
    }

    /// Returns the links that the fault affects, or `None` if it affects a network card.
    #[must_use]
    pub fn links(&self) -> Option<&Links> {
        match self.target() {
            Target::Links(links) => Some(links),
            Target::Card(_) => None,
        }
    }

    /// Returns the node whose network card the fault affects, or `None` if the fault affects links.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self.target() {
            Target::Links(_) => None,
            Target::Card(node) => Some(node),
        }
    }

    fn target(&self) -> Target<'_> {
        match self {
            NetworkFault::Latency { links, .. }
            | NetworkFault::Loss { links, .. }
            | NetworkFault::Duplicate { links, .. }
            | NetworkFault::Reorder { links, .. }
            | NetworkFault::Corrupt { links, .. }
            | NetworkFault::Bandwidth { links, .. }
            | NetworkFault::Partition { links, .. } => Target::Links(links),
            NetworkFault::Clog { node } => Target::Card(node),
        }
    }
}

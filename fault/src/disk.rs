//! Faults of requests to disks.

use serde::{Deserialize, Serialize};

use crate::check::{self, FieldError, share, times};
use crate::{Distribution, FaultKind, Ppm};

/// Data disk of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskName {
    /// Name of the node that has the disk.
    pub node: String,
    /// Index of the data disk, from 0, in the order of the world file.
    pub disk: u32,
}

/// Fault of the requests to a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskFault {
    /// Requests fail. A failed write changes no sector, and a failed flush makes no write durable.
    Error {
        /// Kind of requests that can fail.
        requests: Requests,
        /// Share of these requests that fail, in ppm.
        ppm: Ppm,
    },
    /// Each request takes an additional random time.
    Latency {
        /// Additional latency, in nanoseconds.
        extra: Distribution,
    },
    /// The disk has no free space, like a thin-provisioned device whose pool is full. Writes to 4 KiB blocks that were
    /// never written fail. Discards succeed, and so do writes of zeroes that may unmap.
    Full,
}

/// Kind of requests to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requests {
    /// Read requests.
    Read,
    /// Writes, discards and writes of zeroes.
    Write,
    /// Flush requests.
    Flush,
    /// All requests.
    All,
}

impl DiskFault {
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            DiskFault::Error { .. } => FaultKind::DiskError,
            DiskFault::Latency { .. } => FaultKind::DiskLatency,
            DiskFault::Full => FaultKind::DiskFull,
        }
    }

    /// Returns an error for each value that is out of bounds, in the order of the fields.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        match self {
            DiskFault::Error { ppm, .. } => check::errors([("ppm", share(*ppm))]),
            DiskFault::Latency { extra } => check::errors([("extra", times(extra))]),
            DiskFault::Full => Vec::new(),
        }
    }
}

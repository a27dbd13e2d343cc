//! Faults of requests to disks.

use serde::{Deserialize, Serialize};

use crate::check::{self, FieldError, share, times};
use crate::{Distribution, FaultKind, Ppm};

/// A data disk of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskName {
    /// Node that has the disk.
    pub node: String,
    /// Index of the data disk, from 0, in the order of the world file.
    pub disk: u32,
}

/// Fault of the requests to a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskFault {
    /// Fails requests. A failing write changes no sector, and a failing flush covers nothing.
    Error {
        /// Affected kind of requests.
        requests: Requests,
        /// Share of these requests that fail.
        ppm: Ppm,
    },
    /// Adds a random latency to each request.
    Latency {
        /// Additional latency, in nanoseconds.
        extra: Distribution,
    },
    /// Leaves 4 KiB blocks that were never written without room, as on a thin-provisioned device whose pool is full.
    /// Requests that write to one fail. A discard needs no room, nor does a write of zeroes that may unmap.
    Full,
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

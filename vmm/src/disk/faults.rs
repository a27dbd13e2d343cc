//! What is wrong with a disk while a fault lasts: requests that fail, take longer, or find no room.
//!
//! Faults belong to the drive, not to the machine that it is in: they stay when the machine loses power. Bit rot is no
//! state, since it happens at once ([`super::Disk::rot`]).
//!
//! **Invariant.** Nothing is drawn for a request that no fault is about, and the stream is not even opened.

use std::collections::BTreeMap;

use everett_fault::distribution::DistributionError;
use everett_fault::{Distribution, Fault, PPM, Ppm, Requests};
use everett_streams::{Purpose, Streams};
use serde::{Deserialize, Serialize};

use super::draw;

/// The most faults that a disk has at a time.
pub const FAULTS_MAX: usize = 64;

/// Something wrong with a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskFault {
    /// Requests fail. A write that fails lands in no sector, a flush that fails covers nothing.
    Error {
        /// Which requests.
        requests: Requests,
        /// How many of them.
        ppm: Ppm,
    },
    /// Requests take longer, by a drawn time each, in nanoseconds.
    Latency {
        /// How much.
        extra: Distribution,
    },
    /// There is no room for blocks of 4 KiB that were never written, as on a thin-provisioned device whose pool is full:
    /// requests that write to one fail. Discarding needs no room, nor does a write of zeroes that may unmap.
    Full,
}

/// Why a fault cannot be done to a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskFaultError {
    /// More than all.
    #[error("{0} ppm of requests: at most {PPM}")]
    Ppm(Ppm),
    /// The distribution of latencies is none.
    #[error("latency: {0}")]
    Latency(#[from] DistributionError),
    /// There are too many.
    #[error("more than {FAULTS_MAX} faults of one disk at a time")]
    TooMany,
}

impl DiskFault {
    /// The catalogue's fault, if it is one that a disk has for a while.
    #[must_use]
    pub fn of(fault: &Fault) -> Option<DiskFault> {
        match fault {
            Fault::DiskError { requests, ppm, .. } => {
                Some(DiskFault::Error { requests: *requests, ppm: *ppm })
            }
            Fault::DiskLatency { extra, .. } => Some(DiskFault::Latency { extra: extra.clone() }),
            Fault::DiskFull { .. } => Some(DiskFault::Full),
            _ => None,
        }
    }

    /// Whether it is one.
    ///
    /// # Errors
    /// It is not: why.
    pub fn check(&self) -> Result<(), DiskFaultError> {
        match self {
            DiskFault::Error { ppm, .. } if *ppm > PPM => Err(DiskFaultError::Ppm(*ppm)),
            DiskFault::Latency { extra } => Ok(extra.check()?),
            DiskFault::Error { .. } | DiskFault::Full => Ok(()),
        }
    }
}

/// The faults that a disk has now, by the names that whoever applied them gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Faults {
    active: BTreeMap<u64, DiskFault>,
}

impl Faults {
    pub(super) fn apply(&mut self, id: u64, fault: DiskFault) -> Result<(), DiskFaultError> {
        fault.check()?;
        if self.active.len() >= FAULTS_MAX && !self.active.contains_key(&id) {
            return Err(DiskFaultError::TooMany);
        }
        self.active.insert(id, fault);
        Ok(())
    }
    pub(super) fn heal(&mut self, id: u64) -> bool {
        self.active.remove(&id).is_some()
    }
    pub(super) fn heal_all(&mut self) {
        self.active.clear();
    }
    pub(super) fn active(&self) -> &BTreeMap<u64, DiskFault> {
        &self.active
    }
    /// Whether all of them are faults, and no more than there may be.
    pub(super) fn check(&self) -> Result<(), DiskFaultError> {
        if self.active.len() > FAULTS_MAX {
            return Err(DiskFaultError::TooMany);
        }
        self.active.values().try_for_each(DiskFault::check)
    }

    /// Whether a request of this kind to the machine's disk number `disk` fails. One draw for each fault that is about it, whatever the others said.
    pub(super) fn fails(&self, kind: Requests, disk: u8, streams: &mut Streams) -> bool {
        let mut fails = false;
        for fault in self.active.values() {
            if let DiskFault::Error { requests, ppm } = fault
                && (*requests == kind || *requests == Requests::All)
            {
                fails |= draw::hits(streams.get(Purpose::DiskErrors { disk }), *ppm);
            }
        }
        fails
    }
    /// How much longer a request to the machine's disk number `disk` takes, in nanoseconds.
    pub(super) fn extra_ns(&self, disk: u8, streams: &mut Streams) -> u64 {
        self.active.values().fold(0u64, |sum, fault| match fault {
            DiskFault::Latency { extra } => {
                sum.saturating_add(extra.draw(streams.get(Purpose::DiskLatency { disk })))
            }
            DiskFault::Error { .. } | DiskFault::Full => sum,
        })
    }
    /// Whether there is no room.
    pub(super) fn full(&self) -> bool {
        self.active.values().any(|fault| *fault == DiskFault::Full)
    }
}

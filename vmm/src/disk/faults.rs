//! Active faults of a disk: requests fail, take longer, or find no space.
//!
//! Faults belong to the drive and not to its machine, so they persist when the machine loses power. Bit rot is not an
//! active fault, because it happens at once ([`super::Disk::rot`]).
//!
//! **Invariant.** A request to which no fault applies draws no random number. It does not even open the random stream.

use std::collections::BTreeMap;

use everett_fault::distribution::DistributionError;
use everett_fault::{DiskFault, PPM, Ppm, Requests};
use everett_streams::{Purpose, Streams};
use serde::{Deserialize, Serialize};

use super::draw;

/// Maximum number of active faults of a disk.
pub const FAULTS_MAX: usize = 64;

/// Error of applying a fault to a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskFaultError {
    /// The probability is above a million ppm.
    #[error("{0} ppm of requests: at most {PPM}")]
    Ppm(Ppm),
    /// The distribution of latencies is invalid.
    #[error("latency")]
    Latency(#[from] DistributionError),
    /// The disk already has [`FAULTS_MAX`] faults.
    #[error("more than {FAULTS_MAX} faults of one disk at a time")]
    TooMany,
}

/// Checks the parameters of a fault.
fn check(fault: &DiskFault) -> Result<(), DiskFaultError> {
    match fault {
        DiskFault::Error { ppm, .. } if *ppm > PPM => Err(DiskFaultError::Ppm(*ppm)),
        DiskFault::Latency { extra } => Ok(extra.check()?),
        DiskFault::Error { .. } | DiskFault::Full => Ok(()),
    }
}

/// Active faults of a disk, by the IDs that the callers of [`super::Disk::apply`] gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Faults {
    active: BTreeMap<u64, DiskFault>,
}

impl Faults {
    pub(super) fn apply(&mut self, id: u64, fault: DiskFault) -> Result<(), DiskFaultError> {
        check(&fault)?;
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
    /// Checks the number of faults and the parameters of each fault.
    pub(super) fn check(&self) -> Result<(), DiskFaultError> {
        if self.active.len() > FAULTS_MAX {
            return Err(DiskFaultError::TooMany);
        }
        self.active.values().try_for_each(check)
    }

    /// True if a request of this kind fails on the machine's disk number `disk`. Draws once for each fault that
    /// applies, even if an earlier fault already makes the request fail.
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
    /// Returns the additional latency of a request to the machine's disk number `disk`, in nanoseconds.
    pub(super) fn extra_ns(&self, disk: u8, streams: &mut Streams) -> u64 {
        self.active.values().fold(0u64, |sum, fault| match fault {
            DiskFault::Latency { extra } => {
                sum.saturating_add(extra.draw(streams.get(Purpose::DiskLatency { disk })))
            }
            DiskFault::Error { .. } | DiskFault::Full => sum,
        })
    }
    /// True if a fault leaves no space for blocks that were never written.
    pub(super) fn full(&self) -> bool {
        self.active.values().any(|fault| *fault == DiskFault::Full)
    }
}

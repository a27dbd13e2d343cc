//! Faults of what a disk holds.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::FaultKind;
use crate::check::{self, FieldError, within};

/// Allowed number of bits that flip at once.
pub const BIT_ROT_BITS: RangeInclusive<u32> = 1..=65_536;

/// Fault of a disk's contents. It happens at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediumFault {
    /// Flips bits in sectors that were written.
    BitRot {
        /// Number of bits.
        bits: u32,
    },
}

impl MediumFault {
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            MediumFault::BitRot { .. } => FaultKind::BitRot,
        }
    }

    /// Returns an error for each value that is out of bounds, in the order of the fields.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        match self {
            MediumFault::BitRot { bits } => check::errors([("bits", within(*bits, &BIT_ROT_BITS, "bits"))]),
        }
    }
}

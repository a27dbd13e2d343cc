//! Faults of a disk's contents.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::FaultKind;
use crate::check::{self, FieldError, within};

/// Bounds of the number of bits that flip at once.
pub const BIT_ROT_BITS: RangeInclusive<u32> = 1..=65_536;

/// Fault of a disk's contents. It is instantaneous.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediumFault {
    /// Random bits flip in sectors that were written.
    BitRot {
        /// Number of bits that flip.
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

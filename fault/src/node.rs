//! Faults of machines: their power, CPU and clock.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::check::{self, FieldError, at_most, times, within};
use crate::{Distribution, FaultKind, PPM, Ppm};

/// Allowed remaining speed of a slowed CPU, in parts per million. A CPU that stands still is a pause instead.
pub const SLOW_CPU_PPM: RangeInclusive<Ppm> = 1_000..=PPM;
/// Maximum clock drift in either direction, in parts per million.
pub const CLOCK_DRIFT_PPM_MAX: i32 = 500_000;
/// Allowed mean number of instructions from one stall to the next.
pub const STALL_EVERY_INSTRUCTIONS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Maximum length of a stall, in nanoseconds: one second. A longer stop is a pause instead.
pub const STALL_NS_MAX: u64 = 1_000_000_000;

/// Fault of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeFault {
    /// Cuts the power. Each write that its disk had not flushed is lost, torn or kept, at random.
    PowerLoss {
        /// Kind of the restart when the fault ends. With `None` the node stays off until the end of the workload, when
        /// the session switches it on for the checks.
        restart: Option<Restart>,
        /// True if a sector may be written in part. Correct software may rely on sectors being written whole.
        tear_sectors: bool,
    },
    /// Resets the node: its memory is lost, its disks are not. The node starts again at once.
    Reset {
        /// Kind of the restart.
        restart: Restart,
    },
    /// Stops the node's execution while the world goes on.
    Pause,
    /// Slows down the CPU.
    SlowCpu {
        /// Remaining speed, in parts per million.
        ppm: Ppm,
    },
    /// Makes the clock run fast or slow.
    ClockDrift {
        /// Drift in parts per million. Negative is slow.
        ppm: i32,
    },
    /// Steals time at random instructions, so that the running program is preempted.
    Stalls {
        /// Mean number of instructions between stalls. Each gap is drawn uniformly from 1 to twice this number.
        every_instructions: u64,
        /// Length of each stall, in nanoseconds.
        stall: Distribution,
    },
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

impl NodeFault {
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            NodeFault::PowerLoss { .. } => FaultKind::PowerLoss,
            NodeFault::Reset { .. } => FaultKind::Reset,
            NodeFault::Pause => FaultKind::Pause,
            NodeFault::SlowCpu { .. } => FaultKind::SlowCpu,
            NodeFault::ClockDrift { .. } => FaultKind::ClockDrift,
            NodeFault::Stalls { .. } => FaultKind::Stalls,
        }
    }

    /// Returns an error for each value that is out of bounds, in the order of the fields.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        match self {
            NodeFault::PowerLoss { .. } | NodeFault::Reset { .. } | NodeFault::Pause => Vec::new(),
            NodeFault::SlowCpu { ppm } => check::errors([("ppm", within(*ppm, &SLOW_CPU_PPM, "ppm"))]),
            NodeFault::ClockDrift { ppm } => {
                let drift = -CLOCK_DRIFT_PPM_MAX..=CLOCK_DRIFT_PPM_MAX;
                check::errors([("ppm", within(*ppm, &drift, "ppm"))])
            }
            NodeFault::Stalls { every_instructions, stall } => check::errors([
                (
                    "every_instructions",
                    within(*every_instructions, &STALL_EVERY_INSTRUCTIONS, "instructions"),
                ),
                ("stall", times(stall).and_then(|()| at_most(stall, STALL_NS_MAX))),
            ]),
        }
    }
}

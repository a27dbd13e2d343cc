//! Faults of machines: their power, CPU and clock.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::check::{self, FieldError, at_most, times, within};
use crate::{Distribution, FaultKind, PPM, Ppm};

/// Bounds of the remaining speed of a slowed CPU, in ppm. To stop a CPU completely, plans use a pause.
pub const SLOW_CPU_PPM: RangeInclusive<Ppm> = 1_000..=PPM;
/// Maximum clock drift in either direction, in ppm.
pub const CLOCK_DRIFT_PPM_MAX: i32 = 500_000;
/// Bounds of the mean number of instructions from one stall to the next.
pub const STALL_EVERY_INSTRUCTIONS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Maximum length of a stall, in nanoseconds: one second. For a longer stop, plans use a pause.
pub const STALL_NS_MAX: u64 = 1_000_000_000;

/// Fault of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeFault {
    /// The node loses power. Each write that the disk had not flushed is lost, torn or kept, at random.
    PowerLoss {
        /// How the node restarts when the fault ends. With `None` the node stays off until the end of the workload.
        /// Everett then switches it on for the checks.
        restart: Option<Restart>,
        /// True if a sector can be left partly written. Correct software can then fail, because it may rely on whole
        /// sectors.
        tear_sectors: bool,
    },
    /// The node is reset and starts again at once. It loses its memory, but keeps the contents of its disks.
    Reset {
        /// How the node restarts.
        restart: Restart,
    },
    /// The node stops executing, and the rest of the world continues.
    Pause,
    /// The CPU runs slower.
    SlowCpu {
        /// Remaining speed, in ppm.
        ppm: Ppm,
    },
    /// The clock runs fast or slow.
    ClockDrift {
        /// Drift, in ppm. A clock with a negative drift is slow.
        ppm: i32,
    },
    /// The node stalls at random instructions. Timers expire during a stall, so the kernel preempts the running
    /// program.
    Stalls {
        /// Mean number of instructions between stalls. The number before each stall is uniformly random, from 1 to
        /// twice the mean.
        every_instructions: u64,
        /// Length of each stall, in nanoseconds.
        stall: Distribution,
    },
}

/// How a node restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Restores the node's stored restart point, i.e. a state in which only the kernel and the agent (Everett's program
    /// in the guest) run. This takes almost no host time.
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

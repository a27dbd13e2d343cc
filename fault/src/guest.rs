//! Faults inside a guest, which its agent carries out.

use serde::{Deserialize, Serialize};

use crate::check::{self, FieldError, arguments, at_least, times, within};
use crate::{Distribution, FaultKind};

/// Maximum clock step in either direction, in nanoseconds: 366 days.
pub const CLOCK_STEP_NS_MAX: i64 = 366 * 86_400 * 1_000_000_000;
/// Minimum time between two changes of priorities, in nanoseconds. Each change is a request to the agent.
pub const PRIORITIES_EVERY_NS_MIN: u64 = 1_000_000;
/// Fault inside a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestFault {
    /// Sets CLOCK_REALTIME forward or back, as NTP would.
    ClockStep {
        /// Step in nanoseconds.
        step_ns: i64,
    },
    /// Gives the threads of a unit random real-time priorities, which change at random times.
    Priorities {
        /// Unit whose threads are affected.
        unit: String,
        /// Time between two changes, in nanoseconds.
        every: Distribution,
    },
    /// Reseeds the random generator of the guest's kernel.
    Reseed,
    /// Runs a command of the user.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Asks a service to end, kills it if it does not, and starts it again, as `docker compose restart` does.
    RestartService {
        /// Service of the node.
        unit: String,
    },
}

impl GuestFault {
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            GuestFault::ClockStep { .. } => FaultKind::ClockStep,
            GuestFault::Priorities { .. } => FaultKind::Priorities,
            GuestFault::Reseed => FaultKind::Reseed,
            GuestFault::Command { .. } => FaultKind::Command,
            GuestFault::RestartService { .. } => FaultKind::RestartService,
        }
    }

    /// Returns an error for each value that is out of bounds, in the order of the fields.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        match self {
            GuestFault::ClockStep { step_ns } => {
                let step = -CLOCK_STEP_NS_MAX..=CLOCK_STEP_NS_MAX;
                check::errors([("step", within(*step_ns, &step, "ns"))])
            }
            GuestFault::Priorities { every, .. } => {
                let bounded = times(every).and_then(|()| at_least(every, PRIORITIES_EVERY_NS_MIN));
                check::errors([("every", bounded)])
            }
            GuestFault::Command { argv } => check::errors([("argv", arguments(argv))]),
            GuestFault::Reseed | GuestFault::RestartService { .. } => Vec::new(),
        }
    }
}

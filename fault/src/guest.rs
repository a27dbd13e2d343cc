//! Faults inside a guest, which the agent (Everett's program in the guest) carries out.

use serde::{Deserialize, Serialize};

use crate::check::{self, FieldError, arguments, at_least, times, within};
use crate::{Distribution, FaultKind};

/// Maximum clock step in either direction, in nanoseconds: 366 days.
pub const CLOCK_STEP_NS_MAX: i64 = 366 * 86_400 * 1_000_000_000;
/// Minimum time between two changes of priorities, in nanoseconds: 1 ms. The bound limits the number of requests to the
/// agent, which gets one for each change.
pub const PRIORITIES_EVERY_NS_MIN: u64 = 1_000_000;
/// Fault inside a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestFault {
    /// Sets CLOCK_REALTIME forward or back, as NTP does.
    ClockStep {
        /// Size of the step, in nanoseconds. A negative step sets the clock back.
        step_ns: i64,
    },
    /// Gives the threads of a unit random real-time priorities, which change at random times. A unit is a service
    /// or a driver. A driver is a client that sends requests to the services.
    Priorities {
        /// Name of the unit.
        unit: String,
        /// Time between two changes, in nanoseconds.
        every: Distribution,
    },
    /// Reseeds the random number generator of the guest's kernel.
    Reseed,
    /// Runs a command of the operator.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Stops a service and starts it again, like `docker compose restart`. If the service does not stop by itself, it
    /// is killed.
    RestartService {
        /// Name of the service.
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

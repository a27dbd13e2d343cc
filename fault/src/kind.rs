//! Kinds of faults, and the properties that all faults of a kind share.

use serde::{Deserialize, Serialize};

/// Kind of a fault, without the fault's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "documented at the variants of each target's faults")]
pub enum FaultKind {
    Latency,
    Loss,
    Duplicate,
    Reorder,
    Corrupt,
    Bandwidth,
    Partition,
    Clog,
    PowerLoss,
    Reset,
    Pause,
    SlowCpu,
    DiskError,
    DiskLatency,
    DiskFull,
    BitRot,
    ClockDrift,
    ClockStep,
    Stalls,
    Priorities,
    Reseed,
    Command,
    RestartService,
}

impl FaultKind {
    /// All kinds, in the order in which [`FaultKind`] declares them.
    pub const ALL: [FaultKind; 23] = [
        FaultKind::Latency,
        FaultKind::Loss,
        FaultKind::Duplicate,
        FaultKind::Reorder,
        FaultKind::Corrupt,
        FaultKind::Bandwidth,
        FaultKind::Partition,
        FaultKind::Clog,
        FaultKind::PowerLoss,
        FaultKind::Reset,
        FaultKind::Pause,
        FaultKind::SlowCpu,
        FaultKind::DiskError,
        FaultKind::DiskLatency,
        FaultKind::DiskFull,
        FaultKind::BitRot,
        FaultKind::ClockDrift,
        FaultKind::ClockStep,
        FaultKind::Stalls,
        FaultKind::Priorities,
        FaultKind::Reseed,
        FaultKind::Command,
        FaultKind::RestartService,
    ];

    /// Returns the kind's name in plans, world files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Latency => "latency",
            FaultKind::Loss => "loss",
            FaultKind::Duplicate => "duplicate",
            FaultKind::Reorder => "reorder",
            FaultKind::Corrupt => "corrupt",
            FaultKind::Bandwidth => "bandwidth",
            FaultKind::Partition => "partition",
            FaultKind::Clog => "clog",
            FaultKind::PowerLoss => "power_loss",
            FaultKind::Reset => "reset",
            FaultKind::Pause => "pause",
            FaultKind::SlowCpu => "slow_cpu",
            FaultKind::DiskError => "disk_error",
            FaultKind::DiskLatency => "disk_latency",
            FaultKind::DiskFull => "disk_full",
            FaultKind::BitRot => "bit_rot",
            FaultKind::ClockDrift => "clock_drift",
            FaultKind::ClockStep => "clock_step",
            FaultKind::Stalls => "stalls",
            FaultKind::Priorities => "priorities",
            FaultKind::Reseed => "reseed",
            FaultKind::Command => "command",
            FaultKind::RestartService => "restart_service",
        }
    }

    /// Returns the kind with this name, or `None` if the name is unknown.
    #[must_use]
    pub fn named(name: &str) -> Option<FaultKind> {
        FaultKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True if the fault lasts for some time, and false if it is instantaneous.
    #[must_use]
    pub const fn lasts(self) -> bool {
        !matches!(
            self,
            FaultKind::Reset
                | FaultKind::BitRot
                | FaultKind::ClockStep
                | FaultKind::Reseed
                | FaultKind::Command
                | FaultKind::RestartService
        )
    }

    /// True if the agent (Everett's program in the guest) carries out the fault. The node must then be running.
    #[must_use]
    pub const fn needs_agent(self) -> bool {
        matches!(
            self,
            FaultKind::ClockStep
                | FaultKind::Priorities
                | FaultKind::Reseed
                | FaultKind::Command
                | FaultKind::RestartService
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_serialised_form_and_can_be_parsed() {
        for kind in FaultKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{:?}", kind.name()));
            assert_eq!(FaultKind::named(kind.name()), Some(kind));
        }
        assert!(FaultKind::ALL.is_sorted_by(|a, b| a < b));
        assert_eq!(FaultKind::named("Latency"), None);
    }
}

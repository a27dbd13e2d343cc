//! Errors of the `[faults]` table of a world file.

use everett_fault::FaultError;

use crate::plan::error::Problem;

/// Error of the `[faults]` table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}")]
pub struct ConfigError {
    /// Key of the setting, such as `partition.for`.
    pub key: String,
    /// Problem with the key's value.
    #[source]
    pub what: ConfigProblem,
}

/// Problem with the value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// A value is too small or too large.
    #[error("must be from {least} to {most}, not {found}")]
    Bounds {
        /// Actual value.
        found: String,
        /// Minimum.
        least: String,
        /// Maximum.
        most: String,
    },
    /// The first value of a range is above the second.
    #[error("the first of the two must not be above the second")]
    Range,
    /// Quiet periods, i.e. times without faults, are so long that each lasts until the next one begins.
    #[error("quiet periods must end before the next one begins")]
    AlwaysQuiet,
    /// The named node does not exist.
    #[error(transparent)]
    Name(#[from] Problem),
    /// A command that a fault would run in a guest is invalid.
    #[error(transparent)]
    Command(#[from] FaultError),
}

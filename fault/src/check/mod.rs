//! Bounds of each fault's values, enforced for hand-written and drawn faults alike.
//!
//! Not here: the check that the named nodes, disks and units exist, which depends on the world.

use std::ops::RangeInclusive;

use super::distribution::DistributionError;
use super::{Distribution, Fault, PPM, Ppm};

/// Allowed bandwidth of a link, in bits per second. With a lower minimum, one frame could occupy a link for hours.
pub const BITS_PER_S: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Allowed remaining speed of a slowed CPU, in parts per million. A CPU that stands still is a pause instead.
pub const SLOW_CPU_PPM: RangeInclusive<Ppm> = 1_000..=PPM;
/// Maximum clock drift in either direction, in parts per million.
pub const CLOCK_DRIFT_PPM_MAX: i32 = 500_000;
/// Maximum clock step in either direction, in nanoseconds: 366 days.
pub const CLOCK_STEP_NS_MAX: i64 = 366 * 86_400 * 1_000_000_000;
/// Allowed number of bits that flip at once.
pub const BIT_ROT_BITS: RangeInclusive<u32> = 1..=65_536;
/// Allowed mean number of instructions from one stall to the next.
pub const STALL_EVERY_INSTRUCTIONS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Maximum length of a stall, in nanoseconds: one second. A longer stop is a pause instead.
pub const STALL_NS_MAX: u64 = 1_000_000_000;
/// Minimum time between two changes of priorities, in nanoseconds. Each change is a request to the agent.
pub const PRIORITIES_EVERY_NS_MIN: u64 = 1_000_000;
/// Maximum number of a command's arguments, including the program.
pub const ARGUMENTS_MAX: usize = 1_024;
/// Maximum total size of a command's arguments, in bytes.
pub const ARGV_BYTES_MAX: usize = 8 << 10;

/// A field of a fault whose value is out of bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {what}")]
pub struct FieldError {
    /// Name of the field, as written in plans.
    pub field: &'static str,
    /// Description of the violated bound.
    pub what: FaultError,
}

/// Reason why a value is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// A number outside its allowed range.
    #[error("must be from {least} to {most} {unit}, not {found}")]
    Bounds {
        /// The number that was given.
        found: i128,
        /// Least allowed value.
        least: i128,
        /// Greatest allowed value.
        most: i128,
        /// Unit of the number.
        unit: &'static str,
    },
    /// An invalid distribution.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// A distribution whose least time is too short.
    #[error("gives times down to {found} ns: at least {least} ns are needed")]
    Short {
        /// Least time that the distribution gives, in nanoseconds.
        found: u64,
        /// Least allowed time, in nanoseconds.
        least: u64,
    },
    /// A distribution whose greatest time is too long.
    #[error("gives times up to {found} ns: at most {most} ns are allowed")]
    Long {
        /// Greatest time that the distribution gives, in nanoseconds.
        found: u64,
        /// Greatest allowed time, in nanoseconds.
        most: u64,
    },
    /// An argument vector that is empty, or whose first element is empty.
    #[error("the first element must name a program")]
    NoProgram,
    /// An argument vector that is too long or contains a NUL byte.
    #[error("at most {ARGUMENTS_MAX} arguments with {ARGV_BYTES_MAX} bytes together, none of them NUL")]
    Arguments,
}

impl Fault {
    /// Returns an error for each value that is out of bounds, in the order of the fault's fields.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        let mut found = Vec::new();
        let mut check = |field, result: Result<(), FaultError>| {
            if let Err(what) = result {
                found.push(FieldError { field, what });
            }
        };
        match self {
            Fault::Latency { extra, .. } | Fault::DiskLatency { extra, .. } => check("extra", times(extra)),
            Fault::Loss { ppm, .. }
            | Fault::Duplicate { ppm, .. }
            | Fault::Corrupt { ppm, .. }
            | Fault::DiskError { ppm, .. } => check("ppm", share(*ppm)),
            Fault::Reorder { ppm, hold, .. } => {
                check("ppm", share(*ppm));
                check("hold", times(hold));
            }
            Fault::Bandwidth { bits_per_s, .. } => {
                check("bits_per_s", within(*bits_per_s, &BITS_PER_S, "bits a second"));
            }
            Fault::SlowCpu { ppm, .. } => check("ppm", within(*ppm, &SLOW_CPU_PPM, "ppm")),
            Fault::BitRot { bits, .. } => check("bits", within(*bits, &BIT_ROT_BITS, "bits")),
            Fault::ClockDrift { ppm, .. } => {
                check("ppm", within(*ppm, &(-CLOCK_DRIFT_PPM_MAX..=CLOCK_DRIFT_PPM_MAX), "ppm"));
            }
            Fault::ClockStep { step_ns, .. } => {
                check("step", within(*step_ns, &(-CLOCK_STEP_NS_MAX..=CLOCK_STEP_NS_MAX), "ns"));
            }
            Fault::Stalls { every_instructions, stall, .. } => {
                check(
                    "every_instructions",
                    within(*every_instructions, &STALL_EVERY_INSTRUCTIONS, "instructions"),
                );
                check("stall", times(stall).and_then(|()| at_most(stall, STALL_NS_MAX)));
            }
            Fault::Priorities { every, .. } => {
                check("every", times(every).and_then(|()| at_least(every, PRIORITIES_EVERY_NS_MIN)));
            }
            Fault::Command { argv, .. } => check("argv", arguments(argv)),
            Fault::Partition { .. }
            | Fault::Clog { .. }
            | Fault::PowerLoss { .. }
            | Fault::Reset { .. }
            | Fault::Pause { .. }
            | Fault::DiskFull { .. }
            | Fault::Reseed { .. }
            | Fault::RestartService { .. } => {}
        }
        found
    }
}

fn within<T: Copy + PartialOrd + Into<i128>>(
    found: T,
    bounds: &RangeInclusive<T>,
    unit: &'static str,
) -> Result<(), FaultError> {
    if bounds.contains(&found) {
        return Ok(());
    }
    let (least, most) = ((*bounds.start()).into(), (*bounds.end()).into());
    Err(FaultError::Bounds { found: found.into(), least, most, unit })
}

fn share(ppm: Ppm) -> Result<(), FaultError> {
    within(ppm, &(0..=PPM), "ppm")
}

fn times(distribution: &Distribution) -> Result<(), FaultError> {
    Ok(distribution.check()?)
}

fn at_least(distribution: &Distribution, least: u64) -> Result<(), FaultError> {
    let found = distribution.least();
    if found < least { Err(FaultError::Short { found, least }) } else { Ok(()) }
}

fn at_most(distribution: &Distribution, most: u64) -> Result<(), FaultError> {
    let found = distribution.most();
    if found > most { Err(FaultError::Long { found, most }) } else { Ok(()) }
}

fn arguments(argv: &[String]) -> Result<(), FaultError> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(FaultError::NoProgram);
    }
    let bytes: usize = argv.iter().map(String::len).sum();
    if argv.len() > ARGUMENTS_MAX || bytes > ARGV_BYTES_MAX || argv.iter().any(|a| a.contains('\0')) {
        return Err(FaultError::Arguments);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

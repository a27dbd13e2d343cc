//! The bounds of each fault's values, which hold whoever made the fault.
//!
//! Not here: whether the nodes, disks and units that it names exist, which depends on the world.

use std::ops::RangeInclusive;

use super::distribution::DistributionError;
use super::{Distribution, Fault, PPM, Ppm};

/// A link's bandwidth, in bits a second: slower ones would need days for one frame.
pub const BITS_PER_S: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// What may be left of a CPU's speed, in parts per million. A CPU that stands still is a pause.
pub const SLOW_CPU_PPM: RangeInclusive<Ppm> = 1_000..=PPM;
/// How wrong a clock may run, in parts per million, either way.
pub const CLOCK_DRIFT_PPM_MAX: i32 = 500_000;
/// How far a clock may be set, in nanoseconds, either way: 366 days.
pub const CLOCK_STEP_NS_MAX: i64 = 366 * 86_400 * 1_000_000_000;
/// How many bits may flip at once.
pub const BIT_ROT_BITS: RangeInclusive<u32> = 1..=65_536;
/// Mean instructions from one stall to the next.
pub const STALL_EVERY_INSTRUCTIONS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// The longest stall, in nanoseconds: a second. What takes longer is a pause.
pub const STALL_NS_MAX: u64 = 1_000_000_000;
/// The least time between two changes of priorities, in nanoseconds: each is a request to the agent.
pub const PRIORITIES_EVERY_NS_MIN: u64 = 1_000_000;
/// The most arguments of a command, its program included.
pub const ARGUMENTS_MAX: usize = 1_024;
/// The most bytes of a command's arguments together.
pub const ARGV_BYTES_MAX: usize = 8 << 10;

/// A value out of its bounds, and which of the fault's it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {what}")]
pub struct FieldError {
    /// The value's name, as plans have it.
    pub field: &'static str,
    /// What is wrong with it.
    pub what: FaultError,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// A number that is too small or too large.
    #[error("must be from {least} to {most} {unit}, not {found}")]
    Bounds {
        /// The number.
        found: i128,
        /// The least that is allowed.
        least: i128,
        /// The most that is allowed.
        most: i128,
        /// What is counted.
        unit: &'static str,
    },
    /// No distribution.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// A distribution that gives times which are too short.
    #[error("gives times down to {found} ns: at least {least} ns are needed")]
    Short {
        /// The least time that it gives.
        found: u64,
        /// The least that is allowed.
        least: u64,
    },
    /// A distribution that gives times which are too long.
    #[error("gives times up to {found} ns: at most {most} ns are allowed")]
    Long {
        /// The greatest time that it gives.
        found: u64,
        /// The greatest that is allowed.
        most: u64,
    },
    /// No program in an argument vector.
    #[error("the first element must name a program")]
    NoProgram,
    /// An argument vector that no kernel takes.
    #[error("at most {ARGUMENTS_MAX} arguments with {ARGV_BYTES_MAX} bytes together, none of them NUL")]
    Arguments,
}

impl Fault {
    /// Every value that is out of its bounds, in the order of the fault's fields.
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
            | Fault::Reseed { .. } => {}
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

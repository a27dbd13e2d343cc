//! Checks of a fault's values, both for handwritten faults and for faults that Everett draws at random.
//!
//! Not here: bounds of single faults, which are in the faults' files. Also not here: the check that the named nodes,
//! disks and units exist, because that check needs the names of the world.

use std::ops::RangeInclusive;

use crate::distribution::DistributionError;
use crate::{Distribution, PPM, Ppm};

/// Maximum number of a command's arguments, including the program.
pub const ARGUMENTS_MAX: usize = 1_024;
/// Maximum total size of a command's arguments, in bytes.
pub const ARGV_BYTES_MAX: usize = 8 << 10;

/// Field of a fault whose value is invalid, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Name of the field in plans.
    pub field: &'static str,
    /// Reason why the value is invalid.
    pub what: FaultError,
}

/// Reason why a value is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// A number is out of bounds.
    #[error("must be from {least} to {most} {unit}, not {found}")]
    Bounds {
        /// Given number.
        found: i128,
        /// Minimum.
        least: i128,
        /// Maximum.
        most: i128,
        /// Unit of the numbers.
        unit: &'static str,
    },
    /// A distribution is invalid.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// A distribution can give times that are too short.
    #[error("gives times down to {found} ns: at least {least} ns are needed")]
    Short {
        /// Minimum time of the distribution, in nanoseconds.
        found: u64,
        /// Minimum allowed time, in nanoseconds.
        least: u64,
    },
    /// A distribution can give times that are too long.
    #[error("gives times up to {found} ns: at most {most} ns are allowed")]
    Long {
        /// Maximum time of the distribution, in nanoseconds.
        found: u64,
        /// Maximum allowed time, in nanoseconds.
        most: u64,
    },
    /// An argument vector is empty, or its first element is empty.
    #[error("the first element must name a program")]
    NoProgram,
    /// An argument vector is too long or contains a NUL byte.
    #[error("at most {ARGUMENTS_MAX} arguments with {ARGV_BYTES_MAX} bytes together, none of them NUL")]
    Arguments,
}

/// Returns an error for each failed check.
pub(crate) fn errors<const N: usize>(checks: [(&'static str, Result<(), FaultError>); N]) -> Vec<FieldError> {
    checks.into_iter().filter_map(|(field, check)| Some(FieldError { field, what: check.err()? })).collect()
}

pub(crate) fn within<T: Copy + PartialOrd + Into<i128>>(
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

pub(crate) fn share(ppm: Ppm) -> Result<(), FaultError> {
    within(ppm, &(0..=PPM), "ppm")
}

pub(crate) fn times(distribution: &Distribution) -> Result<(), FaultError> {
    Ok(distribution.check()?)
}

pub(crate) fn at_least(distribution: &Distribution, least: u64) -> Result<(), FaultError> {
    let found = distribution.least();
    if found < least { Err(FaultError::Short { found, least }) } else { Ok(()) }
}

pub(crate) fn at_most(distribution: &Distribution, most: u64) -> Result<(), FaultError> {
    let found = distribution.most();
    if found > most { Err(FaultError::Long { found, most }) } else { Ok(()) }
}

pub(crate) fn arguments(argv: &[String]) -> Result<(), FaultError> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(FaultError::NoProgram);
    }
    let bytes: usize = argv.iter().map(String::len).sum();
    if argv.len() > ARGUMENTS_MAX || bytes > ARGV_BYTES_MAX || argv.iter().any(|a| a.contains('\0')) {
        return Err(FaultError::Arguments);
    }
    Ok(())
}

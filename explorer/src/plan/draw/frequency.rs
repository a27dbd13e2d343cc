//! Bounds of the times between faults, and between quiet periods, in which no fault is active.

use std::ops::RangeInclusive;

use crate::plan::limits::AT_NS_MAX;

/// Bounds of the mean time between two faults of a kind, in nanoseconds: 100 ms to 1,000 days.
pub(super) const EVERY_NS: RangeInclusive<u64> = 100_000_000..=86_400_000_000_000_000;
/// Bounds of the time from the start of one quiet period to the start of the next, in nanoseconds: 10 s to one day.
pub(super) const QUIET_EVERY_NS: RangeInclusive<u64> = 10_000_000_000..=AT_NS_MAX;

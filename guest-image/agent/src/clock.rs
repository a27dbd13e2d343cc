//! The guest's clocks.

use everett_protocol::WallClock;
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};

use crate::failure::{Context as _, Failure};

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock counts from boot, so both fields are positive. 64 bits last for 584 years.
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Converts milliseconds to nanoseconds. The protocol bounds all intervals to one day.
pub(crate) fn ms(milliseconds: u64) -> u64 {
    milliseconds.saturating_mul(1_000_000)
}

/// Converts nanoseconds to a timeout for poll(2).
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

/// Sets `CLOCK_REALTIME` to a time that the host has sent.
pub(crate) fn set(clock: WallClock) -> Result<(), Failure> {
    let time = Timespec { tv_sec: clock.seconds, tv_nsec: i64::from(clock.nanoseconds) };
    clock_settime(ClockId::Realtime, time).context(|| format!("set the clock to {} s", clock.seconds))
}

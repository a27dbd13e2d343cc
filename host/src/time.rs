//! Host time, to show progress and to measure speed. No decision of a run may depend on it, unless a test deliberately
//! lets it leak into a guest's computation.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime};

/// Returns the subsecond part of the host's clock, in nanoseconds. Used only where a test, or a hidden option for
/// tests, lets host time leak into a guest's computation.
#[must_use]
pub fn noise() -> u32 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.subsec_nanos())
}

/// Returns the host's clock in seconds since 1970.
#[must_use]
pub fn unix_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// A clock that measures host time from its start.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch.
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Returns the host time since the start.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the host time since the start, in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64()
    }

    /// Sleeps until `ns` nanoseconds have passed since the start, or until `enough` returns true. Calls `enough` every
    /// 50 ms.
    pub fn wait_for_ns(self, ns: u64, enough: impl Fn() -> bool) {
        const NAP: Duration = Duration::from_millis(50);
        loop {
            let left = Duration::from_nanos(ns).saturating_sub(self.elapsed());
            if left.is_zero() || enough() {
                return;
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

/// A clock that measures the CPU time that the current thread uses after the clock's start. Reports show it as the cost
/// of branches.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock(Duration);

impl CpuClock {
    /// Starts a clock for the current thread.
    #[must_use]
    pub fn start() -> CpuClock {
        CpuClock(CpuClock::now())
    }

    /// Returns the CPU time since the start, in nanoseconds. Only the thread that started the clock may call it.
    #[must_use]
    pub fn elapsed_ns(self) -> u64 {
        u64::try_from(CpuClock::now().saturating_sub(self.0).as_nanos()).unwrap_or(u64::MAX)
    }

    fn now() -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), nanoseconds)
    }
}

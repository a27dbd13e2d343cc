//! Host time, for progress and for figures about speed. Nothing that a run decides may come from here, but for the leaks
//! that tests plant on purpose.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime};

/// What a planted leak lets through: the nanoseconds of the host's clock.
#[must_use]
pub fn noise() -> u32 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.subsec_nanos())
}

/// Host time since it was made.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// How long ago it was started.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// [`Stopwatch::elapsed`] in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64()
    }

    /// Sleep until this many nanoseconds have passed since the start, or `enough` says so.
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

//! Host time, for progress and for figures about speed. Nothing that a run decides may come from here.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::{Duration, Instant};

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

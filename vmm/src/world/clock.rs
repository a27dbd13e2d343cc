//! A node's own clock: converts between the world's vtime and the machine's vtime.
//!
//! A machine counts its vtime from its power-on, and its crystal may be fast or slow. One linear map covers both the
//! time of power-on and the crystal's rate. The map uses only integers. A change of the rate starts a new map, whose
//! starting point is rounded to whole nanoseconds of the world's vtime.

use everett_fault::CLOCK_DRIFT_PPM_MAX as DRIFT_PPM_MAX;
use serde::{Deserialize, Serialize};

use crate::clock::VTIME_MAX;

const PPM: u128 = 1_000_000;

/// Clock of a node, relative to the world's vtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeClock {
    world_ns: u64,
    local_ns: u64,
    drift_ppm: i32,
}

impl NodeClock {
    /// Creates a clock that shows 0 at the world's vtime `world_ns`.
    #[must_use]
    pub fn started(world_ns: u64) -> NodeClock {
        NodeClock { world_ns, local_ns: 0, drift_ppm: 0 }
    }

    /// Returns the node's nanoseconds per million nanoseconds of the world.
    fn rate(&self) -> u128 {
        u128::from(1_000_000u32.saturating_add_signed(self.drift_ppm.clamp(-DRIFT_PPM_MAX, DRIFT_PPM_MAX)))
    }

    /// Returns the world's vtime at which the clock shows `local_ns`.
    #[must_use]
    pub fn world(&self, local_ns: u64) -> u64 {
        if self.drift_ppm == 0 {
            return local_ns.saturating_sub(self.local_ns).saturating_add(self.world_ns).min(VTIME_MAX);
        }
        let local = u128::from(local_ns.saturating_sub(self.local_ns));
        saturated(local * PPM / self.rate()).saturating_add(self.world_ns).min(VTIME_MAX)
    }

    /// Returns the first time on this clock at which the world's vtime is `world_ns` or later.
    #[must_use]
    pub fn local(&self, world_ns: u64) -> u64 {
        if self.drift_ppm == 0 {
            return world_ns.saturating_sub(self.world_ns).saturating_add(self.local_ns).min(VTIME_MAX);
        }
        let world = u128::from(world_ns.saturating_sub(self.world_ns));
        saturated((world * self.rate()).div_ceil(PPM)).saturating_add(self.local_ns).min(VTIME_MAX)
    }

    /// Sets the drift from the local time `local_ns` on, in parts per million. Clamps it to +/- [`DRIFT_PPM_MAX`].
    pub fn drift(&mut self, local_ns: u64, ppm: i32) {
        let world_ns = self.world(local_ns);
        *self = NodeClock { world_ns, local_ns, drift_ppm: ppm.clamp(-DRIFT_PPM_MAX, DRIFT_PPM_MAX) };
    }

    /// True if a decoded clock is valid.
    pub(super) fn is_sound(&self) -> bool {
        self.drift_ppm.unsigned_abs() <= DRIFT_PPM_MAX.unsigned_abs()
            && self.world_ns.max(self.local_ns) <= VTIME_MAX
    }
}

fn saturated(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(VTIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fast_clock_is_ahead() {
        let mut clock = NodeClock::started(1_000);
        assert_eq!((clock.world(0), clock.local(1_000), clock.local(0)), (1_000, 0, 0));
        clock.drift(500, 1_000);
        assert_eq!(clock.local(1_500 + 1_000_000), 500 + 1_001_000);
        clock.drift(500 + 1_001_000, -1_000);
        assert_eq!(clock.local(1_500 + 2_000_000), 500 + 1_001_000 + 999_000);
    }

    proptest! {
        /// `local` returns the first local time at which the world has reached a given vtime.
        #[test]
        fn local_is_the_first_time_at_a_vtime(start in 0u64..1 << 50, local in 0u64..1 << 50, ppm: i32, at in 0u64..1 << 50) {
            let mut clock = NodeClock::started(start);
            clock.drift(local, ppm);
            prop_assert!(clock.is_sound());
            let world = clock.world(local) + at;
            let first = clock.local(world);
            prop_assert!(clock.world(first) >= world);
            prop_assert!(first <= local || clock.world(first - 1) < world);
        }

        /// Setting the same drift again changes times by at most a nanosecond.
        #[test]
        fn a_new_anchor_changes_times_by_at_most_a_nanosecond(ppm in -DRIFT_PPM_MAX..DRIFT_PPM_MAX, a in 0u64..1 << 40, b in 0u64..1 << 40) {
            let mut clock = NodeClock::started(0);
            clock.drift(0, ppm);
            let whole = clock.world(a + b);
            clock.drift(a, ppm);
            prop_assert!(whole - clock.world(a + b) <= 1);
        }

        #[test]
        fn nothing_overflows(world_ns: u64, local_ns: u64, drift_ppm: i32, at: u64) {
            let clock = NodeClock { world_ns, local_ns, drift_ppm };
            prop_assert!(clock.world(at) <= VTIME_MAX && clock.local(at) <= VTIME_MAX);
        }
    }
}

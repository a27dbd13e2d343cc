//! A trail: digests of a machine at fixed vtimes, hashed into a chain.

use serde::{Deserialize, Serialize};

use crate::clock::VTIME_MAX;
use crate::digest::Digest;
use crate::machine::{Machine, Stop, Until};

/// Default distance between two points of a trail, in nanoseconds of vtime: 100 ms.
pub const TRAIL_INTERVAL_NS: u64 = 100_000_000;

/// Digests at the multiples of an interval, and one at the vtime at which the machine ends (powers off, for example).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trail {
    interval_ns: u64,
    points: Vec<(u64, Digest)>,
}

impl Trail {
    /// Creates an empty trail.
    ///
    /// # Panics
    /// Panics if the interval is zero.
    pub fn new(interval_ns: u64) -> Trail {
        assert!(interval_ns > 0, "the interval of a trail must not be zero");
        Trail { interval_ns, points: Vec::new() }
    }

    /// Returns the vtime in nanoseconds and the digest of each point, in ascending order.
    pub fn points(&self) -> &[(u64, Digest)] {
        &self.points
    }
    /// Returns the distance between two points, in nanoseconds of vtime.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Returns a digest of all points.
    pub fn digest(&self) -> Digest {
        let mut chain = [0; 32];
        for (vtime, digest) in &self.points {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&chain).update(&vtime.to_le_bytes()).update(&digest.0);
            chain = *hasher.finalize().as_bytes();
        }
        Digest(chain)
    }

    /// Returns the index of the first point at which two trails differ. If one trail is a prefix of the
    /// other, returns the length of the shorter trail. Returns `None` if the trails are equal.
    pub fn first_difference(&self, other: &Trail) -> Option<usize> {
        let common = self.points.len().min(other.points.len());
        (0..common)
            .find(|&i| self.points[i] != other.points[i])
            .or((self.points.len() != other.points.len()).then_some(common))
    }

    /// Runs a machine as [`Machine::run`] does, and adds its digest at each multiple of the interval and at its end.
    pub fn run(&mut self, machine: &mut Machine, until: &Until) -> Stop {
        loop {
            let next = self.next_point();
            let stop = machine.run(&Until { vtime: until.vtime.min(next), ..*until });
            let now = machine.vtime();
            let ended = matches!(stop, Stop::End(_)) && self.points.last().is_none_or(|&(at, _)| at < now);
            if now >= next || ended {
                // `now` can be slightly later than the multiple, if one instruction takes several nanoseconds.
                self.points.push((now, machine.digest()));
            }
            let short = matches!(stop, Stop::Time | Stop::Idle) && now < until.vtime.min(VTIME_MAX);
            let forever = stop == Stop::Idle && until.vtime >= VTIME_MAX;
            if !short || forever {
                return stop;
            }
        }
    }

    /// Adds a point.
    ///
    /// # Panics
    /// Panics if the trail already has a point at `vtime` or later.
    pub fn note(&mut self, vtime: u64, digest: Digest) {
        assert!(
            self.points.last().is_none_or(|&(at, _)| at < vtime),
            "the points of a trail must be in ascending order"
        );
        self.points.push((vtime, digest));
    }

    /// Returns the vtime of the next point: the first multiple of the interval after the last point. A new trail begins
    /// with the boot state at vtime 0.
    pub fn next_point(&self) -> u64 {
        self.points.last().map_or(0, |&(at, _)| (at / self.interval_ns + 1).saturating_mul(self.interval_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_chains() {
        let mut a = Trail::new(10);
        a.points = vec![(0, Digest([1; 32])), (10, Digest([2; 32]))];
        let mut b = a.clone();
        assert_eq!((a.first_difference(&b), a.digest()), (None, b.digest()));
        b.points.push((20, Digest([3; 32])));
        assert_eq!(a.first_difference(&b), Some(2));
        a.points.push((20, Digest([4; 32])));
        assert_eq!(a.first_difference(&b), Some(2));
        assert_ne!(a.digest(), b.digest());
    }
}

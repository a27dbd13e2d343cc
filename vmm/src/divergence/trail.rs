//! A trail: the chain of digests at fixed vtimes.

use serde::{Deserialize, Serialize};

use crate::clock::VTIME_MAX;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::machine::{Machine, Stop, Until};

/// The default distance of points, in nanoseconds: 100 ms.
pub const TRAIL_INTERVAL_NS: u64 = 100_000_000;

/// Digests at the multiples of an interval, and one where the machine came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trail {
    interval_ns: u64,
    points: Vec<(u64, Digest)>,
}

impl Trail {
    /// An empty trail.
    ///
    /// # Panics
    /// If the interval is zero.
    pub fn new(interval_ns: u64) -> Trail {
        assert!(interval_ns > 0, "a trail has an interval");
        Trail { interval_ns, points: Vec::new() }
    }

    /// vtimes and digests, in order.
    pub fn points(&self) -> &[(u64, Digest)] {
        &self.points
    }
    /// The distance of points in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// One digest of the whole chain.
    pub fn digest(&self) -> Digest {
        let mut chain = [0; 32];
        for (vtime, digest) in &self.points {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&chain).update(&vtime.to_le_bytes()).update(&digest.0);
            chain = *hasher.finalize().as_bytes();
        }
        Digest(chain)
    }

    /// The index of the first point at which two trails differ. A trail that is the other's beginning differs where it ends.
    pub fn first_difference(&self, other: &Trail) -> Option<usize> {
        let common = self.points.len().min(other.points.len());
        (0..common)
            .find(|&i| self.points[i] != other.points[i])
            .or((self.points.len() != other.points.len()).then_some(common))
    }

    /// Run a machine as [`Machine::run`] does, and note a digest at each multiple of the interval on the way.
    pub fn run<E: Engine>(&mut self, machine: &mut Machine<E>, until: &Until<'_>) -> Stop {
        loop {
            let next = self.next_point();
            let stop = machine.run(&Until { vtime: until.vtime.min(next), ..*until });
            let now = machine.vtime();
            let ended = matches!(stop, Stop::End(_)) && self.points.last().is_none_or(|&(at, _)| at < now);
            if now >= next || ended {
                // `now` can be a little later than the multiple when several nanoseconds pass with one instruction.
                self.points.push((now, machine.digest()));
            }
            let short = matches!(stop, Stop::Time | Stop::Idle) && now < until.vtime.min(VTIME_MAX);
            let forever = stop == Stop::Idle && until.vtime >= VTIME_MAX;
            if !short || forever {
                return stop;
            }
        }
    }

    /// Note a digest.
    ///
    /// # Panics
    /// The trail has come further than `vtime`.
    pub fn note(&mut self, vtime: u64, digest: Digest) {
        assert!(self.points.last().is_none_or(|&(at, _)| at < vtime), "a trail does not go back");
        self.points.push((vtime, digest));
    }

    /// When a digest is wanted next: the first multiple after the last point. The boot state, at vtime 0, is the first.
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

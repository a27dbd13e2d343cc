//! How coverage grew with the number of branches, in a bounded number of samples.

use super::super::limits::GROWTH_MAX;
use super::super::point::Kind;

/// Points after a number of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How many branches there were.
    pub branches: u64,
    /// How many points, by kind in the order of [`Kind::ALL`].
    pub points: [u64; Kind::ALL.len()],
}

impl Sample {
    /// How many points of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        Kind::ALL
            .into_iter()
            .zip(self.points)
            .find(|(other, _)| *other == kind)
            .map_or(0, |(_, points)| points)
    }
}

/// The curve: a sample for each so many branches, a power of two, and one for the last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Growth {
    /// Samples after 1, 2, 3, … times `1 << doublings` branches.
    samples: Vec<Sample>,
    doublings: u32,
    last: Option<Sample>,
}

impl Growth {
    /// One more branch, after which there are so many points.
    pub(in super::super) fn add(&mut self, points: [u64; Kind::ALL.len()]) {
        let sample = Sample { branches: self.branches().saturating_add(1), points };
        self.last = Some(sample);
        if sample.branches.is_multiple_of(self.stride()) {
            self.samples.push(sample);
        }
        if self.samples.len() > GROWTH_MAX {
            self.doublings += 1;
            let stride = self.stride();
            self.samples.retain(|sample| sample.branches.is_multiple_of(stride));
        }
    }

    /// The curve, in the order of branches. Ends with the last branch.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        let last = self.last.iter().filter(|last| self.samples.last() != Some(last));
        self.samples.iter().chain(last)
    }

    /// All of its numbers, for a hash.
    pub(in super::super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.samples().flat_map(|sample| std::iter::once(sample.branches).chain(sample.points))
    }

    fn branches(&self) -> u64 {
        self.last.map_or(0, |last| last.branches)
    }

    fn stride(&self) -> u64 {
        1u64.checked_shl(self.doublings).unwrap_or(u64::MAX)
    }
}

//! Growth of coverage: how many coverage points (e.g. abstract states) were reached after how many branches, in a
//! bounded number of samples.

use super::super::limits::GROWTH_MAX;
use super::super::point::Kind;

/// Number of coverage points that were reached by a number of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Number of branches.
    pub branches: u64,
    /// Number of points of each kind, in the order of [`Kind::ALL`].
    pub points: [u64; Kind::ALL.len()],
}

impl Sample {
    /// Returns the number of points of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        Kind::ALL
            .into_iter()
            .zip(self.points)
            .find(|(other, _)| *other == kind)
            .map_or(0, |(_, points)| points)
    }
}

/// Growth curve: one sample after every 2^k branches, and one sample for the last branch. k grows with the number of
/// branches, so that the number of samples stays bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Growth {
    /// Samples after 1, 2, 3, … times `1 << doublings` branches.
    samples: Vec<Sample>,
    doublings: u32,
    last: Option<Sample>,
}

impl Growth {
    /// Adds a branch. `points` has the totals after the branch.
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

    /// Returns the samples in the order of branches. The last sample is for the last branch.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        let last = self.last.iter().filter(|last| self.samples.last() != Some(last));
        self.samples.iter().chain(last)
    }

    /// Returns all numbers of the curve, as input for a hash.
    pub(in super::super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.samples().flat_map(|sample| {
            // If no program reported points through the SDK, the counts of these points are left out. The hash is then
            // the same as it was before Everett supported the SDK.
            let (all, of_sdk) = sample.points.split_at(Kind::OF_EVERY_WORLD);
            let of_sdk = of_sdk.iter().filter(|_| of_sdk.iter().any(|points| *points > 0));
            std::iter::once(sample.branches).chain(all.iter().copied()).chain(of_sdk.copied())
        })
    }

    fn branches(&self) -> u64 {
        self.last.map_or(0, |last| last.branches)
    }

    fn stride(&self) -> u64 {
        1u64.checked_shl(self.doublings).unwrap_or(u64::MAX)
    }
}

//! What was covered, and what may be left.

use serde::Serialize;

use crate::coverage::statistics::Incidence;
use crate::coverage::{Coverage, Kind};

const PPM: u128 = 1_000_000;

/// Coverage of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CoveredKind {
    /// The kind.
    pub kind: Kind,
    /// Points that were reached.
    pub points: u64,
    /// How many of them by one branch alone.
    pub once: u64,
    /// How many of them first in the last quarter of the branches.
    pub recent: u64,
    /// How many more there are likely to be, at the least: Chao's estimate.
    pub more: u64,
    /// The probability that the next point that is hit was never reached, in parts of a million: Good and Turing's estimate.
    /// `None` if there are no points.
    pub unseen_ppm: Option<u32>,
    /// How it grew.
    pub growth: Vec<GrowthPoint>,
}

/// A point of the growth curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GrowthPoint {
    /// After so many branches,
    pub branches: u64,
    /// so many points were reached.
    pub points: u64,
}

impl CoveredKind {
    pub(super) fn of(coverage: &Coverage, kind: Kind) -> CoveredKind {
        let incidence = coverage.incidence(kind);
        let Incidence { observed, hits, singletons, .. } = incidence;
        let growth: Vec<GrowthPoint> = coverage
            .growth()
            .samples()
            .map(|sample| GrowthPoint { branches: sample.branches, points: sample.of(kind) })
            .collect();
        let unseen = incidence.unseen();
        let ppm = u128::from(unseen.numerator) * PPM / u128::from(unseen.denominator.max(1));
        let richness = incidence.richness();
        let branches = coverage.branches();
        CoveredKind {
            kind,
            points: observed,
            once: singletons,
            recent: observed - points_at(&growth, branches - branches / 4).min(observed),
            more: (richness.numerator / richness.denominator.max(1)).saturating_sub(observed),
            unseen_ppm: u32::try_from(ppm).ok().filter(|_| hits > 0),
            growth,
        }
    }
}

/// The points after so many branches, as far as the curve has it: of samples, the last that is no later.
pub(super) fn points_at(growth: &[GrowthPoint], branches: u64) -> u64 {
    let after = growth.partition_point(|point| point.branches <= branches);
    after.checked_sub(1).and_then(|i| growth.get(i)).map_or(0, |point| point.points)
}

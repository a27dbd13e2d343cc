//! Coverage of one kind of points, e.g. states or orders of events: growth, and estimates of unreached points.

use serde::Serialize;

use everett_explorer::coverage::statistics::Incidence;
use everett_explorer::coverage::{Coverage, Kind};

const PPM: u128 = 1_000_000;

/// Number of reached points of one kind, and estimates of the unreached ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindFigures {
    /// Kind of the points.
    pub kind: Kind,
    /// Number of reached points.
    pub points: u64,
    /// Number of points that only one branch reached.
    pub once: u64,
    /// Number of points that were first reached in the last quarter of the branches.
    pub recent: u64,
    /// Lower bound on the number of unreached points, by Chao's estimator.
    pub more: u64,
    /// Probability that the next point that a branch reaches is new, in parts per million, by the Good-Turing
    /// estimator. `None` if no point was reached.
    pub unseen_ppm: Option<u32>,
}

/// Coverage of one kind of points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindCoverage {
    /// Number of points, and estimates.
    #[serde(flatten)]
    pub figures: KindFigures,
    /// Growth curve.
    pub growth: Vec<GrowthPoint>,
}

/// Sample of the growth curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GrowthPoint {
    /// Number of branches.
    pub branches: u64,
    /// Number of points that the first `branches` branches reached.
    pub points: u64,
}

impl KindCoverage {
    /// Returns the coverage of a kind.
    #[must_use]
    pub fn of(coverage: &Coverage, kind: Kind) -> KindCoverage {
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
        let figures = KindFigures {
            kind,
            points: observed,
            once: singletons,
            recent: observed - points_at(&growth, branches - branches / 4).min(observed),
            more: (richness.numerator / richness.denominator.max(1)).saturating_sub(observed),
            unseen_ppm: u32::try_from(ppm).ok().filter(|_| hits > 0),
        };
        KindCoverage { figures, growth }
    }
}

/// Returns the number of points after `branches` branches, from the last sample at or before that number.
pub(super) fn points_at(growth: &[GrowthPoint], branches: u64) -> u64 {
    let after = growth.partition_point(|point| point.branches <= branches);
    after.checked_sub(1).and_then(|i| growth.get(i)).map_or(0, |point| point.points)
}

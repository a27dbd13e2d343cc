//! Where a finding was decided.

use everett_explorer::causality::{self, CausalityEnd, Code, Count, Step, Vary};
use serde::Serialize;

use super::limits::POINTS_MAX;
use crate::causality::{sentence, step};

/// Where a finding was decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Causality {
    /// The result in a sentence.
    pub sentence: String,
    /// What happened where the likelihood jumps, in a sentence. `None` without a jump.
    pub step: Option<String>,
    /// Parts of a timeline that each future drew for itself.
    pub vary: Vary,
    /// Reason for the end of the search.
    pub why: CausalityEnd,
    /// Number of all futures.
    pub futures: u64,
    /// Largest probability that a named step is the wrong one.
    pub error: f64,
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// Vtime of the finding, in nanoseconds.
    pub found_ns: u64,
    /// Likelihood at each vtime from which futures started, ascending; at most [`POINTS_MAX`].
    pub points: Vec<Point>,
    /// Interval in which the likelihood jumps. `None` if no jump is established.
    pub jump: Option<Jump>,
    /// Digest of everything that does not depend on the host.
    pub digest: String,
}

/// Likelihood at a vtime.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// The likelihood.
    #[serde(flatten)]
    pub share: Share,
}

/// Share of futures that show the finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Number of futures.
    pub futures: u64,
    /// Number of those that show it.
    pub shown: u64,
    /// Their share.
    pub likelihood: f64,
    /// Lower bound of the likelihood with a confidence of 95 % (Wilson).
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Interval in which the likelihood jumps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Jump {
    /// Beginning, in nanoseconds of vtime.
    pub from_ns: u64,
    /// End, in nanoseconds of vtime.
    pub to_ns: u64,
    /// Likelihood at the beginning.
    pub before: Share,
    /// Likelihood at the end; `None` if the end is the finding.
    pub after: Option<Share>,
    /// Probability that the jump lies in the interval.
    pub probability: f64,
    /// True if at most one step lies in it.
    pub is_narrowest: bool,
    /// Steps in it.
    pub steps: Vec<Step>,
    /// Number of all steps in it.
    pub steps_count: u64,
    /// Last steps before it.
    pub steps_before: Vec<Step>,
    /// First steps after it.
    pub steps_after: Vec<Step>,
    /// Faults and lines of output that may explain a message in it.
    pub context: Vec<Step>,
    /// Functions that were executed in it.
    pub code: Vec<Code>,
}

impl Share {
    fn of(count: Count) -> Share {
        let (low, high) = count.between();
        Share { futures: count.futures, shown: count.shown, likelihood: count.share(), low, high }
    }
}

impl Causality {
    pub(super) fn of(causality: &causality::Causality) -> Causality {
        let causality::Causality { vary, why, futures, error_ppm, root_ns, found_ns, .. } = *causality;
        let point =
            |point: &causality::Point| Point { vtime_ns: point.vtime_ns, share: Share::of(point.count) };
        // Beyond the bound, the first points are left out.
        let points = &causality.points;
        let points = points.get(points.len().saturating_sub(POINTS_MAX)..).unwrap_or_default();
        Causality {
            sentence: sentence(causality),
            step: causality.jump.as_ref().map(step),
            vary,
            why,
            futures,
            error: f64::from(error_ppm) / 1e6,
            root_ns,
            found_ns,
            points: points.iter().map(point).collect(),
            jump: causality.jump.as_ref().map(Jump::of),
            digest: causality.digest.clone(),
        }
    }
}

impl Jump {
    fn of(jump: &causality::Jump) -> Jump {
        Jump {
            from_ns: jump.from_ns,
            to_ns: jump.to_ns,
            before: Share::of(jump.before),
            after: jump.after.map(Share::of),
            probability: f64::from(jump.probability_ppm) / 1e6,
            is_narrowest: jump.is_narrowest,
            steps: jump.steps.clone(),
            steps_count: jump.steps_count,
            steps_before: jump.steps_before.clone(),
            steps_after: jump.steps_after.clone(),
            context: jump.context.clone(),
            code: jump.code.clone(),
        }
    }
}

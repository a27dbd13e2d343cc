//! Data about the step at which a finding was decided.

use everett_explorer::causality::{self, CausalityEnd, Code, Count, Step, Vary};
use serde::Serialize;

use super::limits::POINTS_MAX;
use crate::causality::{sentence, step};

/// Result of a search for the step that decided a finding. The search runs futures, i.e. other continuations of the
/// finding's timeline, from many vtimes. The likelihood at a vtime is the share of its futures that show the finding.
/// At the step (the observed event, e.g. a message) that decided the finding, the likelihood jumps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Causality {
    /// Result as a sentence.
    pub sentence: String,
    /// Sentence about the step at which the likelihood jumps. `None` without a jump.
    pub step: Option<String>,
    /// Parts in which the futures from one vtime differ: only the random streams, or also the faults.
    pub vary: Vary,
    /// Reason why the search ended.
    pub why: CausalityEnd,
    /// Number of futures that ran.
    pub futures: u64,
    /// Accepted probability that the named step is the wrong one.
    pub error: f64,
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// Vtime of the finding, in nanoseconds.
    pub found_ns: u64,
    /// Likelihood at each vtime at which futures started, ascending. At most [`POINTS_MAX`] points.
    pub points: Vec<Point>,
    /// Interval in which the likelihood jumps. `None` if no jump is certain.
    pub jump: Option<Jump>,
    /// Digest of the parts of the result that do not depend on the host.
    pub digest: String,
}

/// Likelihood at one vtime.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Vtime, in nanoseconds.
    pub vtime_ns: u64,
    /// Likelihood: share of futures from this vtime that show the finding.
    #[serde(flatten)]
    pub share: Share,
}

/// Share of futures that show the finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Number of futures.
    pub futures: u64,
    /// Number of futures that show the finding.
    pub shown: u64,
    /// `shown` divided by `futures`.
    pub likelihood: f64,
    /// Lower bound of the likelihood with a confidence of 95 % (Wilson).
    pub low: f64,
    /// Upper bound of the likelihood with a confidence of 95 % (Wilson).
    pub high: f64,
}

/// Interval in which the likelihood jumps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Jump {
    /// Beginning of the interval, in nanoseconds of vtime.
    pub from_ns: u64,
    /// End of the interval, in nanoseconds of vtime.
    pub to_ns: u64,
    /// Likelihood at the beginning of the interval.
    pub before: Share,
    /// Likelihood at the end of the interval. `None` if the interval ends with the finding.
    pub after: Option<Share>,
    /// Probability that the jump lies in the interval.
    pub probability: f64,
    /// True if the interval has at most one step, so that it cannot be narrowed.
    pub is_narrowest: bool,
    /// Steps in the interval.
    pub steps: Vec<Step>,
    /// Number of steps in the interval, including steps that `steps` omits.
    pub steps_count: u64,
    /// Last steps before the interval.
    pub steps_before: Vec<Step>,
    /// First steps after the interval.
    pub steps_after: Vec<Step>,
    /// Faults and lines of output that may explain a message in the interval.
    pub context: Vec<Step>,
    /// Functions that were executed in the interval.
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
        // Keeps only the last `POINTS_MAX` points.
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

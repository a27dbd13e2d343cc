//! Findings, and how often the search finds them.

use serde::Serialize;

use everett_explorer::coverage::statistics::{Findability, Fraction, Prior};
use everett_explorer::run::{Cost, Finding, Hit, Merged};
use everett_explorer::search::Path;

/// Accepted probability that a bug which is still present appears on no branch during the clean time ([`Pace::clean`]).
const ALPHA: f64 = 0.05;
/// Unit of rates in CPU time: an hour, in nanoseconds.
const HOUR_NS: f64 = 3.6e12;
/// Unit of rates in instructions: a trillion.
const TRILLION: f64 = 1e12;

/// Finding with its rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatedFinding {
    /// Number of the finding, from 1.
    pub id: u32,
    /// First hit, i.e. first occurrence of the failure on a branch.
    pub hit: Hit,
    /// Number of the branch with the first hit.
    pub first: u64,
    /// Path of the branch with the first hit.
    pub path: Path,
    /// Number of branches with a hit.
    pub branches: u64,
    /// Number of subtrees with a hit. A subtree has one branch that starts at the root moment, and all branches that
    /// continue from it.
    pub subtrees: u64,
    /// Rates at which the search finds this finding.
    pub findable: Findable,
}

/// Rates at which the search finds a finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Findable {
    /// True if the strategy is not `uniform`. The rates then hold for this search, not for the world.
    pub adaptive: bool,
    /// Cost of the exploration up to the first hit.
    pub first: Cost,
    /// Rates in CPU time. Costs are in nanoseconds, the rate is per hour.
    pub cpu: Pace,
    /// Rates in instructions. The rate is per trillion.
    pub instructions: Pace,
}

/// Frequency of hits in one unit of cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// Sum of the costs of all subtrees, each up to its first hit.
    pub time: u64,
    /// Number of subtrees with a hit.
    pub hits: u64,
    /// Hits per unit of cost. `None` if no subtree has a hit, or if `time` is 0.
    pub rate: Option<f64>,
    /// Mean cost per hit. `None` if no subtree has a hit.
    pub mean: Option<u64>,
    /// Clean time: cost without a hit after which a bug counts as gone. A bug that is still present stays unseen for so
    /// long with a probability of 5 %. `None` if no subtree has a hit.
    pub clean: Option<u64>,
}

impl RatedFinding {
    pub(super) fn of(merged: &Merged, finding: &Finding, adaptive: bool) -> RatedFinding {
        let Finding { id, first, path, hit, cost, tally } = finding;
        RatedFinding {
            id: *id,
            hit: hit.clone(),
            first: *first,
            path: path.clone(),
            branches: tally.branches,
            subtrees: tally.subtrees.len() as u64,
            findable: Findable {
                adaptive,
                first: *cost,
                cpu: Pace::of(merged.findability(tally, Cost::cpu_ns), HOUR_NS),
                instructions: Pace::of(merged.findability(tally, Cost::instructions), TRILLION),
            },
        }
    }
}

impl Pace {
    fn of(findability: Findability, unit: f64) -> Pace {
        Pace {
            time: findability.time,
            hits: findability.hits,
            rate: findability.rate().map(|rate| rate.as_f64() * unit),
            mean: findability
                .mean_time()
                .map(|Fraction { numerator, denominator }| numerator / denominator.max(1)),
            // The cast saturates.
            clean: findability.clean_time_needed(Prior::default(), ALPHA).map(|time| time as u64),
        }
    }
}

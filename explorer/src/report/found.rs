//! What was found, and how findable it is.

use serde::Serialize;

use crate::coverage::statistics::{Findability, Fraction, Prior};
use crate::run::{Cost, Finding, Hit, Merged};
use crate::search::Path;

/// The chance to miss a bug that is still there which a clean time is given for: one in twenty.
const ALPHA: f64 = 0.05;
/// Rates of CPU time are for an hour.
const HOUR_NS: f64 = 3.6e12;
/// Rates of instructions are for a trillion.
const TRILLION: f64 = 1e12;

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// Its number, from 1.
    pub id: u32,
    /// The first hit.
    pub hit: Hit,
    /// The choice that led there.
    pub first: u64,
    /// Its path.
    pub path: Path,
    /// How many branches show it.
    pub branches: u64,
    /// How many subtrees do.
    pub subtrees: u64,
    /// How findable it is.
    pub findable: Findable,
}

/// How findable something is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Findable {
    /// Where the next branch went on from depended on what was found: the rates are those of this search, not of the world.
    pub adaptive: bool,
    /// What the exploration had cost with the first hit.
    pub first: Cost,
    /// In CPU time, in nanoseconds; the rate is for an hour.
    pub cpu: Pace,
    /// In instructions; the rate is for a trillion.
    pub instructions: Pace,
}

/// How often something was hit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// What all subtrees took, each up to its first hit.
    pub time: u64,
    /// How many had a hit.
    pub hits: u64,
    /// Hits in a unit.
    pub rate: Option<f64>,
    /// The mean time until a hit.
    pub mean: Option<u64>,
    /// A bug that is still there stays unseen for so long with a probability of a twentieth.
    pub clean: Option<u64>,
}

impl Found {
    pub(super) fn of(merged: &Merged, finding: &Finding, adaptive: bool) -> Found {
        let Finding { id, first, path, hit, cost, tally } = finding;
        Found {
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
            // More than a number holds becomes the greatest.
            clean: findability.clean_time_needed(Prior::default(), ALPHA).map(|time| time as u64),
        }
    }
}

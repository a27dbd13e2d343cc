//! The search for the vtime at which the likelihood jumps: it chooses the vtimes from which futures start.
//!
//! A *future* repeats the finding's timeline up to a *cut* (a vtime at which the timeline can be forked) and then draws
//! its own random numbers. The likelihood at a cut is the share of its futures that show the finding. Between two
//! neighbouring cuts lies at most one *step* (an observed event, or several at the same vtime).
//!
//! The search is a bisection with noisy answers, because a future shows the finding only with some probability. It
//! keeps a posterior over the position of a single jump (Horstein, 1963, for known noise; Waeber, Frazier and
//! Henderson, 2013). The model: futures from before the jump have one unknown rate, and futures from after it have
//! another. Both rates are averaged over Jeffreys' prior ([`super::likelihood`]). Half of the prior probability stands
//! for no jump at all. The other half is uniform over the intervals between neighbouring cuts. After a first batch at
//! evenly spaced vtimes, each batch starts futures at quantiles of the posterior, which puts most futures where the
//! jump is likely.
//!
//! The finding's own timeline is known to show the finding. The search counts it like several futures ([`ANCHOR`]) that
//! all showed it.
//!
//! **Stated error.** The search may stop at any time without a bias of the posterior. If the search ends with
//! [`CausalityEnd::Named`], the probability that a single jump lies elsewhere is below [`Limits::error_ppm`], averaged
//! over the prior. Tests compare this bound with simulations.
//!
//! **Invariant.** A batch depends only on the cuts, the limits and the results of earlier batches.

use std::collections::BTreeMap;

use super::cuts::Cuts;
use super::likelihood::{Evidence, rises};
use super::log2::{exp2, log2};
use super::result::{CausalityEnd, Count};

/// Maximum number of futures of a search.
pub const FUTURES_MAX: u64 = 100_000;
/// Number of vtimes in the first batch (the survey), evenly spaced from the first cut to the last.
const SURVEY: u64 = 9;
/// Maximum number of futures from each vtime of the survey.
const SURVEY_EACH: u64 = 8;
/// Number of quantiles of the posterior from which each later batch starts futures.
const LEVELS: u64 = 8;
/// Number of futures at each quantile.
const EACH: usize = 4;
/// Weight of the finding's own timeline, as a number of futures that showed the finding.
const ANCHOR: Count = Count { futures: 8, shown: 8 };
/// Minimum number of futures from each of the two cuts around a step before the search may name the step as the
/// decisive one.
const ENDS_MIN: u64 = 16;
/// Minimum number of futures from the root moment for this rule: the search ends with [`CausalityEnd::Flat`] (no step
/// is decisive) if at least nine tenths of these futures show the finding.
const ROOT_MIN: u64 = 32;
const PPM: u128 = 1_000_000;

/// Limits that end a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of futures after which the search ends, at most [`FUTURES_MAX`].
    pub futures: u64,
    /// Maximum allowed probability that the named step is wrong, in parts of a million.
    pub error_ppm: u32,
}

/// Future to run, i.e. a rerun of the timeline from a cut on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    /// Index of the cut from which the future starts.
    pub cut: usize,
    /// Number of the future among the futures from this cut, from 0.
    pub number: u64,
}

/// Futures to run next. They do not depend on each other's results, so they can run in parallel.
pub type Batch = Vec<Ask>;

/// Interval in which the jump lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JumpInterval {
    /// Index of the cut at the interval's beginning.
    pub from: usize,
    /// Index of the cut at the interval's end. `None` if the interval ends at the finding.
    pub to: Option<usize>,
    /// Probability that the jump lies in the interval, in parts of a million.
    pub probability_ppm: u32,
    /// True if no cut lies inside the interval.
    pub is_narrowest: bool,
}

/// Search for the interval between two cuts in which the likelihood of the finding jumps.
#[derive(Debug, Clone)]
pub struct Search {
    last: usize,
    survey: Vec<usize>,
    limits: Limits,
    counts: BTreeMap<usize, Count>,
    futures: u64,
    asked: Batch,
    evidence: Evidence,
}

/// Interval between two consecutive cuts from which futures were run, or from the last such cut to the finding. `mass`
/// is the posterior probability that the jump lies in the interval, up to a factor that is the same for all gaps.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: usize,
    to: Option<usize>,
    mass: u64,
}

impl Gap {
    fn width(&self) -> usize {
        self.to.map_or(1, |to| to - self.from)
    }
}

/// Posterior: for each gap the probability mass that the jump lies there, and in `none` the mass that there is no jump.
struct Posterior {
    gaps: Vec<Gap>,
    none: u64,
}

impl Posterior {
    fn jump(&self) -> u128 {
        self.gaps.iter().map(|gap| u128::from(gap.mass)).sum()
    }

    fn total(&self) -> u128 {
        (self.jump() + u128::from(self.none)).max(1)
    }
}

impl Search {
    /// Creates a search on the timeline that has these cuts.
    #[must_use]
    pub fn new(cuts: &Cuts, limits: Limits) -> Search {
        let (from, to) = (cuts.at(0), cuts.at(cuts.last()));
        let place = |i: u64| (u128::from(to - from) * u128::from(i) / u128::from(SURVEY - 1)) as u64;
        let mut survey: Vec<usize> = (0..SURVEY).map(|i| cuts.nearest(from + place(i))).collect();
        survey.dedup();
        let futures = limits.futures.min(FUTURES_MAX);
        Search {
            last: cuts.last(),
            survey,
            limits: Limits { futures, ..limits },
            counts: BTreeMap::new(),
            futures: 0,
            asked: Batch::new(),
            evidence: Evidence::default(),
        }
    }

    /// Returns the next batch. The batch is empty at the end of the search.
    pub fn batch(&mut self) -> Batch {
        self.asked = match self.over() {
            Some(_) => Batch::new(),
            None if self.counts.is_empty() => self.first(),
            None => self.next(),
        };
        let left = usize::try_from(self.limits.futures.saturating_sub(self.futures)).unwrap_or(usize::MAX);
        self.asked.truncate(left);
        self.asked.clone()
    }

    /// Takes the results of the futures that [`Search::batch`] returned last, in the same order: true if the future
    /// showed the finding. If an interrupt leaves fewer results than futures, the caller must end the search.
    pub fn tell(&mut self, shown: &[bool]) {
        for (ask, &shown) in std::mem::take(&mut self.asked).iter().zip(shown) {
            let count = self.counts.entry(ask.cut).or_default();
            *count = *count + Count { futures: 1, shown: u64::from(shown) };
            self.futures += 1;
        }
    }

    /// Returns each cut from which futures were run, as the cut's index with its counts.
    pub fn counts(&self) -> impl Iterator<Item = (usize, Count)> {
        self.counts.iter().map(|(cut, count)| (*cut, *count))
    }

    /// Returns the counts of a cut, which are 0 if no futures were run from it.
    #[must_use]
    pub fn count(&self, cut: usize) -> Count {
        self.counts.get(&cut).copied().unwrap_or_default()
    }

    /// Returns the number of futures with results.
    #[must_use]
    pub fn futures(&self) -> u64 {
        self.futures
    }

    /// Returns the reason why the search ends now: its results, or the limit on futures. `None` if the search goes on.
    pub fn over(&mut self) -> Option<CausalityEnd> {
        if self.futures >= self.limits.futures {
            return Some(CausalityEnd::Futures);
        }
        if self.counts.is_empty() {
            return None;
        }
        let posterior = self.posterior();
        let sure = PPM - u128::from(self.limits.error_ppm).min(PPM);
        let many = |cut: usize| self.count(cut).futures >= ENDS_MIN;
        let root = self.count(0);
        let is_likely = root.futures >= ROOT_MIN && 10 * root.shown >= 9 * root.futures;
        if is_likely || u128::from(posterior.none) * PPM >= posterior.total() * sure && many(0) {
            return Some(CausalityEnd::Flat);
        }
        let named = posterior.gaps.iter().any(|gap| {
            u128::from(gap.mass) * PPM >= posterior.total() * sure
                && gap.width() == 1
                && many(gap.from)
                && gap.to.is_none_or(many)
        });
        named.then_some(CausalityEnd::Named)
    }

    /// Returns the interval in which the jump lies with the requested probability. The interval starts as the most
    /// likely gap between two cuts with futures, and repeatedly takes in the likelier of its two neighbours. Returns
    /// `None` if [`Search::over`] returns [`CausalityEnd::Flat`], or if even all gaps together do not have the
    /// requested probability.
    pub fn found(&mut self) -> Option<JumpInterval> {
        if self.over() == Some(CausalityEnd::Flat) {
            return None;
        }
        let posterior = self.posterior();
        let sure = PPM - u128::from(self.limits.error_ppm).min(PPM);
        let wanted = posterior.total() * sure;
        let mass = |at: usize| posterior.gaps.get(at).map_or(0, |gap| u128::from(gap.mass));
        let best = (0..posterior.gaps.len()).max_by_key(|at| (mass(*at), std::cmp::Reverse(*at)))?;
        let (mut low, mut high, mut sum) = (best, best, mass(best));
        while sum * PPM < wanted {
            let below = low.checked_sub(1).map(mass);
            let above = (high + 1 < posterior.gaps.len()).then(|| mass(high + 1));
            match (below, above) {
                (None, None) => return None,
                (Some(below), above) if above.is_none_or(|above| below >= above) => {
                    low -= 1;
                    sum += below;
                }
                (_, above) => {
                    high += 1;
                    sum += above.unwrap_or(0);
                }
            }
        }
        let (from, to) = (posterior.gaps.get(low)?.from, posterior.gaps.get(high)?.to);
        let probability_ppm = u32::try_from(sum * PPM / posterior.total()).unwrap_or(u32::MAX);
        let is_narrowest = low == high && posterior.gaps.get(low)?.width() == 1;
        Some(JumpInterval { from, to, probability_ppm, is_narrowest })
    }

    fn first(&self) -> Batch {
        let each = (self.limits.futures / (4 * SURVEY)).clamp(1, SURVEY_EACH);
        // The batch lists the first futures of all vtimes before the second future of any vtime, so that a search that
        // ends early has results from all vtimes.
        (0..each).flat_map(|number| self.survey.iter().map(move |&cut| Ask { cut, number })).collect()
    }

    fn next(&mut self) -> Batch {
        let posterior = self.posterior();
        let total = posterior.jump().max(1);
        let mut planned: BTreeMap<usize, u64> = BTreeMap::new();
        let mut batch = Batch::new();
        // If at least three quarters of the futures from the root moment show the finding, the search is close to the
        // end `CausalityEnd::Flat`. More futures from the root moment decide soon whether the search ends that way.
        let root = self.count(0);
        if 4 * root.shown >= 3 * root.futures {
            batch.extend((0..EACH as u64).map(|i| Ask { cut: 0, number: root.futures + i }));
            planned.insert(0, EACH as u64);
        }
        for level in 0..LEVELS {
            let mut rest = total * u128::from(2 * level + 1) / u128::from(2 * LEVELS);
            let gap = posterior.gaps.iter().find(|gap| {
                let here = rest < u128::from(gap.mass);
                rest = if here { rest } else { rest - u128::from(gap.mass) };
                here
            });
            let Some(gap) = gap.or(posterior.gaps.last()) else { continue };
            for _ in 0..EACH {
                let known = |cut: usize| self.count(cut).futures + planned.get(&cut).copied().unwrap_or(0);
                let cut = match gap.to {
                    None => gap.from,
                    Some(to) if to - gap.from == 1 => {
                        if known(to) < known(gap.from) {
                            to
                        } else {
                            gap.from
                        }
                    }
                    Some(to) => {
                        let inner = (to - gap.from - 1) as u128;
                        let step = rest * inner / u128::from(gap.mass).max(1);
                        gap.from + 1 + usize::try_from(step.min(inner - 1)).unwrap_or(0)
                    }
                };
                batch.push(Ask { cut, number: known(cut) });
                *planned.entry(cut).or_default() += 1;
            }
        }
        batch
    }

    fn posterior(&mut self) -> Posterior {
        let points: Vec<(usize, Count)> = self.counts().collect();
        let all = points.iter().fold(Count::default(), |sum, (_, count)| sum + *count);
        let flat = self.evidence.of(all + ANCHOR);
        let mut before = Count::default();
        let mut logs = Vec::new();
        for (i, &(from, count)) in points.iter().enumerate() {
            before = before + count;
            let rest = Count { futures: all.futures - before.futures, shown: all.shown - before.shown };
            let after = rest + ANCHOR;
            let apart = self.evidence.of(before) + self.evidence.of(after);
            let evidence = if rises(before, after) { apart } else { apart.min(flat) };
            let to = points.get(i + 1).map(|(to, _)| *to);
            let width = Gap { from, to, mass: 0 }.width();
            logs.push((from, to, evidence + log2(width as u64)));
        }
        let none = flat + log2(self.last as u64 + 1);
        let most = logs.iter().map(|(_, _, log)| *log).chain([none]).max().unwrap_or(0);
        let gaps = logs.into_iter().map(|(from, to, log)| Gap { from, to, mass: exp2(log - most) });
        Posterior { gaps: gaps.collect(), none: exp2(none - most) }
    }
}

//! Survival probability: the probability that a bug which is still there stays unseen for a given time.

use everett_explorer::coverage::statistics::Prior;
use serde::Serialize;

use super::interval::mean_between;

/// Maximum number of future runs in a projection.
pub const PROJECTED_MAX: usize = 60;

/// Times and hits of one run, for one bug. A hit is an occurrence of the bug. All times have the same unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// T of the run: the sum of the times of its subtrees. A subtree consists of all branches that descend from one
    /// branch at the root moment. Its time ends at its first hit, if it has one.
    pub until_hit: u64,
    /// d of the run: the number of subtrees with a hit.
    pub hits: u64,
    /// Time of the whole run.
    pub spent: u64,
}

/// Parameters of the estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Survival probability at or below which a bug counts as gone.
    pub alpha: f64,
    /// Number of runs after which a hit counts half, because the program has changed in the meantime. Time always
    /// counts in full: if old time counted less, a bug that was seen once in a long time would later look frequent.
    pub half_life: f64,
    /// Prior distribution of the rate of hits.
    pub prior: Prior,
}

impl Default for Terms {
    /// 94 % confidence, and hits that count half after eight runs.
    fn default() -> Terms {
        Terms { alpha: 0.06, half_life: 8.0, prior: Prior::default() }
    }
}

/// Estimates for one bug over the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// T: sum of [`Observation::until_hit`] over the runs up to the last run with a hit, or over all runs if there is
    /// no hit.
    pub time: u64,
    /// d: number of subtrees with a hit.
    pub hits: u64,
    /// Number of hits, with older hits discounted.
    pub weight: f64,
    /// Mean time between hits, T / d. `None` without a hit.
    pub mean: Option<f64>,
    /// Lower bound on the mean time, at a confidence of 1 - [`Terms::alpha`]. `None` if no time was spent.
    pub mean_low: Option<f64>,
    /// Upper bound on the mean time, at the same confidence. `None` without a hit.
    pub mean_high: Option<f64>,
    /// Index of the last run with a hit. `None` without a hit.
    pub last_hit: Option<usize>,
    /// For each run: probability that the bug, if it is still there, stays hidden from its last hit to the end of
    /// this run. 1 for a run with a hit, `None` for runs before the first hit.
    pub survival: Vec<Option<f64>>,
    /// Survival probability after each future run, if future runs have no hit and take the same time as the last run.
    /// The list ends with the first value at or below [`Terms::alpha`], and has at most [`PROJECTED_MAX`] values.
    pub projected: Vec<f64>,
    /// Time without a hit, and how much of it is needed until the bug counts as gone. `None` without a hit, or if no
    /// time was spent.
    pub clean: Option<Clean>,
}

/// Time without a hit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Clean {
    /// Time since the last run with a hit.
    pub spent: f64,
    /// Time without a hit after which the survival probability is [`Terms::alpha`].
    pub needed: f64,
    /// Number of further runs until `spent` reaches `needed`, if each takes the same time as the last run. 0 if it is
    /// reached already. `None` if it takes more than [`PROJECTED_MAX`] runs, or if the last run took no time.
    pub runs_left: Option<u64>,
}

/// Returns the estimates for a bug. `runs` lists the oldest run first.
///
/// A run with a hit has a survival probability of 1. The probability of a later run follows from the time without a
/// hit since then, and from T and d of the runs up to the last run with a hit.
#[must_use]
pub fn outlook(runs: &[Observation], terms: &Terms) -> Outlook {
    let seen: Vec<usize> = runs.iter().enumerate().filter(|(_, run)| run.hits > 0).map(|(i, _)| i).collect();
    let survival = (0..runs.len()).map(|i| at(runs, i, terms)).collect();
    let last_hit = seen.last().copied();
    let upto = runs.get(..=last_hit.unwrap_or(usize::MAX - 1)).unwrap_or(runs);
    let time = upto.iter().map(|run| run.until_hit).fold(0, u64::saturating_add);
    let hits = upto.iter().map(|run| run.hits).fold(0, u64::saturating_add);
    let bounds = mean_between(time as f64, hits, 1.0 - terms.alpha);
    let mut outlook = Outlook {
        time,
        hits,
        weight: 0.0,
        mean: (hits > 0).then(|| time as f64 / hits as f64),
        mean_low: bounds.map(|(low, _)| low),
        mean_high: bounds.map(|(_, high)| high).filter(|high| high.is_finite()),
        last_hit,
        survival,
        projected: Vec::new(),
        clean: None,
    };
    let Some((tail, after)) = last_hit.and_then(|last| Some((Tail::of(upto, terms)?, runs.get(last + 1..)?)))
    else {
        return outlook;
    };
    outlook.weight = tail.shape - terms.prior.a0;
    let spent = after.iter().map(|run| run.spent as f64).fold(0.0, |sum, spent| sum + spent);
    let step = runs.last().map_or(0.0, |run| run.spent as f64);
    let mut runs_left = (tail.survival(spent) <= terms.alpha).then_some(0);
    let ahead = (1..=PROJECTED_MAX).filter(|_| step > 0.0);
    for k in ahead {
        let p = tail.survival(spent + k as f64 * step);
        outlook.projected.push(p);
        if p <= terms.alpha {
            runs_left = runs_left.or(Some(k as u64));
            break;
        }
    }
    outlook.clean = Some(Clean { spent, needed: tail.needed(terms.alpha), runs_left });
    outlook
}

/// Returns the survival probability after the runs up to index `i`. `None` if none of them has a hit.
fn at(runs: &[Observation], i: usize, terms: &Terms) -> Option<f64> {
    let upto = runs.get(..=i)?;
    let last = upto.iter().rposition(|run| run.hits > 0)?;
    let clean: f64 = upto.get(last + 1..)?.iter().map(|run| run.spent as f64).sum();
    if last == i {
        return Some(1.0);
    }
    Tail::of(upto.get(..=last)?, terms).map(|tail| tail.survival(clean))
}

/// Lomax distribution of the time to the next hit.
struct Tail {
    scale: f64,
    shape: f64,
}

impl Tail {
    /// Returns the distribution after these runs. The last of them must have a hit. `None` if no time was spent.
    fn of(runs: &[Observation], terms: &Terms) -> Option<Tail> {
        let scale = terms.prior.b0 + runs.iter().map(|run| run.until_hit as f64).sum::<f64>();
        let weighted = runs
            .iter()
            .rev()
            .zip(0i32..)
            .map(|(run, age)| run.hits as f64 * (-f64::from(age) / terms.half_life).exp2());
        let shape = terms.prior.a0 + weighted.sum::<f64>();
        (scale > 0.0 && shape > 0.0 && scale.is_finite() && shape.is_finite())
            .then_some(Tail { scale, shape })
    }

    fn survival(&self, clean: f64) -> f64 {
        (self.scale / (self.scale + clean)).powf(self.shape)
    }

    fn needed(&self, alpha: f64) -> f64 {
        self.scale * (alpha.powf(-1.0 / self.shape) - 1.0)
    }
}

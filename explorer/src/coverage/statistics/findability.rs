//! Expected time to find a bug, and confidence that a bug is gone.
//!
//! A subtree consists of all branches that descend from one branch at the root moment. All estimates are for one
//! property of the world, and a hit is a violation of this property. Each subtree contributes one time: the time until
//! its first hit, or all of its time if it has no hit. First hits are assumed to be independent and to come at a
//! constant rate. The uncertainty of the rate is a Gamma distribution. The probability that a further time t has no hit
//! therefore falls with t like the tail of a Lomax distribution. This tail is heavier than an exponential one, so the
//! estimate is conservative.

use serde::{Deserialize, Serialize};

use super::richness::Fraction;

/// Result of one subtree for one property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subtree {
    /// Time until the first hit, or the whole time of a subtree without a hit. In nanoseconds of CPU time or in
    /// instructions, the same for all subtrees.
    pub time: u64,
    /// True if the subtree hit the property.
    pub hit: bool,
}

/// Sum of the results of all subtrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findability {
    /// Total time T of the subtrees.
    pub time: u64,
    /// Number d of subtrees with a hit.
    pub hits: u64,
}

/// Results that are assumed before any subtree has run, as parameters of the Gamma distribution. Usually zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prior {
    /// Assumed number of hits.
    pub a0: f64,
    /// Assumed time for these hits.
    pub b0: f64,
}

impl Findability {
    /// Sums the results of subtrees.
    #[must_use]
    pub fn of(subtrees: impl IntoIterator<Item = Subtree>) -> Findability {
        subtrees.into_iter().fold(Findability::default(), |sum, subtree| Findability {
            time: sum.time.saturating_add(subtree.time),
            hits: sum.hits.saturating_add(u64::from(subtree.hit)),
        })
    }

    /// Returns the number of hits per unit of time, d / T. Returns `None` without hits or without time.
    #[must_use]
    pub fn rate(&self) -> Option<Fraction> {
        (self.hits > 0 && self.time > 0).then_some(Fraction { numerator: self.hits, denominator: self.time })
    }

    /// Returns the mean time until a hit, T / d. Returns `None` without hits.
    #[must_use]
    pub fn mean_time(&self) -> Option<Fraction> {
        (self.hits > 0).then_some(Fraction { numerator: self.time, denominator: self.hits })
    }

    /// Returns the probability that a further time t (`clean`) has no hit although the bug is present: ((b0+T) /
    /// (b0+T+t))^(a0+d). Returns `None` without hits. For display only.
    #[must_use]
    pub fn survival(&self, prior: Prior, clean: u64) -> Option<f64> {
        let (scale, shape) = self.tail(prior)?;
        Some((scale / (scale + clean as f64)).powf(shape))
    }

    /// Returns the further time without a hit after which [`survival`](Findability::survival) is `alpha`: (b0+T)
    /// (alpha^(-1/(a0+d)) - 1). Returns `None` without hits, or if `alpha` is not between 0 and 1. For display only.
    #[must_use]
    pub fn clean_time_needed(&self, prior: Prior, alpha: f64) -> Option<f64> {
        let (scale, shape) = self.tail(prior)?;
        (alpha > 0.0 && alpha < 1.0).then(|| scale * (alpha.powf(-1.0 / shape) - 1.0))
    }

    /// Returns the scale and the shape of the Lomax tail.
    fn tail(&self, prior: Prior) -> Option<(f64, f64)> {
        let (scale, shape) = (prior.b0 + self.time as f64, prior.a0 + self.hits as f64);
        let fits = self.hits > 0 && scale > 0.0 && scale.is_finite() && shape > 0.0 && shape.is_finite();
        fits.then_some((scale, shape))
    }
}

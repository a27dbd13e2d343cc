//! How long a bug takes to be found, and how sure it is that it is gone.
//!
//! A subtree counts once: its time until it first hit the property, or all of its time if it did not. First hits are taken
//! to be independent and to come at a constant rate; the rate's uncertainty is a Gamma distribution's, so that the
//! probability of a clean run has a Lomax tail, which is heavier than the exponential one: conservative.

use serde::{Deserialize, Serialize};

use super::richness::Fraction;

/// What one subtree showed of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subtree {
    /// Its time until the first hit, or all of it: CPU time in nanoseconds, or instructions.
    pub time: u64,
    /// Whether there was a hit.
    pub hit: bool,
}

/// All subtrees together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findability {
    /// T: their times, added up.
    pub time: u64,
    /// d: how many had a hit.
    pub hits: u64,
}

/// What is assumed before anything was seen: nothing, as a rule.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prior {
    /// Hits.
    pub a0: f64,
    /// The time that they took.
    pub b0: f64,
}

impl Findability {
    /// What subtrees show.
    #[must_use]
    pub fn of(subtrees: impl IntoIterator<Item = Subtree>) -> Findability {
        subtrees.into_iter().fold(Findability::default(), |sum, subtree| Findability {
            time: sum.time.saturating_add(subtree.time),
            hits: sum.hits.saturating_add(u64::from(subtree.hit)),
        })
    }

    /// Hits in a unit of time: d / T. `None` without hits, of which no rate follows, and without time.
    #[must_use]
    pub fn rate(&self) -> Option<Fraction> {
        (self.hits > 0 && self.time > 0).then_some(Fraction { numerator: self.hits, denominator: self.time })
    }

    /// The mean time until a hit: T / d. `None` without hits.
    #[must_use]
    pub fn mean_time(&self) -> Option<Fraction> {
        (self.hits > 0).then_some(Fraction { numerator: self.time, denominator: self.hits })
    }

    /// The probability that so much more time is clean although the bug is there: ((b0+T) / (b0+T+t))^(a0+d). For show.
    /// `None` without hits.
    #[must_use]
    pub fn survival(&self, prior: Prior, clean: u64) -> Option<f64> {
        let (scale, shape) = self.tail(prior)?;
        Some((scale / (scale + clean as f64)).powf(shape))
    }

    /// The clean time after which that probability is `alpha`: (b0+T) (alpha^(-1/(a0+d)) - 1). For show. `None` without
    /// hits, and if `alpha` is no probability between 0 and 1.
    #[must_use]
    pub fn clean_time_needed(&self, prior: Prior, alpha: f64) -> Option<f64> {
        let (scale, shape) = self.tail(prior)?;
        (alpha > 0.0 && alpha < 1.0).then(|| scale * (alpha.powf(-1.0 / shape) - 1.0))
    }

    /// The scale and shape of the tail.
    fn tail(&self, prior: Prior) -> Option<(f64, f64)> {
        let (scale, shape) = (prior.b0 + self.time as f64, prior.a0 + self.hits as f64);
        let fits = self.hits > 0 && scale > 0.0 && scale.is_finite() && shape > 0.0 && shape.is_finite();
        fits.then_some((scale, shape))
    }
}

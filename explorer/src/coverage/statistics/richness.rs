//! How many points there are that no branch reached, from how many were reached by one or two.
//!
//! Counted are branches and not events: those of one branch are not independent. (For such counts the estimate of richness is
//! also called Chao2, with a factor of (m-1)/m for m branches on what is unseen; it is left out here, being near one
//! as soon as the estimate is of use.)

use std::cmp::Ordering;

/// How points are spread over branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incidence {
    /// Points that were reached.
    pub observed: u64,
    /// Hits of all of them: by how many branches each was reached, added up.
    pub hits: u64,
    /// Points that one branch reached.
    pub singletons: u64,
    /// Points that two branches reached.
    pub doubletons: u64,
}

/// A number as a fraction. Compared by value.
#[derive(Debug, Clone, Copy)]
pub struct Fraction {
    /// What is divided.
    pub numerator: u64,
    /// By what. Never 0.
    pub denominator: u64,
}

impl Fraction {
    /// For show.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Fraction) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.numerator, other.denominator).cmp(&product(other.numerator, self.denominator))
    }
}

impl Incidence {
    /// A point was reached by one more branch, which makes so many.
    pub(in super::super) fn hit(&mut self, now: u64) {
        self.hits += 1;
        match now {
            1 => {
                self.observed += 1;
                self.singletons += 1;
            }
            2 => {
                self.singletons -= 1;
                self.doubletons += 1;
            }
            3 => self.doubletons -= 1,
            _ => {}
        }
    }

    /// So many points were reached by one more branch each, which more than two had reached before.
    pub(in super::super) fn hit_again(&mut self, points: u64) {
        self.hits += points;
    }

    /// Good and Turing's estimate of the unseen mass: the probability that the next hit is of a point that was never reached.
    /// Nothing is known of that, and it is one, as long as there are no hits.
    #[must_use]
    pub fn unseen(&self) -> Fraction {
        match self.hits {
            0 => Fraction { numerator: 1, denominator: 1 },
            hits => Fraction { numerator: self.singletons, denominator: hits },
        }
    }

    /// Chao's lower bound of how many points there are, in the form corrected for bias, which does without doubletons:
    /// S + f1 (f1 - 1) / (2 (f2 + 1)).
    #[must_use]
    pub fn richness(&self) -> Fraction {
        let (s, f1, f2) = (self.observed, self.singletons, self.doubletons);
        let denominator = 2 * (f2.min(u64::MAX / 2 - 1) + 1);
        let pairs = f1.saturating_mul(f1.saturating_sub(1));
        Fraction { numerator: s.saturating_mul(denominator).saturating_add(pairs), denominator }
    }
}

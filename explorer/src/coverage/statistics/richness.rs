//! Estimated number of coverage points that no branch reached, from the numbers of points that one or two branches
//! reached. A coverage point is a thing that a branch can reach, such as a state of the world.
//!
//! The estimate counts the branches that reached a point, and not the events that reached it, because the events of one
//! branch are not independent. The estimator for these counts is called Chao2. In Chao2, the unseen part has a factor
//! of (m-1)/m for m branches. This code omits the factor, because it is close to 1 whenever the estimate is useful.

use std::cmp::Ordering;

/// How many points of one kind were reached, and how many of them by one or two branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incidence {
    /// Number of reached points.
    pub observed: u64,
    /// Sum over all points of the number of branches that reached the point.
    pub hits: u64,
    /// Number of points that exactly one branch reached.
    pub singletons: u64,
    /// Number of points that exactly two branches reached.
    pub doubletons: u64,
}

/// Fraction, compared by its value.
#[derive(Debug, Clone, Copy)]
pub struct Fraction {
    /// Dividend.
    pub numerator: u64,
    /// Divisor, never 0.
    pub denominator: u64,
}

impl Fraction {
    /// Returns the fraction as a float, for display only.
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
    /// Counts a branch that reached a point. `now` is the number of branches that have reached the point, including
    /// this branch.
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

    /// Counts a branch that reached `points` points. More than two earlier branches had reached each of these points.
    pub(in super::super) fn hit_again(&mut self, points: u64) {
        self.hits += points;
    }

    /// Returns the Good-Turing estimate of the unseen mass: the probability that the next point that a branch
    /// reaches is a point that no earlier branch reached. Returns 1 without hits.
    #[must_use]
    pub fn unseen(&self) -> Fraction {
        match self.hits {
            0 => Fraction { numerator: 1, denominator: 1 },
            hits => Fraction { numerator: self.singletons, denominator: hits },
        }
    }

    /// Returns Chao's lower bound for the number of points, in the bias-corrected form S + f1 (f1 - 1) / (2 (f2 + 1)).
    /// S points were reached, f1 of them by one branch and f2 by two. This form also works if f2 is 0.
    #[must_use]
    pub fn richness(&self) -> Fraction {
        let (s, f1, f2) = (self.observed, self.singletons, self.doubletons);
        let denominator = 2 * (f2.min(u64::MAX / 2 - 1) + 1);
        let pairs = f1.saturating_mul(f1.saturating_sub(1));
        Fraction { numerator: s.saturating_mul(denominator).saturating_add(pairs), denominator }
    }
}

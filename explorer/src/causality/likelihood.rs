//! Bayesian evidence for hypotheses about the likelihood of a finding: that it is the same at two vtimes, or that it
//! rises.
//!
//! A *future* is a rerun from one vtime, and it either shows the finding (a hit) or not. The rate of hits is unknown,
//! so the evidence of *k* hits in *n* futures is averaged over all rates. The weight of each rate is Jeffreys' prior, a
//! Beta distribution with parameters 1/2. The evidence is B(k + 1/2, n - k + 1/2) / B(1/2, 1/2), where B is the Beta
//! function. It does not depend on the order of results, or on the rule that decided how many futures to run.

use super::log2::log2;
use super::result::Count;

/// Computes the evidence of counts of hits and futures, as base-2 logarithms in fixed point. Keeps tables of sums that
/// grow with the counts.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Sums of logarithms of odd numbers: entry *n* is the sum over the first *n* odd numbers.
    odd: Vec<i64>,
    /// Sums of logarithms of even numbers: entry *n* is the sum over the first *n* even numbers, from 2 on.
    even: Vec<i64>,
}

impl Evidence {
    /// Returns the logarithm of the evidence of `count`, if all its futures have the same unknown rate of hits.
    pub fn of(&mut self, count: Count) -> i64 {
        let Count { futures, shown } = count;
        self.extend(futures);
        let odd = |n: u64| self.odd.get(usize::try_from(n).unwrap_or(usize::MAX)).copied().unwrap_or(0);
        let even = |n: u64| self.even.get(usize::try_from(n).unwrap_or(usize::MAX)).copied().unwrap_or(0);
        odd(shown) + odd(futures.saturating_sub(shown)) - even(futures)
    }

    fn extend(&mut self, futures: u64) {
        if self.odd.is_empty() {
            self.odd.push(0);
            self.even.push(0);
        }
        for n in self.odd.len() as u64..=futures {
            let next = |sums: &[i64], number| sums.last().copied().unwrap_or(0) + log2(number);
            let (odd, even) = (next(&self.odd, 2 * n - 1), next(&self.even, 2 * n));
            self.odd.push(odd);
            self.even.push(even);
        }
    }
}

/// Returns true if the share of hits in `after` is larger than the share in `before`.
pub(super) fn rises(before: Count, after: Count) -> bool {
    u128::from(before.shown) * u128::from(after.futures)
        < u128::from(after.shown) * u128::from(before.futures)
}

//! The evidence that counts of hits give for one rate, and for a change of the rate.
//!
//! A rate is unknown, so the evidence of *k* hits in *n* futures is averaged over all rates with Jeffreys' prior, a Beta
//! distribution with parameters 1/2: B(k + 1/2, n - k + 1/2) / B(1/2, 1/2). Two such averages are comparable, whatever
//! led to the numbers of futures: the order of results and the rule to stop do not matter.

use super::log2::log2;
use super::result::Count;

/// Evidence of counts, as logarithms to the base 2 in fixed point.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Sums of the logarithms of the first odd numbers: entry *n* is about *n* of them.
    odd: Vec<i64>,
    /// The same for even numbers from 2 on.
    even: Vec<i64>,
}

impl Evidence {
    /// Returns the logarithm of the evidence of `count` for one unknown rate.
    pub fn of(&mut self, count: Count) -> i64 {
        let Count { futures, shown } = count;
        self.extend(futures);
        let odd = |n: u64| self.odd.get(usize::try_from(n).unwrap_or(usize::MAX)).copied().unwrap_or(0);
        let even = |n: u64| self.even.get(usize::try_from(n).unwrap_or(usize::MAX)).copied().unwrap_or(0);
        odd(shown) + odd(futures.saturating_sub(shown)) - even(futures)
    }

    /// Returns the logarithm of the evidence for a rise between two counts, over that for one common rate. Negative if
    /// one rate explains both better, or if the first share is not the smaller one.
    pub fn of_rise(&mut self, before: Count, after: Count) -> i64 {
        let apart = self.of(before) + self.of(after) - self.of(before + after);
        if rises(before, after) { apart } else { apart.min(0) }
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

/// Returns true if the second share of hits is larger than the first.
pub(super) fn rises(before: Count, after: Count) -> bool {
    u128::from(before.shown) * u128::from(after.futures)
        < u128::from(after.shown) * u128::from(before.futures)
}

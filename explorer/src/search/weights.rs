//! Running sums over the weights of open branches (branches at whose end another branch can start). With these sums, a
//! weighted draw takes logarithmic time.

/// Factor by which weights are scaled, so that integer division keeps small rewards distinct.
const UNIT: u64 = 1 << 16;
/// Maximum reward. Higher rewards are lowered to it, so that the sum of a billion weights fits in 64 bits.
const REWARD_MAX: u64 = 1 << 17;

/// Returns the weight of a branch: its reward divided by (children + 1)^2, scaled by [`UNIT`]. The reward is the number
/// of coverage points that the branch was the first to reach.
pub(super) fn weight(reward: u64, children: u64) -> u64 {
    reward.min(REWARD_MAX) * UNIT / children.saturating_add(1).saturating_pow(2)
}

/// Sequence of weights as a Fenwick tree. Entry n, counted from 1, is the sum of the last 2^k weights up to n. Here 2^k
/// is the lowest set bit of n.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Weights {
    sums: Vec<u64>,
    total: u64,
}

impl Weights {
    /// Appends a weight.
    pub(super) fn push(&mut self, weight: u64) {
        let number = self.sums.len() + 1;
        let (mut sum, mut below) = (weight, number - 1);
        while below > number - lowest_bit(number) {
            sum += self.sums.get(below - 1).copied().unwrap_or(0);
            below -= lowest_bit(below);
        }
        self.sums.push(sum);
        self.total += weight;
    }

    /// Lowers the weight at `place` by `by`, which must be at most the weight.
    pub(super) fn lower(&mut self, place: usize, by: u64) {
        let mut number = place + 1;
        while let Some(sum) = self.sums.get_mut(number - 1) {
            *sum -= by;
            number += lowest_bit(number);
        }
        self.total -= by;
    }

    /// Returns the sum of all weights.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the first index at which the running sum exceeds `drawn`, or `None` if `drawn` is at least the total.
    pub(super) fn find(&self, mut drawn: u64) -> Option<usize> {
        if drawn >= self.total {
            return None;
        }
        let mut place = 0;
        let mut step = self.sums.len().checked_ilog2().map_or(0, |bits| 1 << bits);
        while step > 0 {
            #[cfg(test)]
            looked::at_one();
            if let Some(&sum) = self.sums.get(place + step - 1)
                && sum <= drawn
            {
                (place, drawn) = (place + step, drawn - sum);
            }
            step >>= 1;
        }
        Some(place)
    }
}

/// Counts, for each thread, the branches that a search examined to make its choices.
#[cfg(test)]
pub(super) mod looked {
    use std::cell::Cell;

    thread_local!(static LOOKED: Cell<u64> = const { Cell::new(0) });

    /// Counts one branch.
    pub(in super::super) fn at_one() {
        LOOKED.set(LOOKED.get() + 1);
    }

    /// Returns the count, and resets it.
    pub(in super::super) fn take() -> u64 {
        LOOKED.take()
    }
}

fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_equal_those_of_a_plain_list(
            steps in prop::collection::vec((any::<bool>(), 0..5u64, any::<prop::sample::Index>()), 0..200),
        ) {
            let (mut row, mut weights) = (Vec::<u64>::new(), Weights::default());
            for (push, weight, at) in steps {
                if push || row.is_empty() {
                    row.push(weight);
                    weights.push(weight);
                } else {
                    let at = at.index(row.len());
                    let by = weight.min(row[at]);
                    row[at] -= by;
                    weights.lower(at, by);
                }
                let total: u64 = row.iter().sum();
                prop_assert_eq!(weights.total(), total);
                for drawn in 0..=total {
                    let mut sum = 0;
                    let place = row.iter().position(|weight| {
                        sum += weight;
                        sum > drawn
                    });
                    prop_assert_eq!(weights.find(drawn), place);
                }
            }
        }
    }
}

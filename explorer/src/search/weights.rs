//! Weights of the branches from which others can go on, with sums that are kept: a draw looks at as many of them as the logarithm of
//! how many there are.

/// A branch's weight is a whole number of these, so that quotients of small rewards differ.
const UNIT: u64 = 1 << 16;
/// More reward than this weighs no more: the weights of a billion branches have a sum.
const REWARD_MAX: u64 = 1 << 17;

/// The weight of a branch: what it reached first, the less the more branches go on from it.
pub(super) fn weight(reward: u64, children: u64) -> u64 {
    reward.min(REWARD_MAX) * UNIT / children.saturating_add(1).saturating_pow(2)
}

/// A row of weights as a Fenwick tree: the sum at each place is of as many weights up to it as the lowest bit of its number, counted
/// from 1, says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Weights {
    sums: Vec<u64>,
    total: u64,
}

impl Weights {
    /// Add a weight at the end.
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

    /// Take something from the weight at a place; at most all of it.
    pub(super) fn lower(&mut self, place: usize, by: u64) {
        let mut number = place + 1;
        while let Some(sum) = self.sums.get_mut(number - 1) {
            *sum -= by;
            number += lowest_bit(number);
        }
        self.total -= by;
    }

    /// The sum of all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The first place at which the sum of all weights up to it is more than `drawn`; none if that is no less than the total.
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

/// Counts the branches that this thread has looked at for its choices.
#[cfg(test)]
pub(super) mod looked {
    use std::cell::Cell;

    thread_local!(static LOOKED: Cell<u64> = const { Cell::new(0) });

    /// Counts one more.
    pub(in super::super) fn at_one() {
        LOOKED.set(LOOKED.get() + 1);
    }

    /// Returns how many were counted since this was called last.
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
        fn sums_are_those_of_the_row(steps in prop::collection::vec((any::<bool>(), 0..5u64, any::<prop::sample::Index>()), 0..200)) {
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

//! Decides when a search may choose the next branch, and which results the choice may use.
//!
//! K is the maximum number of branches in flight. The search makes choice n when it has merged exactly the results of
//! the choices up to n - K, in the order of choices. A choice therefore does not depend on the number of workers, on
//! how long branches take, or on the order in which branches end.

use std::collections::BTreeMap;
use std::num::NonZero;

use everett_streams::{Lineage, Owner, Purpose, Seed, Streams};

use super::strategy::Strategy;
use super::tree::{Choice, Standing, Tree};

/// Consumer that merges results in the order of choices.
pub trait Ledger {
    /// Result that a worker delivers.
    type Outcome;

    /// Merges a result. The results of all earlier choices have already been merged.
    fn take(&mut self, choice: u64, outcome: Self::Outcome) -> Standing;

    /// Returns the estimated probability that the next state that a branch reaches is new, in parts of a million.
    fn unseen_ppm(&self) -> u32;
}

/// Next step of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Run this branch.
    Run(Choice),
    /// The search needs the result of this choice first.
    Wait(u64),
    /// All branches have been chosen.
    Over,
}

/// Running search.
#[derive(Debug)]
pub struct Search<S, L: Ledger> {
    seed: Seed,
    in_flight: u64,
    branches_max: u64,
    strategy: S,
    tree: Tree,
    ledger: L,
    /// Delivered results that cannot be merged until earlier results arrive.
    waiting: BTreeMap<u64, L::Outcome>,
    /// Number of merged results.
    taken: u64,
}

impl<S: Strategy, L: Ledger> Search<S, L> {
    /// Creates a search of at most `branches_max` branches. `root_ns` is the vtime of the root moment, in nanoseconds.
    pub fn new(
        seed: Seed,
        root_ns: u64,
        in_flight: NonZero<u32>,
        branches_max: u64,
        strategy: S,
        ledger: L,
    ) -> Search<S, L> {
        Search {
            seed,
            in_flight: in_flight.get().into(),
            branches_max,
            strategy,
            tree: Tree::new(root_ns),
            ledger,
            waiting: BTreeMap::new(),
            taken: 0,
        }
    }

    /// Chooses the next branch, or returns why none can be chosen now.
    pub fn choose(&mut self) -> Next {
        let number = self.tree.branches().len() as u64;
        if number >= self.branches_max {
            return Next::Over;
        }
        // Merge exactly the results that this choice may use.
        while self.taken + self.in_flight <= number {
            let Some(outcome) = self.waiting.remove(&self.taken) else { return Next::Wait(self.taken) };
            self.take(outcome);
        }
        // Each choice has its own random stream, so the draws of one choice do not affect another.
        let mut streams = Streams::new(&Lineage::new(self.seed), Owner::Search);
        let rng = streams.get(Purpose::Choice { number });
        let from = self.strategy.choose(&self.tree, self.ledger.unseen_ppm(), rng);
        Next::Run(self.tree.add(from))
    }

    /// Delivers the result of a branch. A result is ignored if its branch was not chosen or already has a result.
    pub fn deliver(&mut self, choice: u64, outcome: L::Outcome) {
        if (self.taken..self.tree.branches().len() as u64).contains(&choice) {
            self.waiting.entry(choice).or_insert(outcome);
        }
    }

    /// Ends the search: merges results up to the first missing one, but at most `most` results in total. Returns the
    /// tree and the ledger.
    pub fn finish(mut self, most: u64) -> (Tree, L) {
        while self.taken < most
            && let Some(outcome) = self.waiting.remove(&self.taken)
        {
            self.take(outcome);
        }
        (self.tree, self.ledger)
    }

    /// Returns the tree so far.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the ledger so far.
    pub fn ledger(&self) -> &L {
        &self.ledger
    }

    fn take(&mut self, outcome: L::Outcome) {
        let standing = self.ledger.take(self.taken, outcome);
        self.tree.settle(self.taken, standing);
        self.taken += 1;
    }
}

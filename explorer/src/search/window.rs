//! The order of an exploration: the sequence of choices, and the results that each of them may use.
//!
//! Choice n is made when exactly the results of the choices up to n - K have been taken in, in the order of choices. It
//! therefore does not depend on the number of workers, on how long branches take, or on the order in which they end. Up
//! to K branches can run at a time.

use std::collections::BTreeMap;
use std::num::NonZero;

use everett_streams::{Lineage, Owner, Purpose, Seed, Streams};

use super::strategy::Strategy;
use super::tree::{Choice, Standing, Tree};

/// Consumer of results, in the order of choices.
pub trait Ledger {
    /// Result that a worker delivers.
    type Outcome;

    /// Takes in a result. The results of all earlier choices were taken in before.
    fn take(&mut self, choice: u64, outcome: Self::Outcome) -> Standing;

    /// Returns the estimated share of new points among those that are reached next, in parts of a million.
    fn unseen_ppm(&self) -> u32;
}

/// Next step of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Run this branch.
    Run(Choice),
    /// Deliver the result of this choice first.
    Wait(u64),
    /// All branches have been chosen.
    Over,
}

/// A running search. See the module's documentation.
#[derive(Debug)]
pub struct Search<S, L: Ledger> {
    seed: Seed,
    in_flight: u64,
    branches_max: u64,
    strategy: S,
    tree: Tree,
    ledger: L,
    /// Delivered results that wait for earlier ones.
    waiting: BTreeMap<u64, L::Outcome>,
    /// Number of results that have been taken in.
    taken: u64,
}

impl<S: Strategy, L: Ledger> Search<S, L> {
    /// Creates a search of at most `branches_max` branches from a root moment at `root_ns`.
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

    /// Chooses the next branch.
    pub fn choose(&mut self) -> Next {
        let number = self.tree.branches().len() as u64;
        if number >= self.branches_max {
            return Next::Over;
        }
        // Takes in exactly the results that this choice may use.
        while self.taken + self.in_flight <= number {
            let Some(outcome) = self.waiting.remove(&self.taken) else { return Next::Wait(self.taken) };
            self.take(outcome);
        }
        // Each choice has a stream of its own, so the draws of one do not affect another.
        let mut streams = Streams::new(&Lineage::new(self.seed), Owner::Search);
        let rng = streams.get(Purpose::Choice { number });
        let from = self.strategy.choose(&self.tree, self.ledger.unseen_ppm(), rng);
        Next::Run(self.tree.add(from))
    }

    /// Delivers the result of a branch. A result is ignored if its branch was not chosen or has a result already.
    pub fn deliver(&mut self, choice: u64, outcome: L::Outcome) {
        if (self.taken..self.tree.branches().len() as u64).contains(&choice) {
            self.waiting.entry(choice).or_insert(outcome);
        }
    }

    /// Ends the search: takes in results up to the first missing one, at most `most` in all, and returns the tree and
    /// the ledger.
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

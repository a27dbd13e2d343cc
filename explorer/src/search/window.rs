//! The order of an exploration: which branch is chosen when, and what is known by then.
//!
//! Choice n is made when exactly the results of the choices up to n - K have been taken in, in their order. So what is chosen does
//! not depend on how many workers there are, how long branches take, or in which order they end. K branches can run at a time.

use std::collections::BTreeMap;
use std::num::NonZero;

use everett_streams::{Lineage, Owner, Purpose, Streams};

use super::strategy::Strategy;
use super::tree::{Choice, Standing, Tree};

/// What is made of results, in the order of choices.
pub trait Ledger {
    /// What a worker brings back.
    type Outcome;

    /// Take a result in. All of choices before it were.
    fn take(&mut self, choice: u64, outcome: Self::Outcome) -> Standing;

    /// How much of what is reached from here on will be new, in parts of a million, as far as can be estimated.
    fn unseen_ppm(&self) -> u32;
}

/// What a search can do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Run this branch.
    Run(Choice),
    /// First the result of this choice is wanted.
    Wait(u64),
    /// All have been chosen.
    Over,
}

/// An exploration that goes on. See the module.
#[derive(Debug)]
pub struct Search<S, L: Ledger> {
    seed: u64,
    in_flight: u64,
    branches_max: u64,
    strategy: S,
    tree: Tree,
    ledger: L,
    /// Results that wait for earlier ones.
    waiting: BTreeMap<u64, L::Outcome>,
    /// How many results have been taken in.
    taken: u64,
}

impl<S: Strategy, L: Ledger> Search<S, L> {
    /// A search of so many branches at the most, from a root moment at `root_ns`.
    pub fn new(
        seed: u64,
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

    /// Choose the next branch.
    pub fn choose(&mut self) -> Next {
        let number = self.tree.branches().len() as u64;
        if number >= self.branches_max {
            return Next::Over;
        }
        // Of the results that are there, those that this choice may know and no others.
        while self.taken + self.in_flight <= number {
            let Some(outcome) = self.waiting.remove(&self.taken) else { return Next::Wait(self.taken) };
            self.take(outcome);
        }
        // Each choice has a stream of its own: what one draws moves no other.
        let mut streams = Streams::new(&Lineage::new(self.seed), Owner::Search);
        let rng = streams.get(Purpose::Choice { number });
        let from = self.strategy.choose(&self.tree, self.ledger.unseen_ppm(), rng);
        Next::Run(self.tree.add(from))
    }

    /// A branch has been run. One that was not chosen, or whose result is there, changes nothing.
    pub fn deliver(&mut self, choice: u64, outcome: L::Outcome) {
        if (self.taken..self.tree.branches().len() as u64).contains(&choice) {
            self.waiting.entry(choice).or_insert(outcome);
        }
    }

    /// Take in what is there, up to the first result that is missing, and at most so many in all: nothing more is chosen.
    pub fn finish(mut self, most: u64) -> (Tree, L) {
        while self.taken < most
            && let Some(outcome) = self.waiting.remove(&self.taken)
        {
            self.take(outcome);
        }
        (self.tree, self.ledger)
    }

    /// The tree so far.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What was made of results so far.
    pub fn ledger(&self) -> &L {
        &self.ledger
    }

    fn take(&mut self, outcome: L::Outcome) {
        let standing = self.ledger.take(self.taken, outcome);
        self.tree.settle(self.taken, standing);
        self.taken += 1;
    }
}

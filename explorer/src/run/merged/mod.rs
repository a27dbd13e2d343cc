//! Merged results: what an exploration has found, after the records of its branches were merged in the order in which
//! the branches were chosen. A record is the stored result of one branch.
//!
//! - `cost`: costs of branches, and their totals
//! - `finding`: findings, one for each property and signature. A hit is a violation of a property on a branch. Hits
//!   of a property have the same signature if they differ only in numbers, times, ids and nodes.
//! - `commands`: results of test commands
//! - `chain`: digests of all results that do not depend on the host
//!
//! **Invariants.**
//! - [`Merged::digest`] covers the exact parts of all records. These are all parts except CPU times, executed
//!   instructions, the text of `broken` (why the host could not run the branch to its end), evidence, lengths of logs,
//!   and costs of final phases (checks after the end of a branch). If two explorations differ in an exact part, their
//!   digests differ.
//! - Records are merged in the order of choices, and none is skipped. The result of the first n branches is therefore
//!   the same in a short and in a long exploration.

mod chain;
mod commands;
mod cost;
mod finding;

use std::collections::{BTreeMap, BTreeSet};

pub use commands::Commands;
pub use cost::{Cost, FinalPhases, LongestFinal, Totals};
pub use finding::{Finding, InSubtree, Tally};

use super::end::{EndReason, ExplorationEnd};
use super::limits::SOMETIMES_ALL_MAX;
use super::merge_input::MergeInput;
use super::record::{Record, RecordProblem};
use crate::coverage::statistics::Findability;
use crate::coverage::{CoverError, Coverage, Dictionary, Kind};
use crate::search::{Ledger, Standing};
use chain::Chain;
use finding::Findings;

/// Merged results of an exploration.
#[derive(Debug, Clone, Default)]
pub struct Merged {
    coverage: Coverage,
    /// For each branch, the subtree that it belongs to, as the number of the subtree's first branch. A subtree's first
    /// branch starts at the root moment.
    subtree_of: Vec<u64>,
    /// Cost of each subtree so far, by the number of the subtree's first branch.
    subtrees: BTreeMap<u64, Cost>,
    /// Subtrees with at least one branch after which the checks ran.
    checked: BTreeSet<u64>,
    findings: Findings,
    sometimes: BTreeMap<String, Seen>,
    sometimes_overflow: u64,
    commands: Commands,
    /// For each branch, the number of messages between nodes on its timeline, from the root moment to the branch's end.
    messages: Vec<u64>,
    totals: Totals,
    chain: Chain,
    stray: Option<Stray>,
}

/// Branches on which a `sometimes` property held or a test command succeeded. A `sometimes` property is a property that
/// should hold on at least one branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Number of the first of these branches, in the order in which the explorer chose them.
    pub first: u64,
    /// Number of these branches.
    pub branches: u64,
}

/// Reason why a record cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stray {
    /// The record does not belong to the next branch in the order of choices.
    #[error("got the result of choice {choice}, but choice {next} is next")]
    Order {
        /// Number of the record's branch.
        choice: u64,
        /// Number of the branch that must come next.
        next: u64,
    },
    /// The record extends a branch that does not exist.
    #[error("choice {choice} extends choice {from}, which is not an earlier one")]
    From {
        /// Number of the record's branch.
        choice: u64,
        /// Number of the branch that the record's branch extends.
        from: u64,
    },
    /// The record is invalid.
    #[error("choice {choice}")]
    Record {
        /// Number of the record's branch.
        choice: u64,
        /// Problem with the record.
        source: RecordProblem,
    },
}

impl Merged {
    /// Returns empty results. `dictionary` gives each coverage point its number.
    #[must_use]
    pub fn new(dictionary: Dictionary) -> Merged {
        Merged { coverage: Coverage::new(dictionary), ..Merged::default() }
    }

    /// Merges the record of the next branch, in the order of choices. Before that, cuts the texts and lists of the
    /// record to their maximum lengths.
    ///
    /// # Errors
    /// Returns an error and changes nothing if the record is invalid, does not belong to the next branch, or extends an
    /// unknown branch.
    pub fn merge(&mut self, record: Record) -> Result<Standing, Stray> {
        let choice = record.choice;
        self.place(choice, record.from)?;
        let input = MergeInput::new(record, self.coverage.dictionary());
        self.merge_input(input.map_err(|source| Stray::Record { choice, source })?)
    }

    /// Merges the record of the next branch, in the order of choices. The record must refer to coverage points by their
    /// numbers in the dictionary that [`Merged::new`] got.
    ///
    /// # Errors
    /// Returns an error and changes nothing if the record does not belong to the next branch, or extends an unknown
    /// branch.
    pub fn merge_input(&mut self, input: MergeInput) -> Result<Standing, Stray> {
        let (choice, next) = (input.record.choice, self.branches());
        let subtree = self.place(choice, input.record.from)?;
        let order = |_: CoverError| Stray::Order { choice, next };
        let reward = self.coverage.merge_numbers(choice, &input.numbers).map_err(order)?.new.len() as u64;
        self.totals.add(&input);
        self.chain.add(input.exact);
        let record = input.record;
        self.subtree_of.push(subtree);
        let before = record.from.map_or(0, |from| self.messages_until(from));
        self.messages.push(before.saturating_add(record.messages));
        let cost = self.subtrees.entry(subtree).or_default();
        cost.add(&record);
        let until = *cost;
        if record.checked {
            self.checked.insert(subtree);
        }
        self.commands.add(&record);
        for name in &record.sometimes {
            if self.sometimes.len() >= SOMETIMES_ALL_MAX && !self.sometimes.contains_key(name) {
                self.sometimes_overflow = self.sometimes_overflow.saturating_add(1);
                continue;
            }
            let unseen = Seen { first: choice, branches: 0 };
            self.sometimes.entry(name.clone()).or_insert(unseen).branches += 1;
        }
        let open_ns = record.open_ns.filter(|_| record.broken.is_none());
        let instructions = record.instructions;
        self.findings.add(record, subtree, until, self.totals.cost);
        Ok(Standing { open_ns, reward, instructions })
    }

    /// Returns the subtree of the next branch, as the number of the subtree's first branch. Returns an error
    /// if `choice` is not next, or if `from` is unknown.
    fn place(&self, choice: u64, from: Option<u64>) -> Result<u64, Stray> {
        let next = self.branches();
        if choice != next {
            return Err(Stray::Order { choice, next });
        }
        match from {
            None => Ok(choice),
            Some(from) => self.subtree_of(from).ok_or(Stray::From { choice, from }),
        }
    }

    /// Returns the number of merged branches.
    #[must_use]
    pub fn branches(&self) -> u64 {
        self.subtree_of.len() as u64
    }

    /// Returns the number of the first branch of a branch's subtree, which may be the branch itself. Returns `None` if
    /// the branch is not merged.
    #[must_use]
    pub fn subtree_of(&self, choice: u64) -> Option<u64> {
        self.subtree_of.get(usize::try_from(choice).ok()?).copied()
    }

    /// Returns the number of messages between nodes on a timeline, from the root moment to the end of a branch.
    fn messages_until(&self, choice: u64) -> u64 {
        let messages = usize::try_from(choice).ok().and_then(|choice| self.messages.get(choice));
        messages.copied().unwrap_or(0)
    }

    /// Returns the largest number of messages between nodes on any timeline, counted from the root moment.
    #[must_use]
    pub fn messages_most(&self) -> u64 {
        self.messages.iter().copied().max().unwrap_or(0)
    }

    /// Returns the cost of each subtree, by the number of the subtree's first branch.
    #[must_use]
    pub fn subtrees(&self) -> &BTreeMap<u64, Cost> {
        &self.subtrees
    }

    /// Returns the number of subtrees with at least one branch after which the checks ran.
    #[must_use]
    pub fn subtrees_checked(&self) -> u64 {
        self.checked.len() as u64
    }

    /// Returns the coverage.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Returns the findings in the order of ids.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.findings.all()
    }

    /// Returns the id of the finding with this property and signature.
    #[must_use]
    pub fn finding_of(&self, key: &(String, String)) -> Option<u32> {
        self.findings.id_of(key)
    }

    /// Returns the number of hits that were dropped because the exploration already had
    /// [`FINDINGS_MAX`](super::limits::FINDINGS_MAX) findings.
    #[must_use]
    pub fn findings_overflow(&self) -> u64 {
        self.findings.overflow()
    }

    /// Returns the hits of each property, summed over all signatures.
    #[must_use]
    pub fn properties(&self) -> &BTreeMap<String, Tally> {
        self.findings.properties()
    }

    /// Returns the `sometimes` properties that held on at least one branch, with these branches.
    #[must_use]
    pub fn sometimes(&self) -> &BTreeMap<String, Seen> {
        &self.sometimes
    }

    /// Returns how often a `sometimes` property was dropped because the exploration already had
    /// [`SOMETIMES_ALL_MAX`] of them.
    #[must_use]
    pub fn sometimes_overflow(&self) -> u64 {
        self.sometimes_overflow
    }

    /// Returns the results of a test template's commands.
    #[must_use]
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Returns the totals.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the first record that [`Ledger::take`] could not merge. An unmergeable record is a defect of the caller.
    #[must_use]
    pub fn stray(&self) -> Option<Stray> {
        self.stray
    }

    /// Returns the findability of a finding or property, i.e. how many subtrees hit it at which cost. The unit of cost
    /// is [`Cost::cpu_ns`] or [`Cost::instructions`]. A subtree with a hit contributes its cost until the first hit,
    /// and any other subtree contributes its whole cost. A call takes time proportional to the number of subtrees with
    /// a hit.
    #[must_use]
    pub fn findability(&self, tally: &Tally, unit: fn(&Cost) -> u64) -> Findability {
        let after = tally.subtrees.iter().map(|(subtree, hit)| {
            let cost = self.subtrees.get(subtree).map_or(0, unit);
            cost.saturating_sub(unit(&hit.until))
        });
        let after = after.fold(0, u64::saturating_add);
        let time = unit(&self.totals.cost).saturating_sub(after);
        Findability { time, hits: tally.subtrees.len() as u64 }
    }

    /// Returns the digest of the results of the first `branches` branches, in constant time. If two explorations have
    /// the same digest, the exact parts of these results are equal. Returns `None` if fewer branches are merged.
    #[must_use]
    pub fn digest_at(&self, branches: u64) -> Option<blake3::Hash> {
        self.chain.at(branches)
    }

    /// Returns a digest of all results: the digest of all records ([`Merged::digest_at`]), the findings and the
    /// coverage. The digest omits the parts of records that are not exact (see the module's invariants).
    #[must_use]
    pub fn digest(&self) -> blake3::Hash {
        chain::whole(&self.chain, self.findings(), self.findings_overflow(), &self.coverage)
    }

    /// Returns the contents of `end.json`, the file in the run directory that tells how the exploration ended.
    #[must_use]
    pub fn end(&self, why: EndReason, host_ns: u64) -> ExplorationEnd {
        ExplorationEnd {
            why,
            branches: self.branches(),
            findings: self.findings().len() as u64,
            digest: self.digest().to_hex().to_string(),
            chain: self.chain.last().to_hex().to_string(),
            host_ns,
            budget: None,
        }
    }
}

impl Ledger for Merged {
    type Outcome = MergeInput;

    fn take(&mut self, choice: u64, input: MergeInput) -> Standing {
        let instructions = input.record.instructions;
        let merged = match input.record.choice == choice {
            true => self.merge_input(input),
            false => Err(Stray::Order { choice: input.record.choice, next: choice }),
        };
        merged.unwrap_or_else(|stray| {
            self.stray.get_or_insert(stray);
            Standing { open_ns: None, reward: 0, instructions }
        })
    }

    /// Returns the probability that the next state that a branch reaches is new, in parts of a million, by the
    /// Good-Turing estimate.
    fn unseen_ppm(&self) -> u32 {
        let unseen = self.coverage.incidence(Kind::State).unseen();
        let ppm = u128::from(unseen.numerator) * PPM / u128::from(unseen.denominator.max(1));
        u32::try_from(ppm.min(PPM)).unwrap_or(u32::MAX)
    }
}

const PPM: u128 = 1_000_000;

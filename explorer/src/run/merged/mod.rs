//! What is known once records were taken in, in the order of choices.
//!
//! - `cost`: what branches cost, and their totals; `finding`: what was found, once for each signature
//! - `commands`: what became of test commands; `chain`: digests of all that is exact
//!
//! **Invariants.**
//! - All but times is a function of the records' exact parts: [`Merged::digest`] tells two apart.
//! - Records are taken in one by one without a gap, so that what n of them came to is the beginning of what more came to.

mod chain;
mod commands;
mod cost;
mod finding;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use chain::exact;
pub use commands::Commands;
pub use cost::{Cost, Totals};
pub use finding::{Finding, InSubtree, Tally};

use super::brief::Brief;
use super::end::{End, Why};
use super::limits::SOMETIMES_ALL_MAX;
use super::record::{Record, RecordProblem};
use crate::coverage::statistics::Findability;
use crate::coverage::{CoverError, Coverage, Dictionary, Kind};
use crate::search::{Ledger, Standing};
use chain::Chain;
use finding::Findings;

/// What is known. See the module.
#[derive(Debug, Clone, Default)]
pub struct Merged {
    coverage: Coverage,
    /// By choice, the branch from the root moment that it goes on from.
    subtree_of: Vec<u64>,
    /// By that branch, what its subtree cost so far.
    subtrees: BTreeMap<u64, Cost>,
    /// Of these, those in which a branch was followed by checks.
    checked: BTreeSet<u64>,
    findings: Findings,
    sometimes: BTreeMap<String, Seen>,
    sometimes_overflow: u64,
    commands: Commands,
    /// By choice, the messages of its timeline from the root moment on.
    messages: Vec<u64>,
    totals: Totals,
    chain: Chain,
    stray: Option<Stray>,
}

/// Where something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The first choice that led there.
    pub first: u64,
    /// In how many branches.
    pub branches: u64,
}

/// A record that cannot be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stray {
    /// It is not the next one's.
    #[error("choice {choice} comes where {next} is next")]
    Order {
        /// Its choice.
        choice: u64,
        /// The one that is next.
        next: u64,
    },
    /// What it goes on from is not there.
    #[error("choice {choice} goes on from {from}, which is no earlier one")]
    From {
        /// Its choice.
        choice: u64,
        /// The one it goes on from.
        from: u64,
    },
    /// It cannot be a record.
    #[error("choice {choice}: {problem}")]
    Record {
        /// Its choice.
        choice: u64,
        /// What is wrong with it.
        problem: RecordProblem,
    },
}

impl Merged {
    /// Nothing is known yet; records name points by their numbers in this dictionary.
    #[must_use]
    pub fn new(dictionary: Dictionary) -> Merged {
        Merged { coverage: Coverage::new(dictionary), ..Merged::default() }
    }

    /// Take in the record of the next choice, within bounds.
    ///
    /// # Errors
    /// It is not the next; nothing is changed.
    pub fn merge(&mut self, record: Record) -> Result<Standing, Stray> {
        let choice = record.choice;
        self.place(choice, record.from)?;
        let brief = Brief::new(record, self.coverage.dictionary());
        self.merge_brief(brief.map_err(|problem| Stray::Record { choice, problem })?)
    }

    /// Take in the record of the next choice, whose points are numbers of this dictionary.
    ///
    /// # Errors
    /// It is not the next; nothing is changed.
    pub fn merge_brief(&mut self, brief: Brief) -> Result<Standing, Stray> {
        let (choice, next) = (brief.record.choice, self.branches());
        let subtree = self.place(choice, brief.record.from)?;
        let order = |_: CoverError| Stray::Order { choice, next };
        let reward = self.coverage.merge_numbers(choice, &brief.numbers).map_err(order)?.new.len() as u64;
        self.totals.add(&brief);
        self.chain.add(brief.exact);
        let record = brief.record;
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

    /// The subtree of the next choice's branch, if this is its choice and what it goes on from is there.
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

    /// How many branches were taken in.
    #[must_use]
    pub fn branches(&self) -> u64 {
        self.subtree_of.len() as u64
    }

    /// The branch from the root moment that a branch goes on from, itself if it is one.
    #[must_use]
    pub fn subtree_of(&self, choice: u64) -> Option<u64> {
        self.subtree_of.get(usize::try_from(choice).ok()?).copied()
    }

    /// The messages of a timeline, from the root moment to the end of a branch.
    fn messages_until(&self, choice: u64) -> u64 {
        let messages = usize::try_from(choice).ok().and_then(|choice| self.messages.get(choice));
        messages.copied().unwrap_or(0)
    }

    /// The messages of the timeline that has the most.
    #[must_use]
    pub fn messages_most(&self) -> u64 {
        self.messages.iter().copied().max().unwrap_or(0)
    }

    /// By the branch from the root moment that heads it, what each subtree cost.
    #[must_use]
    pub fn subtrees(&self) -> &BTreeMap<u64, Cost> {
        &self.subtrees
    }

    /// How many subtrees have a branch that was followed by checks.
    #[must_use]
    pub fn subtrees_checked(&self) -> u64 {
        self.checked.len() as u64
    }

    /// What was covered.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// What was found, in the order of ids.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.findings.all()
    }

    /// Hits for which there was no room: of new findings after [`FINDINGS_MAX`](super::limits::FINDINGS_MAX).
    #[must_use]
    pub fn findings_overflow(&self) -> u64 {
        self.findings.overflow()
    }

    /// By property, where it was hit, whatever the signature.
    #[must_use]
    pub fn properties(&self) -> &BTreeMap<String, Tally> {
        self.findings.properties()
    }

    /// The `sometimes` properties that were seen.
    #[must_use]
    pub fn sometimes(&self) -> &BTreeMap<String, Seen> {
        &self.sometimes
    }

    /// Times that one was seen for which there was no room.
    #[must_use]
    pub fn sometimes_overflow(&self) -> u64 {
        self.sometimes_overflow
    }

    /// What became of a test template's commands.
    #[must_use]
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Everything added up.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The first record that [`Ledger::take`] could not take in: a defect of who gave it.
    #[must_use]
    pub fn stray(&self) -> Option<Stray> {
        self.stray
    }

    /// How findable something is that was hit so, in a unit of cost: [`Cost::cpu_ns`] or [`Cost::instructions`]. It takes a step for
    /// each subtree that was hit: of the others all cost counts, and of these what came after the first hit does not.
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

    /// A digest of what the first branches came to, which it takes no time to look up. Two explorations with one digest at n
    /// branches are the same up to there.
    #[must_use]
    pub fn digest_at(&self, branches: u64) -> Option<blake3::Hash> {
        self.chain.at(branches)
    }

    /// A digest of all that is known: the chain's last link, findings, coverage. Times are left out, and so is what this host
    /// executed.
    #[must_use]
    pub fn digest(&self) -> blake3::Hash {
        chain::whole(&self.chain, self.findings(), self.findings_overflow(), &self.coverage)
    }

    /// How the exploration ends.
    #[must_use]
    pub fn end(&self, why: Why, host_ns: u64) -> End {
        End {
            why,
            branches: self.branches(),
            findings: self.findings().len() as u64,
            digest: self.digest().to_hex().to_string(),
            chain: self.chain.last().to_hex().to_string(),
            host_ns,
        }
    }
}

impl Ledger for Merged {
    type Outcome = Brief;

    fn take(&mut self, choice: u64, brief: Brief) -> Standing {
        let instructions = brief.record.instructions;
        let merged = match brief.record.choice == choice {
            true => self.merge_brief(brief),
            false => Err(Stray::Order { choice: brief.record.choice, next: choice }),
        };
        merged.unwrap_or_else(|stray| {
            self.stray.get_or_insert(stray);
            Standing { open_ns: None, reward: 0, instructions }
        })
    }

    /// The mass of states that no branch came to, as Good and Turing estimate it.
    fn unseen_ppm(&self) -> u32 {
        let unseen = self.coverage.incidence(Kind::State).unseen();
        let ppm = u128::from(unseen.numerator) * PPM / u128::from(unseen.denominator.max(1));
        u32::try_from(ppm.min(PPM)).unwrap_or(u32::MAX)
    }
}

const PPM: u128 = 1_000_000;

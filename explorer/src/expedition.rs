//! An exploration as it goes: branches are chosen and handed out, their results written down and taken in.
//!
//! Not here: who runs branches ([`Workers`]), who is told of it ([`Watch`]), and host time.
//!
//! **Invariant.** What comes of it is a function of the exploration and of how many branches were taken in. Whoever watches only
//! decides how many those are; what a killed exploration had written down is taken as if it had just been run.

use std::collections::BTreeSet;
use std::num::NonZero;

use crate::coverage::Dictionary;
use crate::run::limits::FINDINGS_MAX;
use crate::run::{Brief, Hit, Journal, Merged, Record, RecordProblem, RunError, Stray, Why};
use crate::search::strategy::Strategy;
use crate::search::{Choice, Next, Path, PathError, Place, Search, Tree};

/// Recorded results that are taken before whoever watches is asked again.
const RECORDED_AT_ONCE: usize = 1 << 10;

/// A branch that is to be run.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which.
    pub choice: Choice,
    /// Branches from the root moment to its parent.
    pub way: Vec<(u64, Path)>,
}

/// Those who run branches.
pub trait Workers {
    /// Why a branch cannot be run.
    type Error;

    /// How many branches wait to be begun.
    fn waiting(&self) -> usize;

    /// Have this one run, after all that were asked for before.
    fn ask(&mut self, job: Job);

    /// A result that has come, with its choice. If there is none and `wait` says so, one is waited for, but not for long.
    ///
    /// # Errors
    /// A branch cannot be run.
    fn result(&mut self, wait: bool) -> Result<Option<(u64, Record)>, Self::Error>;

    /// Nothing more is wanted. What has come can be asked for.
    fn call_off(&mut self);
}

/// Who watches an exploration.
pub trait Watch {
    /// Something was found that was not before. The record has no delta, trail and marks.
    fn found(&mut self, record: &Record, hit: &Hit);
    /// It is here. Told again and again. Returns why it is to end, if it is.
    fn at(&mut self, progress: &Progress) -> Option<Why>;
}

/// How far an exploration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Branches whose results are there.
    pub branches: u64,
    /// Of these, those that were run now.
    pub run: u64,
    /// Nanoseconds of vtime of all of them.
    pub vtime_ns: u64,
    /// Instructions of those that were run now.
    pub instructions: u64,
    /// CPU time of those, in nanoseconds.
    pub cpu_ns: u64,
    /// Different states of the world that are known.
    pub states: u64,
    /// Different findings.
    pub findings: u64,
}

/// What is explored, and how far.
#[derive(Debug)]
pub struct Aim<S> {
    /// The seed of all choices.
    pub seed: u64,
    /// The root moment, in nanoseconds of vtime.
    pub root_ns: u64,
    /// Branches that run at a time.
    pub in_flight: NonZero<u32>,
    /// From where branches go on.
    pub strategy: S,
    /// It ends after so many branches,
    pub branches: u64,
    /// and if this is so, with the first, in the order of choice, on which something is found.
    pub until_found: bool,
    /// Branches that wait to be begun, so that no worker waits for one.
    pub waiting: usize,
}

/// What came of an exploration.
#[derive(Debug)]
pub struct Outcome {
    /// The tree.
    pub tree: Tree,
    /// What was made of the branches.
    pub merged: Merged,
    /// Why it ended.
    pub why: Why,
    /// What was done for it.
    pub progress: Progress,
}

/// Why an exploration cannot go on. What was recorded until then was made to last, if the system could do it.
#[derive(Debug, thiserror::Error)]
pub enum ExpeditionError<E> {
    /// The run directory.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A branch cannot be run.
    #[error("a branch cannot be run")]
    Worker(E),
    /// A worker brought what cannot be a record.
    #[error("the record of choice {choice} cannot be one: {problem}")]
    Record {
        /// The choice.
        choice: u64,
        /// What is wrong with it.
        problem: RecordProblem,
    },
    /// Branches are not those that were chosen: a defect.
    #[error("the branches are not those that were chosen: {0}")]
    Stray(Stray),
    /// A path is none: a defect.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Explore, from where a journal has come to if there is one.
///
/// # Errors
/// A branch cannot be run, or what is written cannot be.
pub fn explore<S: Strategy, W: Workers>(
    aim: Aim<S>,
    mut journal: Option<&mut Journal>,
    workers: &mut W,
    watch: &mut dyn Watch,
) -> Result<Outcome, ExpeditionError<W::Error>> {
    let dictionary =
        journal.as_ref().map_or_else(Dictionary::default, |journal| journal.dictionary().clone());
    let merged = Merged::new(dictionary.clone());
    let Aim { seed, root_ns, in_flight, strategy, branches, until_found, waiting } = aim;
    let mut leader = Leader {
        search: Search::new(seed, root_ns, in_flight, branches, strategy, merged),
        journal: journal.as_deref_mut(),
        dictionary,
        workers,
        watch,
        until_found,
        waiting,
        out: BTreeSet::new(),
        found_at: None,
        signatures: BTreeSet::new(),
        progress: Progress::default(),
    };
    let led = leader.lead();
    let Leader { search, found_at, progress, .. } = leader;
    let why = match led {
        Ok(why) => why,
        Err(error) => {
            if let Some(journal) = journal {
                // Why it cannot go on says more than why this cannot be.
                let _ = journal.sync();
            }
            return Err(error);
        }
    };
    let most = found_at.filter(|_| why == Why::Found).map_or(u64::MAX, |found| found + 1);
    let (tree, merged) = search.finish(most);
    match merged.stray() {
        Some(stray) => Err(ExpeditionError::Stray(stray)),
        None => Ok(Outcome { tree, merged, why, progress }),
    }
}

/// Who chooses, and takes in.
struct Leader<'l, S, W> {
    search: Search<S, Merged>,
    journal: Option<&'l mut Journal>,
    dictionary: Dictionary,
    workers: &'l mut W,
    watch: &'l mut dyn Watch,
    until_found: bool,
    waiting: usize,
    /// Branches that were handed out, and are not back.
    out: BTreeSet<u64>,
    /// The first choice, so far, with a finding, if that ends it.
    found_at: Option<u64>,
    signatures: BTreeSet<(String, String)>,
    progress: Progress,
}

/// How handing out went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handed {
    /// All were chosen that ever will be.
    All,
    /// First a result is wanted.
    Enough,
    /// There are more that can be chosen now.
    Some,
}

impl<S: Strategy, W: Workers> Leader<'_, S, W> {
    fn lead(&mut self) -> Result<Why, ExpeditionError<W::Error>> {
        let why = loop {
            if let Some(why) = self.watch.at(&self.progress) {
                break why;
            }
            let handed = self.hand_out()?;
            if let Some(found) = self.found_at
                && self.out.first().is_none_or(|&first| first > found)
            {
                break Why::Found;
            }
            if handed == Handed::All && self.out.is_empty() {
                break Why::Branches;
            }
            let result = self.workers.result(handed != Handed::Some);
            if let Some((number, record)) = result.map_err(ExpeditionError::Worker)? {
                self.back(number, record)?;
            }
        };
        self.workers.call_off();
        // Those that were done before they heard of it.
        loop {
            match self.workers.result(false) {
                Ok(Some((number, record))) => self.back(number, record)?,
                Ok(None) => return Ok(why),
                Err(_) => {}
            }
        }
    }

    /// Choose as many branches as can be, for a while.
    fn hand_out(&mut self) -> Result<Handed, ExpeditionError<W::Error>> {
        let mut recorded = 0;
        while self.workers.waiting() < self.waiting {
            let chosen = self.search.tree().branches().len() as u64;
            if self.found_at.is_some_and(|found| chosen > found) {
                return Ok(Handed::All);
            }
            let choice = match self.search.choose() {
                Next::Over => return Ok(Handed::All),
                Next::Wait(_) => return Ok(Handed::Enough),
                Next::Run(choice) => choice,
            };
            if self.take_recorded(&choice)? {
                recorded += 1;
                if recorded >= RECORDED_AT_ONCE {
                    return Ok(Handed::Some);
                }
                continue;
            }
            let way = way(self.search.tree(), choice.from)?;
            self.out.insert(choice.number);
            self.workers.ask(Job { choice, way });
        }
        Ok(Handed::Enough)
    }

    /// True if the result of a choice was there.
    fn take_recorded(&mut self, choice: &Choice) -> Result<bool, ExpeditionError<W::Error>> {
        let Some(journal) = &self.journal else { return Ok(false) };
        let Some(brief) = journal.recorded(choice)? else { return Ok(false) };
        self.note(&brief);
        self.search.deliver(choice.number, brief);
        Ok(true)
    }

    fn back(&mut self, number: u64, record: Record) -> Result<(), ExpeditionError<W::Error>> {
        if !self.out.remove(&number) {
            return Ok(());
        }
        let brief = match &mut self.journal {
            Some(journal) => journal.append(record)?,
            None => Brief::new(record, &self.dictionary)
                .map_err(|problem| ExpeditionError::Record { choice: number, problem })?,
        };
        self.progress.run += 1;
        self.progress.instructions += brief.record().executed;
        self.progress.cpu_ns += brief.record().cpu_ns;
        self.note(&brief);
        self.search.deliver(number, brief);
        Ok(())
    }

    /// What there is to tell of a result, and whether it ends the exploration.
    fn note(&mut self, brief: &Brief) {
        let record = brief.record();
        self.progress.branches += 1;
        self.progress.vtime_ns += record.vtime_ns();
        self.progress.states = self.dictionary.states();
        for hit in &record.hits {
            let signature = (hit.property.clone(), hit.signature.clone());
            if self.signatures.len() < FINDINGS_MAX && self.signatures.insert(signature) {
                self.watch.found(record, hit);
            }
        }
        self.progress.findings = self.signatures.len() as u64;
        if self.until_found && !record.hits.is_empty() {
            let first = self.found_at.map_or(record.choice, |found| found.min(record.choice));
            self.found_at = Some(first);
        }
    }
}

/// Branches from the root moment to a place, with their paths.
fn way(tree: &Tree, place: Place) -> Result<Vec<(u64, Path)>, PathError> {
    let mut way = Vec::new();
    let mut place = place;
    while let Place::After(number) = place {
        way.push((number, tree.path(place)?));
        place = tree.branch(number).map_or(Place::Root, |branch| branch.from);
    }
    way.reverse();
    Ok(way)
}

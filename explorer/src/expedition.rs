//! The main loop of an exploration: chooses branches, hands them to workers, records the results and merges them.
//!
//! Not here: the execution of branches (behind the trait [`Workers`]), the display of progress ([`Watch`]), and host
//! time.
//!
//! **Invariant.** The result depends only on the exploration's inputs and on the number of merged branches. [`Watch`]
//! influences only this number, by ending the exploration. Branches that an earlier, killed process recorded in the run
//! directory are merged as if they had just been run.

use std::collections::BTreeSet;
use std::num::NonZero;

use everett_streams::Seed;

use crate::coverage::Dictionary;
use crate::run::limits::FINDINGS_MAX;
use crate::run::{EndReason, Hit, Journal, MergeInput, Merged, Record, RecordProblem, RunError, Stray};
use crate::search::strategy::Strategy;
use crate::search::{Choice, ForkPoint, Next, Path, PathError, Search, Tree};

/// Maximum number of results from the run directory that are merged before [`Watch::at`] is called again.
const RECORDED_AT_ONCE: usize = 1 << 10;

/// Branch to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// Number, start and path of the branch.
    pub choice: Choice,
    /// Number and path of each ancestor of the branch, starting with the child of the root moment.
    pub way: Vec<(u64, Path)>,
}

/// Pool of workers that run branches.
pub trait Workers {
    /// Reason why a branch cannot be run.
    type Error;

    /// Returns the number of queued branches that no worker has started.
    fn waiting(&self) -> usize;

    /// Adds a branch to the end of the queue.
    fn ask(&mut self, job: Job);

    /// Returns the number and the record (the stored result) of a finished branch. If no branch is finished and
    /// `wait` is true, waits for a bounded time. Returns `None` if no branch is finished then.
    ///
    /// # Errors
    /// Returns an error if a branch cannot be run.
    fn result(&mut self, wait: bool) -> Result<Option<(u64, Record)>, Self::Error>;

    /// Cancels all queued branches. Finished results can still be fetched with [`Workers::result`].
    fn call_off(&mut self);
}

/// Observer of an exploration, which may also end it. The default methods do nothing.
pub trait Watch {
    /// Called for each new finding. The record, i.e. the branch's result, comes without the fields `delta`, `trail` and
    /// `marks`.
    fn found(&mut self, _: &Record, _: &Hit) {}
    /// Called for each branch with a result, in the order in which results arrive. `dictionary` contains the coverage
    /// points that the branch reached.
    fn branch(&mut self, _: &MergeInput, _dictionary: &Dictionary) {}
    /// Called before each [`Watch::at`], with the tree and the merged results. The results of the latest branches may
    /// be missing.
    fn look(&mut self, _: &Tree, _: &Merged) {}
    /// Called repeatedly with the current progress. Returns a reason to end the exploration, or `None` to continue.
    fn at(&mut self, _: &SearchProgress) -> Option<EndReason> {
        None
    }
}

/// Observer that does nothing.
impl Watch for () {}

/// Progress of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SearchProgress {
    /// Number of branches with results.
    pub branches: u64,
    /// Number of branches that this process ran. The results of all other branches came from the run directory.
    pub run: u64,
    /// Total length of all branches, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// Number of instructions that this process executed for branches.
    pub instructions: u64,
    /// CPU time that this process spent on branches, in nanoseconds.
    pub cpu_ns: u64,
    /// Number of distinct abstract states (summaries of the world's logs and faults) that branches reached.
    pub states: u64,
    /// Number of distinct findings.
    pub findings: u64,
}

/// Parameters of an exploration, including the conditions that end it.
#[derive(Debug)]
pub struct Aim<S> {
    /// Seed of all choices.
    pub seed: Seed,
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
    /// K, the maximum number of branches in flight (chosen, result not yet merged).
    pub in_flight: NonZero<u32>,
    /// Strategy that chooses the moments from which branches start.
    pub strategy: S,
    /// Maximum number of branches.
    pub branches: u64,
    /// True if the exploration ends at the first branch with a finding, in the order in which branches are chosen.
    pub until_found: bool,
    /// Number of branches to keep in the workers' queue, so that no worker is idle.
    pub waiting: usize,
}

/// Result of an exploration.
#[derive(Debug)]
pub struct SearchOutcome {
    /// Tree of branches.
    pub tree: Tree,
    /// Merged results of the branches.
    pub merged: Merged,
    /// Reason why the exploration ended.
    pub why: EndReason,
    /// Progress at the end.
    pub progress: SearchProgress,
}

/// Error that ends an exploration. All earlier records are synced to disk, unless the sync also fails.
#[derive(Debug, thiserror::Error)]
pub enum ExpeditionError<E> {
    /// The run directory cannot be read or written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A branch cannot be run.
    #[error("a branch cannot be run")]
    Worker(E),
    /// A worker returned an invalid record.
    #[error("invalid record of choice {choice}")]
    Record {
        /// Number of the branch, in the order in which branches were chosen.
        choice: u64,
        /// Problem with the record.
        source: RecordProblem,
    },
    /// A record does not belong to the chosen branch. This is a defect of Everett.
    #[error("the branches are not those that were chosen")]
    Stray(#[source] Stray),
    /// A path is invalid. This is a defect of Everett.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Runs an exploration. With a journal, i.e. the stored results in a run directory, only branches without a stored
/// result are run.
///
/// # Errors
/// Returns an error if a branch cannot be run, if a record or path is invalid, or if the run directory cannot be read
/// or written.
pub fn explore<S: Strategy, W: Workers>(
    aim: Aim<S>,
    mut journal: Option<&mut Journal>,
    workers: &mut W,
    watch: &mut dyn Watch,
) -> Result<SearchOutcome, ExpeditionError<W::Error>> {
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
        progress: SearchProgress::default(),
    };
    let led = leader.lead();
    let Leader { search, found_at, progress, .. } = leader;
    let why = match led {
        Ok(why) => why,
        Err(error) => {
            if let Some(journal) = journal {
                // The caller gets the first error, because it says more than a failed sync.
                let _ = journal.sync();
            }
            return Err(error);
        }
    };
    let most = found_at.filter(|_| why == EndReason::Found).map_or(u64::MAX, |found| found + 1);
    let (tree, merged) = search.finish(most);
    match merged.stray() {
        Some(stray) => Err(ExpeditionError::Stray(stray)),
        None => Ok(SearchOutcome { tree, merged, why, progress }),
    }
}

/// State of the main loop.
struct Leader<'l, S, W> {
    search: Search<S, Merged>,
    journal: Option<&'l mut Journal>,
    dictionary: Dictionary,
    workers: &'l mut W,
    watch: &'l mut dyn Watch,
    until_found: bool,
    waiting: usize,
    /// Numbers of the branches that were handed to workers and have no result yet.
    out: BTreeSet<u64>,
    /// Lowest number of a branch with a finding so far. Always `None` without `until_found`.
    found_at: Option<u64>,
    signatures: BTreeSet<(String, String)>,
    progress: SearchProgress,
}

/// Reason why [`Leader::hand_out`] stopped choosing branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handed {
    /// No more branches will be chosen.
    All,
    /// The queue is full, or the next choice depends on a result that has not arrived.
    Enough,
    /// [`RECORDED_AT_ONCE`] recorded results were merged. More branches can be chosen now.
    Some,
}

impl<S: Strategy, W: Workers> Leader<'_, S, W> {
    fn lead(&mut self) -> Result<EndReason, ExpeditionError<W::Error>> {
        let why = loop {
            self.watch.look(self.search.tree(), self.search.ledger());
            if let Some(why) = self.watch.at(&self.progress) {
                break why;
            }
            let handed = self.hand_out()?;
            if let Some(found) = self.found_at
                && self.out.first().is_none_or(|&first| first > found)
            {
                break EndReason::Found;
            }
            if handed == Handed::All && self.out.is_empty() {
                break EndReason::Branches;
            }
            let result = self.workers.result(handed != Handed::Some);
            if let Some((number, record)) = result.map_err(ExpeditionError::Worker)? {
                self.back(number, record)?;
            }
        };
        self.workers.call_off();
        // Record the branches that finished before they could be cancelled.
        loop {
            match self.workers.result(false) {
                Ok(Some((number, record))) => self.back(number, record)?,
                Ok(None) => return Ok(why),
                Err(_) => {}
            }
        }
    }

    /// Chooses branches and hands those without a recorded result to the workers. The enum `Handed` lists the reasons
    /// to stop.
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

    /// Merges the recorded result of a chosen branch. Returns false if the journal has no result for the branch.
    fn take_recorded(&mut self, choice: &Choice) -> Result<bool, ExpeditionError<W::Error>> {
        let Some(journal) = &self.journal else { return Ok(false) };
        let Some(input) = journal.recorded(choice)? else { return Ok(false) };
        self.note(&input);
        self.search.deliver(choice.number, input);
        Ok(true)
    }

    fn back(&mut self, number: u64, record: Record) -> Result<(), ExpeditionError<W::Error>> {
        if !self.out.remove(&number) {
            return Ok(());
        }
        let input = match &mut self.journal {
            Some(journal) => journal.append(record)?,
            None => MergeInput::new(record, &self.dictionary)
                .map_err(|source| ExpeditionError::Record { choice: number, source })?,
        };
        self.progress.run += 1;
        self.progress.instructions = self.progress.instructions.saturating_add(input.record().executed);
        self.progress.cpu_ns = self.progress.cpu_ns.saturating_add(input.record().cpu_ns);
        self.note(&input);
        self.search.deliver(number, input);
        Ok(())
    }

    /// Updates the progress, reports new findings, and notes a finding that ends the exploration.
    fn note(&mut self, input: &MergeInput) {
        let record = input.record();
        self.progress.branches += 1;
        // Saturate, because a run directory that was copied from elsewhere may contain any times.
        self.progress.vtime_ns = self.progress.vtime_ns.saturating_add(record.vtime_ns());
        self.progress.states = self.dictionary.states();
        for hit in &record.hits {
            let signature = (hit.property.clone(), hit.signature.clone());
            if self.signatures.len() < FINDINGS_MAX && self.signatures.insert(signature) {
                self.watch.found(record, hit);
            }
        }
        self.progress.findings = self.signatures.len() as u64;
        self.watch.branch(input, &self.dictionary);
        if self.until_found && !record.hits.is_empty() {
            let first = self.found_at.map_or(record.choice, |found| found.min(record.choice));
            self.found_at = Some(first);
        }
    }
}

/// Returns the number and path of each branch from the root moment to `place`, oldest first. The list is empty if
/// `place` is the root moment.
fn way(tree: &Tree, place: ForkPoint) -> Result<Vec<(u64, Path)>, PathError> {
    let mut way = Vec::new();
    let mut place = place;
    while let ForkPoint::After(number) = place {
        way.push((number, tree.path(place)?));
        place = tree.branch(number).map_or(ForkPoint::Root, |branch| branch.from);
    }
    way.reverse();
    Ok(way)
}

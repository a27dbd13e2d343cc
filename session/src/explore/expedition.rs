//! Exploration by worker threads of this process.
//!
//! [`everett_explorer::expedition`] chooses the branches, records them and merges their results. Host time and signals
//! decide only when the exploration ends.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use everett_explorer::coverage::Dictionary;
use everett_explorer::expedition::{self, Aim, ExpeditionError, Job, Watch, Workers};
use everett_explorer::run::{EndReason, Hit, Journal, MergeInput, Merged, Record};
use everett_explorer::search::Tree;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_snapshot::store::StoreStats;

use super::cpu_time::CpuTime;
use super::moment_store::MomentStore;
use super::resource_use::ResourceUse;
use super::setting::Setting;
use super::worker_pool::{Before, Done, WorkerPool};
use super::working::Working;
use crate::run::worker::joined;

/// Longest host time between two calls of [`Onlooker::at`].
const TICK: Duration = Duration::from_millis(200);
/// Number of queued branches for each worker. A worker takes its next branch from the queue and does not have to wait
/// for a choice of the search.
const WAITING: usize = 2;

/// Conditions that end an exploration, and bounds on its resources.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of branches after which the exploration ends.
    pub branches: u64,
    /// Host time after which the exploration ends, in nanoseconds.
    pub host_ns: Option<u64>,
    /// True if the exploration ends with the first branch that has a finding: the first one in the order in which the
    /// search chose the branches.
    pub until_found: bool,
    /// Number of branches that run in parallel.
    pub workers: usize,
    /// Budget for the memory of stored moments, in bytes.
    pub memory_bytes: u64,
}

/// Progress of an exploration.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExplorationProgress {
    /// Progress of the search.
    pub search: expedition::SearchProgress,
    /// CPU time of the workers, by activity.
    pub spent: CpuTime,
    /// Statistics of the stored moments. `None` before the first report.
    pub moments: Option<StoreStats>,
}

/// Observer of an exploration. The default methods do nothing.
pub trait Onlooker {
    /// Reports the first occurrence of a finding, with the record of its branch.
    fn found(&mut self, _: &Record, _: &Hit) {}
    /// Reports the result of a branch. Calls are in the order in which results arrive. `dictionary` maps the numbers
    /// of coverage points to the points.
    fn branch(&mut self, _: &MergeInput, _dictionary: &Dictionary) {}
    /// Shows the exploration's data. Called before each [`Onlooker::at`].
    fn look(&mut self, _: &Sight<'_>) {}
    /// Reports the progress, at least every 200 ms of host time.
    fn at(&mut self, _: &ExplorationProgress) {}
}

/// Observer that does nothing.
impl Onlooker for () {}

/// Data of a running exploration.
pub struct Sight<'s> {
    /// Search tree so far.
    pub tree: &'s Tree,
    /// Merged results so far. The results of the latest branches may be missing.
    pub merged: &'s Merged,
    pool: &'s WorkerPool<'s>,
}

impl Sight<'_> {
    /// Returns the current activity of each worker.
    #[must_use]
    pub fn workers(&self) -> Vec<Working> {
        self.pool.workers()
    }

    /// Returns one reason for each worker that could not start.
    #[must_use]
    pub fn absent(&self) -> Vec<String> {
        self.pool.absent()
    }
}

/// Result of an exploration.
#[derive(Debug)]
pub struct ExplorationOutcome {
    /// Search tree at the end.
    pub tree: Tree,
    /// Merged results of the branches.
    pub merged: Merged,
    /// Reason for the end.
    pub why: EndReason,
    /// Progress at the end.
    pub progress: ExplorationProgress,
    /// CPU time and memory over the course of the exploration.
    pub quarters: ResourceUse,
    /// One reason for each worker that could not start.
    pub absent: Vec<String>,
}

/// Explores a world. `journal` is the run directory, if there is one. The exploration then continues after the last
/// result in the directory.
///
/// # Errors
/// Returns an error if a branch cannot be run or the journal cannot be written.
pub fn explore(
    setting: &Setting,
    journal: Option<&mut Journal>,
    limits: &Limits,
    interrupt: &Interrupt,
    before: Before<'_>,
    onlooker: &mut dyn Onlooker,
) -> anyhow::Result<ExplorationOutcome> {
    let explore = &setting.launcher.world.explore;
    let in_flight = NonZero::new(explore.in_flight()).unwrap_or(NonZero::<u32>::MIN);
    let store = MomentStore::new(setting.ready.moment.clone(), limits.memory_bytes);
    let halt = Interrupt::default();
    let workers = limits.workers.max(1);
    let pool = WorkerPool::new(setting, &store, before, halt.clone(), workers)?;
    let (to_leader, results) = channel();
    thread::scope(|scope| {
        let workers = (0..workers).map(|worker| {
            let to_leader = to_leader.clone();
            let pool = &pool;
            scope.spawn(move || {
                pool.work(worker, &to_leader);
                Ok(())
            })
        });
        let workers: Vec<_> = workers.collect();
        drop(to_leader);
        let aim = Aim {
            seed: setting.seed,
            root_ns: setting.root_ns,
            in_flight,
            strategy: explore.strategy.strategy(),
            branches: limits.branches,
            until_found: limits.until_found,
            waiting: WAITING * limits.workers,
        };
        let mut watcher = Watcher {
            pool: &pool,
            store: &store,
            limits,
            interrupt,
            clock: Stopwatch::start(),
            onlooker,
            last: None,
            quarters: ResourceUse::default(),
        };
        let outcome = {
            let _stop = StopOnDrop(&pool);
            let mut workers = HostWorkers { pool: &pool, results, halt: &halt };
            expedition::explore(aim, journal, &mut workers, &mut watcher)
        };
        let (progress, quarters) = (watcher.last.unwrap_or_default(), watcher.quarters);
        // Joining turns a worker's panic into an error. If both a worker and the leader, i.e. the thread that chooses
        // branches, have failed, the worker's error is returned, because it caused the leader's.
        let ends: Vec<_> = workers.into_iter().map(joined).collect();
        ends.into_iter().collect::<anyhow::Result<()>>()?;
        let outcome = outcome.map_err(|error| match error {
            ExpeditionError::Worker(error) => error,
            other => other.into(),
        })?;
        let expedition::SearchOutcome { tree, merged, why, progress: search } = outcome;
        let progress = ExplorationProgress { search, ..progress };
        Ok(ExplorationOutcome { tree, merged, why, progress, quarters, absent: pool.absent() })
    })
}

/// Stops the workers when the leader ends or panics. Otherwise the thread scope would wait for them forever.
struct StopOnDrop<'c, 's>(&'c WorkerPool<'s>);

impl Drop for StopOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.stop_all();
    }
}

/// The workers of this process as the search sees them.
struct HostWorkers<'c, 's> {
    pool: &'c WorkerPool<'s>,
    results: Receiver<Done>,
    halt: &'c Interrupt,
}

impl Workers for HostWorkers<'_, '_> {
    type Error = anyhow::Error;

    fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    fn ask(&mut self, job: Job) {
        self.pool.ask(job);
    }

    fn result(&mut self, wait: bool) -> anyhow::Result<Option<(u64, Record)>> {
        if !wait {
            return self.results.try_recv().ok().map(|(number, done)| Ok((number, done?))).transpose();
        }
        match self.results.recv_timeout(TICK) {
            Ok((number, done)) => Ok(Some((number, done?))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("all workers have ended"),
        }
    }

    fn call_off(&mut self) {
        self.pool.call_off();
        self.halt.raise();
    }
}

/// Adds the workers' statistics to the search's progress. Ends the search when its time is over or the interrupt is
/// raised.
struct Watcher<'w, 's> {
    pool: &'w WorkerPool<'s>,
    store: &'w MomentStore,
    limits: &'w Limits,
    interrupt: &'w Interrupt,
    clock: Stopwatch,
    onlooker: &'w mut dyn Onlooker,
    /// Last progress that was reported.
    last: Option<ExplorationProgress>,
    quarters: ResourceUse,
}

impl Watch for Watcher<'_, '_> {
    fn found(&mut self, record: &Record, hit: &Hit) {
        self.onlooker.found(record, hit);
    }

    fn branch(&mut self, input: &MergeInput, dictionary: &Dictionary) {
        self.onlooker.branch(input, dictionary);
    }

    fn look(&mut self, tree: &Tree, merged: &Merged) {
        self.onlooker.look(&Sight { tree, merged, pool: self.pool });
    }

    fn at(&mut self, progress: &expedition::SearchProgress) -> Option<EndReason> {
        let here = ExplorationProgress {
            search: *progress,
            spent: self.pool.spent(),
            moments: Some(self.store.stats()),
        };
        self.onlooker.at(&here);
        self.quarters.at(progress.run, progress.cpu_ns);
        self.last = Some(here);
        let over = |ns: u64| self.clock.elapsed().as_nanos() >= u128::from(ns);
        if self.interrupt.wanted() {
            Some(EndReason::Stopped)
        } else {
            self.limits.host_ns.is_some_and(over).then_some(EndReason::Time)
        }
    }
}

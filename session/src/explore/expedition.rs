//! The search as it is done by workers of this host: who runs branches, and when it is over.
//!
//! What is chosen, written down and taken in is [`everett_explorer::expedition`]'s. Budgets of host time and signals only decide how
//! many branches that are.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use everett_explorer::expedition::{self, Aim, ExpeditionError, Job, Watch, Workers};
use everett_explorer::run::{Hit, Journal, Merged, Record, Why};
use everett_explorer::search::Tree;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_snapshot::store::StoreStats;

use super::moment_store::MomentStore;
use super::quarters::Quarters;
use super::setting::Setting;
use super::spent::Spent;
use super::worker_pool::{Before, Done, WorkerPool};
use crate::worker::joined;

/// How often whoever watches is told, at least.
const TICK: Duration = Duration::from_millis(200);
/// Branches that wait for each worker, so that none waits for a branch.
const WAITING: usize = 2;

/// When an exploration ends, and what it may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// After so many branches.
    pub branches: u64,
    /// After so many nanoseconds of host time.
    pub host_ns: Option<u64>,
    /// With the first branch, in the order of choice, on which something is found.
    pub until_found: bool,
    /// Branches that run at a time.
    pub workers: usize,
    /// What moments may take, in bytes.
    pub memory_bytes: u64,
}

/// How far an exploration is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// How far the search is.
    pub search: expedition::Progress,
    /// Where the CPU time of workers went.
    pub spent: Spent,
    /// Moments that are kept, once there are some.
    pub moments: Option<StoreStats>,
}

/// Who watches an exploration.
pub trait Onlooker {
    /// Something was found that was not before, on this branch.
    fn found(&mut self, record: &Record, hit: &Hit);
    /// It is here. Told again and again.
    fn at(&mut self, progress: &Progress);
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
    /// What it took as it went on.
    pub quarters: Quarters,
    /// Why there were fewer workers than there were to be, for each that was missing.
    pub absent: Vec<String>,
}

/// Explore, from where a journal has come to if there is one.
///
/// # Errors
/// A branch cannot be run, or what is written cannot be.
pub fn explore(
    setting: &Setting,
    journal: Option<&mut Journal>,
    limits: &Limits,
    interrupt: &Interrupt,
    before: Before<'_>,
    onlooker: &mut dyn Onlooker,
) -> anyhow::Result<Outcome> {
    let explore = &setting.launcher.world.explore;
    let in_flight = NonZero::new(explore.in_flight()).unwrap_or(NonZero::<u32>::MIN);
    let shelf = MomentStore::new(setting.ready.moment.clone(), limits.memory_bytes);
    let halt = Interrupt::default();
    let workers = limits.workers.max(1);
    let crew = WorkerPool::new(setting, &shelf, before, halt.clone(), workers)?;
    let (to_leader, results) = channel();
    thread::scope(|scope| {
        let workers = (0..workers).map(|_| {
            let to_leader = to_leader.clone();
            let crew = &crew;
            scope.spawn(move || {
                crew.work(&to_leader);
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
            crew: &crew,
            shelf: &shelf,
            limits,
            interrupt,
            clock: Stopwatch::start(),
            onlooker,
            last: None,
            quarters: Quarters::default(),
        };
        let outcome = {
            let _dismissal = Dismissal(&crew);
            let mut workers = Hands { crew: &crew, results, halt: &halt };
            expedition::explore(aim, journal, &mut workers, &mut watcher)
        };
        let (progress, quarters) = (watcher.last.unwrap_or_default(), watcher.quarters);
        // All of them, since a panic that nobody looked at is raised here. It comes before what it led to: it says why.
        let ends: Vec<_> = workers.into_iter().map(joined).collect();
        ends.into_iter().collect::<anyhow::Result<()>>()?;
        let outcome = outcome.map_err(|error| match error {
            ExpeditionError::Worker(error) => error,
            other => other.into(),
        })?;
        let expedition::Outcome { tree, merged, why, progress: search } = outcome;
        let progress = Progress { search, ..progress };
        Ok(Outcome { tree, merged, why, progress, quarters, absent: crew.absent() })
    })
}

/// However the leader ends, also by a panic: the scope waits for workers, so nobody works on.
struct Dismissal<'c, 's>(&'c WorkerPool<'s>);

impl Drop for Dismissal<'_, '_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}

/// The workers of this host, as the search sees them.
struct Hands<'c, 's> {
    crew: &'c WorkerPool<'s>,
    results: Receiver<Done>,
    halt: &'c Interrupt,
}

impl Workers for Hands<'_, '_> {
    type Error = anyhow::Error;

    fn waiting(&self) -> usize {
        self.crew.waiting()
    }

    fn ask(&mut self, job: Job) {
        self.crew.ask(job);
    }

    fn result(&mut self, wait: bool) -> anyhow::Result<Option<(u64, Record)>> {
        if !wait {
            return self.results.try_recv().ok().map(|(number, done)| Ok((number, done?))).transpose();
        }
        match self.results.recv_timeout(TICK) {
            Ok((number, done)) => Ok(Some((number, done?))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("all workers have gone"),
        }
    }

    fn call_off(&mut self) {
        self.crew.call_off();
        self.halt.raise();
    }
}

/// Adds to what the search knows what workers do, and ends it when its time is over.
struct Watcher<'w, 's> {
    crew: &'w WorkerPool<'s>,
    shelf: &'w MomentStore,
    limits: &'w Limits,
    interrupt: &'w Interrupt,
    clock: Stopwatch,
    onlooker: &'w mut dyn Onlooker,
    /// What was told last.
    last: Option<Progress>,
    quarters: Quarters,
}

impl Watch for Watcher<'_, '_> {
    fn found(&mut self, record: &Record, hit: &Hit) {
        self.onlooker.found(record, hit);
    }

    fn at(&mut self, progress: &expedition::Progress) -> Option<Why> {
        let here =
            Progress { search: *progress, spent: self.crew.spent(), moments: Some(self.shelf.stats()) };
        self.onlooker.at(&here);
        self.quarters.at(progress.run, progress.cpu_ns);
        self.last = Some(here);
        let over = |ns: u64| self.clock.elapsed().as_nanos() >= u128::from(ns);
        if self.interrupt.wanted() {
            Some(Why::Stopped)
        } else {
            self.limits.host_ns.is_some_and(over).then_some(Why::Time)
        }
    }
}

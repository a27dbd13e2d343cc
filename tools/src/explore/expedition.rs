//! The search itself: branches are chosen and handed out, their results written down and taken in.
//!
//! **Invariant.** What comes of it is a function of the setting and of how many branches were taken in. Budgets of host time and
//! signals only decide how many those are; what a killed exploration had written down is taken as if it had just been run.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use everett_explorer::coverage::{Kind, PointId};
use everett_explorer::run::{Hit, Journal, Merged, Record, Why};
use everett_explorer::search::{Choice, Next, Place, Search, Tree};
use everett_snapshot::store::StoreStats;

use super::crew::{Before, Crew, Done, Job};
use super::setting::Setting;
use super::shelf::Shelf;
use super::spent::Spent;
use crate::host_time::Stopwatch;
use crate::interrupt::Interrupt;
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
    /// Branches whose results are there.
    pub branches: u64,
    /// Of these, those that this process has run.
    pub run: u64,
    /// Nanoseconds of vtime of all of them.
    pub vtime_ns: u64,
    /// Instructions of those that this process has run.
    pub instructions: u64,
    /// CPU time of those, in nanoseconds.
    pub cpu_ns: u64,
    /// Where that went.
    pub spent: Spent,
    /// Different abstract states.
    pub states: u64,
    /// Different findings.
    pub findings: u64,
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
    let search = Search::new(
        setting.seed,
        setting.root_ns,
        in_flight,
        limits.branches,
        explore.strategy.strategy(),
        Merged::default(),
    );
    let shelf = Shelf::new(setting.ready.moment.clone(), limits.memory_bytes);
    let halt = Interrupt::default();
    let workers = limits.workers.max(1);
    let crew = Crew::new(setting, &shelf, before, halt.clone(), workers)?;
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
        let leader = Leader {
            crew: &crew,
            shelf: &shelf,
            limits,
            interrupt,
            halt: &halt,
            search,
            journal,
            onlooker,
            out: BTreeSet::new(),
            found_at: None,
            signatures: BTreeSet::new(),
            states: BTreeSet::new(),
            progress: Progress::default(),
        };
        let outcome = {
            let _dismissal = Dismissal(&crew);
            leader.lead(&results)
        };
        // All of them, since a panic that nobody looked at is raised here. It comes before what it led to: it says why.
        let ends: Vec<_> = workers.into_iter().map(joined).collect();
        ends.into_iter().collect::<anyhow::Result<()>>()?;
        outcome
    })
}

/// However the leader ends, also by a panic: the scope waits for workers, so nobody works on.
struct Dismissal<'c, 's>(&'c Crew<'s>);

impl Drop for Dismissal<'_, '_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}

type Strategy = Box<dyn everett_explorer::search::strategy::Strategy + Send>;

/// Who chooses, and takes in.
struct Leader<'l, 's> {
    crew: &'l Crew<'s>,
    shelf: &'l Shelf,
    limits: &'l Limits,
    interrupt: &'l Interrupt,
    halt: &'l Interrupt,
    search: Search<Strategy, Merged>,
    journal: Option<&'l mut Journal>,
    onlooker: &'l mut dyn Onlooker,
    /// Branches that were handed out, and are not back.
    out: BTreeSet<u64>,
    /// The first choice, so far, with a finding, if that ends it.
    found_at: Option<u64>,
    signatures: BTreeSet<(String, String)>,
    states: BTreeSet<PointId>,
    progress: Progress,
}

impl Leader<'_, '_> {
    fn lead(mut self, results: &Receiver<Done>) -> anyhow::Result<Outcome> {
        let clock = Stopwatch::start();
        let why = loop {
            if self.interrupt.wanted() {
                break Why::Stopped;
            }
            if self.limits.host_ns.is_some_and(|ns| clock.elapsed().as_nanos() >= u128::from(ns)) {
                break Why::Time;
            }
            let over = self.hand_out()?;
            if let Some(found) = self.found_at
                && self.out.first().is_none_or(|&first| first > found)
            {
                break Why::Found;
            }
            if over && self.out.is_empty() {
                break Why::Branches;
            }
            match results.recv_timeout(TICK) {
                Ok((number, done)) => self.back(number, done?)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("all workers have gone"),
            }
            self.progress.spent = self.crew.spent();
            self.progress.moments = Some(self.shelf.stats());
            self.onlooker.at(&self.progress);
        };
        self.crew.call_off();
        self.halt.raise();
        // Those that were done before they heard of it.
        while let Ok((number, done)) = results.try_recv() {
            if let Ok(record) = done {
                self.back(number, record)?;
            }
        }
        let most = self.found_at.filter(|_| why == Why::Found).map_or(u64::MAX, |found| found + 1);
        let (tree, merged) = self.search.finish(most);
        if let Some(stray) = merged.stray() {
            return Err(stray).context("the branches are not those that were chosen");
        }
        Ok(Outcome { tree, merged, why, progress: self.progress, absent: self.crew.absent() })
    }

    /// Choose as many branches as can be; whether all were chosen that ever will be.
    fn hand_out(&mut self) -> anyhow::Result<bool> {
        while self.crew.waiting() < WAITING * self.limits.workers {
            let chosen = self.search.tree().branches().len() as u64;
            if self.found_at.is_some_and(|found| chosen > found) {
                return Ok(true);
            }
            match self.search.choose() {
                Next::Over => return Ok(true),
                Next::Wait(_) => return Ok(false),
                Next::Run(choice) => self.hand(choice)?,
            }
        }
        Ok(false)
    }

    fn hand(&mut self, choice: Choice) -> anyhow::Result<()> {
        if let Some(journal) = &self.journal
            && let Some(record) = journal.recorded(&choice)?
        {
            self.note(&record);
            self.search.deliver(choice.number, record);
            return Ok(());
        }
        let way = way(self.search.tree(), choice.from)?;
        self.out.insert(choice.number);
        self.crew.ask(Job { choice, way });
        Ok(())
    }

    fn back(&mut self, number: u64, record: Record) -> anyhow::Result<()> {
        if !self.out.remove(&number) {
            return Ok(());
        }
        if let Some(journal) = &mut self.journal {
            journal.append(&record)?;
        }
        self.progress.run += 1;
        self.progress.instructions += record.executed;
        self.progress.cpu_ns += record.cpu_ns;
        self.note(&record);
        self.search.deliver(number, record);
        Ok(())
    }

    /// What there is to tell of a result, and whether it ends the exploration.
    fn note(&mut self, record: &Record) {
        self.progress.branches += 1;
        self.progress.vtime_ns += record.vtime_ns();
        let states = record.delta.points().filter(|(_, reached)| reached.point.kind() == Kind::State);
        self.states.extend(states.map(|(id, _)| id));
        self.progress.states = self.states.len() as u64;
        for hit in &record.hits {
            if self.signatures.insert((hit.property.clone(), hit.signature.clone())) {
                self.onlooker.found(record, hit);
            }
        }
        self.progress.findings = self.signatures.len() as u64;
        if self.limits.until_found && !record.hits.is_empty() {
            let first = self.found_at.map_or(record.choice, |found| found.min(record.choice));
            self.found_at = Some(first);
        }
    }
}

/// Branches from the root moment to a place, with their paths.
fn way(tree: &Tree, place: Place) -> anyhow::Result<Vec<(u64, everett_explorer::search::Path)>> {
    let mut way = Vec::new();
    let mut place = place;
    while let Place::After(number) = place {
        way.push((number, tree.path(place)?));
        place = tree.branch(number).context("a branch goes on from one that was never chosen")?.from;
    }
    way.reverse();
    Ok(way)
}

//! A finding with the fewest faults: without forks if it can be, then fewer faults, then shorter ones.
//!
//! **Invariant.** What comes of it does not depend on how many runs are made at a time: of the sets of a round the first that shows
//! the finding is taken. A budget of host time, Ctrl-C and a failure of the host or the engine only end it early, with the best plan
//! so far.

use std::thread;

use anyhow::{Context, bail};
use everett_explorer::fate::End;
use everett_explorer::plan::{Entry, Names, Plan, What};
use everett_explorer::run::Hit;
use everett_explorer::search::Path;
use everett_explorer::shrink::Shrink;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use serde::Serialize;

use super::path_runner::{Branch, Failed, Interrupted, PathRunner, Route, Watch};
use super::setting::Setting;
use super::witness::Found;
use crate::worker::joined;

/// How often the time of a fault is halved.
const HALVINGS_MAX: u32 = 4;

/// What is to be shown again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The property.
    pub property: String,
    /// Its signature: any of the property's if there is none.
    pub signature: Option<String>,
}

impl Wanted {
    /// What was found.
    #[must_use]
    pub fn of(hit: &Hit) -> Wanted {
        Wanted { property: hit.property.clone(), signature: Some(hit.signature.clone()) }
    }

    /// Where a branch shows it.
    #[must_use]
    pub fn in_branch<'b>(&self, branch: &'b Branch) -> Option<&'b Found> {
        let signature = self.signature.as_deref();
        branch.testimony.found.iter().find(|found| {
            found.hit.property == self.property
                && signature.is_none_or(|wanted| wanted == found.hit.signature)
        })
    }
}

/// What shrinking may use, and what ends it early.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'l> {
    /// Runs at a time.
    pub workers: usize,
    /// It ends after so many nanoseconds of host time.
    pub host_ns: Option<u64>,
    /// It ends when somebody wants it to.
    pub interrupt: &'l Interrupt,
}

/// What is being tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// All faults, without forks and with them.
    Again,
    /// Fewer faults.
    Fewer,
    /// Shorter faults.
    Shorter,
}

impl Step {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Step::Again => "running it again",
            Step::Fewer => "removing faults",
            Step::Shorter => "shortening faults",
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being tried.
    pub step: Step,
    /// Runs that were made.
    pub runs: u64,
    /// How often a better plan was found, the first one included.
    pub better: u64,
    /// Faults that there were.
    pub faults_before: usize,
    /// Faults that are left.
    pub faults: usize,
    /// Of the plans of this round, those that were tried.
    pub tried: usize,
    /// The plans of this round.
    pub round: usize,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No fault can be left out.
    Minimal,
    /// Its time was over.
    Budget,
    /// Somebody stopped it.
    Interrupted,
    /// The host or the engine failed: [`Shrunk::failed`].
    Failed,
}

/// What came of it.
#[derive(Debug)]
pub struct Shrunk {
    /// How it is run: a plan and an end of its own.
    pub route: Route,
    /// Faults that there were.
    pub faults_before: usize,
    /// What it shows.
    pub found: Found,
    /// Its trail's digest.
    pub trail: String,
    /// Runs that were made.
    pub runs: u64,
    /// Why it ended: if it was cut short, fewer or shorter faults may do.
    pub why: Why,
    /// The failure that ended it, if one did.
    pub failed: Option<Failed>,
}

/// It was cut short before the finding was shown once, so that no plan is known to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooEarly {
    /// By its budget.
    #[error("the budget was over before the finding was shown again: give it a longer --budget")]
    Budget,
    /// By somebody.
    #[error("interrupted before the finding was shown again, so there is no plan to keep")]
    Interrupted,
}

/// Shrink the finding of a path. Whatever ends it early, the best plan so far is what comes of it.
///
/// # Errors
/// It is not shown again; it cannot be run; it is ended before it was shown again ([`TooEarly`]), or the host or the engine fails before
/// that ([`Failed`]).
pub fn shrink(
    setting: &Setting,
    path: &Path,
    wanted: &Wanted,
    limits: &Limits<'_>,
    told: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Shrunk> {
    let fates = setting.fates();
    let end = fates.end(path).context("the root moment has no finding")?;
    let entries: Vec<Entry> = faults_before(&fates.plan(path), end.at_ns.saturating_sub(setting.root_ns));
    let faults_before = entries.len();
    let progress = Progress {
        step: Step::Again,
        runs: 0,
        better: 0,
        faults_before,
        faults: faults_before,
        tried: 0,
        round: 0,
    };
    let stop = &Ending { interrupt: limits.interrupt, clock: Stopwatch::start(), host_ns: limits.host_ns };
    let workers = limits.workers.max(1);
    let runs = &mut Travellers { setting, wanted, workers, stop, idle: Vec::new() };
    let mut shrinker = Shrinker { names: &setting.lens.names, runs, stop, told, progress };

    // Simpler is without forks: then it is a run of the world under a seed and a plan, and nothing else.
    let paths = [Path::default(), path.clone()];
    let end = End { open: false, ..end };
    let tries: Vec<Plot> =
        paths.into_iter().map(|path| Plot { path, entries: entries.clone(), end }).collect();
    let Some((best, why, failed)) = shrinker.best(tries)? else {
        bail!(
            "{}: {} is not found again: the run is not exact, or the world has changed",
            setting.name(path),
            wanted.property
        );
    };
    let Best { plot, shown: Shown { found, trail } } = best;
    let route = plot.route(&setting.lens.names)?;
    Ok(Shrunk { route, faults_before, found, trail, runs: shrinker.progress.runs, why, failed })
}

/// The faults of a plan that begin before a time.
fn faults_before(plan: &Plan, end_ns: u64) -> Vec<Entry> {
    let begins = |entry: &&Entry| entry.at_ns < end_ns && matches!(entry.what, What::Fault(_));
    plan.entries().iter().filter(begins).cloned().collect()
}

/// A way to run it that may show it.
#[derive(Debug, Clone)]
struct Plot {
    path: Path,
    entries: Vec<Entry>,
    end: End,
}

impl Plot {
    fn route(&self, names: &Names) -> anyhow::Result<Route> {
        let plan = Plan::new(self.entries.clone(), names)?;
        Ok(Route { path: self.path.clone(), plan: Some(plan), end: Some(self.end) })
    }

    fn with(&self, entries: Vec<Entry>) -> Plot {
        Plot { entries, path: self.path.clone(), end: self.end }
    }
}

/// The finding, shown.
struct Shown {
    found: Found,
    trail: String,
}

/// The best plan so far, and what it shows.
struct Best {
    plot: Plot,
    shown: Shown,
}

/// What ends it early.
struct Ending<'i> {
    interrupt: &'i Interrupt,
    clock: Stopwatch,
    host_ns: Option<u64>,
}

impl Ending<'_> {
    fn is_wanted(&self) -> bool {
        self.interrupt.wanted() || self.is_over()
    }

    fn is_over(&self) -> bool {
        self.host_ns.is_some_and(|ns| self.clock.elapsed().as_nanos() >= u128::from(ns))
    }

    fn why(&self) -> Why {
        if self.interrupt.wanted() { Why::Interrupted } else { Why::Budget }
    }
}

/// Runs of routes, each of which shows the finding or does not.
trait Runs {
    /// The most routes that are run at a time.
    fn at_a_time(&self) -> usize;

    /// Run these, which are no more than that. Each one's result, in their order.
    ///
    /// # Errors
    /// None of them can be run.
    fn run(&mut self, routes: &[Route]) -> anyhow::Result<Vec<anyhow::Result<Option<Shown>>>>;
}

/// Runs on machines of this host.
struct Travellers<'s, 't> {
    setting: &'s Setting,
    wanted: &'t Wanted,
    workers: usize,
    stop: &'t Ending<'t>,
    idle: Vec<PathRunner<'s>>,
}

impl Runs for Travellers<'_, '_> {
    fn at_a_time(&self) -> usize {
        self.workers
    }

    fn run(&mut self, routes: &[Route]) -> anyhow::Result<Vec<anyhow::Result<Option<Shown>>>> {
        while self.idle.len() < routes.len() {
            self.idle.push(PathRunner::new(self.setting)?);
        }
        let (wanted, stop) = (self.wanted, self.stop);
        let results = thread::scope(|scope| {
            let runs = routes.iter().zip(&mut self.idle).map(|(route, runner)| {
                scope.spawn(move || {
                    let branch = go(runner, route, stop)?;
                    let trail = super::marks::digest(&branch.marks);
                    let found = wanted.in_branch(&branch).cloned();
                    Ok(found.map(|found| Shown { found, trail }))
                })
            });
            let runs: Vec<_> = runs.collect();
            runs.into_iter().map(joined).collect()
        });
        // What has failed executes nothing any more.
        self.idle.retain(|runner| runner.failure().is_none());
        Ok(results)
    }
}

struct Shrinker<'t> {
    names: &'t Names,
    runs: &'t mut dyn Runs,
    stop: &'t Ending<'t>,
    told: &'t mut dyn FnMut(&Progress),
    progress: Progress,
}

impl Shrinker<'_> {
    /// The best that comes of the first of these that shows it, if one does, and why there is no better one.
    fn best(&mut self, tries: Vec<Plot>) -> anyhow::Result<Option<(Best, Why, Option<Failed>)>> {
        let first = match self.first(&tries) {
            Ok(Some((first, shown))) => tries.into_iter().nth(first).map(|plot| Best { plot, shown }),
            Ok(None) => None,
            Err(error) if error.is::<Interrupted>() => match self.stop.why() {
                Why::Budget => return Err(TooEarly::Budget.into()),
                _ => return Err(TooEarly::Interrupted.into()),
            },
            Err(error) => return Err(error),
        };
        let Some(mut best) = first else { return Ok(None) };
        self.is_better(&best);
        let (why, failed) = match self.fewer(&mut best).and_then(|()| self.shorter(&mut best)) {
            Ok(()) => (Why::Minimal, None),
            Err(error) if error.is::<Interrupted>() => (self.stop.why(), None),
            Err(error) => (Why::Failed, Some(error.downcast::<Failed>()?)),
        };
        Ok(Some((best, why, failed)))
    }

    /// Fewer faults, until none can be left out.
    fn fewer(&mut self, best: &mut Best) -> anyhow::Result<()> {
        self.progress.step = Step::Fewer;
        let all = best.plot.entries.clone();
        let mut search = Shrink::new(all.len());
        loop {
            let round = search.round();
            if round.is_empty() {
                return Ok(());
            }
            let subset = |set: &Vec<usize>| set.iter().filter_map(|&i| all.get(i).cloned()).collect();
            let plots: Vec<Plot> = round.iter().map(|set| best.plot.with(subset(set))).collect();
            let first = self.first(&plots)?;
            search.tell(first.as_ref().map(|(place, _)| *place));
            if let Some((place, shown)) = first
                && let Some(plot) = plots.into_iter().nth(place)
            {
                *best = Best { plot, shown };
                self.is_better(best);
            }
        }
    }

    /// Shorter faults, one after the other.
    fn shorter(&mut self, best: &mut Best) -> anyhow::Result<()> {
        self.progress.step = Step::Shorter;
        for fault in 0..best.plot.entries.len() {
            for _ in 0..HALVINGS_MAX {
                let mut entries = best.plot.entries.clone();
                let lasts = entries.get_mut(fault).and_then(|entry| entry.for_ns.as_mut());
                let Some(lasts) = lasts.filter(|ns| **ns > 1) else { break };
                *lasts /= 2;
                let plot = best.plot.with(entries);
                // A shorter one may be in the way of another no less.
                if plot.route(self.names).is_err() {
                    break;
                }
                let Some((_, shown)) = self.first(std::slice::from_ref(&plot))? else { break };
                *best = Best { plot, shown };
                self.is_better(best);
            }
        }
        Ok(())
    }

    fn is_better(&mut self, best: &Best) {
        self.progress.better += 1;
        self.progress.faults = best.plot.entries.len();
        (self.told)(&self.progress);
    }

    /// The first of these that shows it. If that is cut short: one that was seen to show it, if there is one.
    fn first(&mut self, plots: &[Plot]) -> anyhow::Result<Option<(usize, Shown)>> {
        (self.progress.tried, self.progress.round) = (0, plots.len());
        let at_a_time = self.runs.at_a_time();
        for (chunk, plots) in plots.chunks(at_a_time).enumerate() {
            (self.told)(&self.progress);
            if self.stop.is_wanted() {
                return Err(Interrupted.into());
            }
            let routes = plots.iter().map(|plot| plot.route(self.names));
            let results = self.runs.run(&routes.collect::<anyhow::Result<Vec<Route>>>()?)?;
            self.progress.runs += results.len() as u64;
            self.progress.tried += results.len();
            let mut cut = None;
            for (i, shown) in results.into_iter().enumerate() {
                match shown {
                    Ok(Some(shown)) => return Ok(Some((chunk * at_a_time + i, shown))),
                    Ok(None) => {}
                    Err(error) if error.is::<Interrupted>() => cut = Some(error),
                    Err(error) => return Err(error),
                }
            }
            if let Some(error) = cut {
                return Err(error);
            }
        }
        Ok(None)
    }
}

fn go(runner: &mut PathRunner<'_>, route: &Route, stop: &Ending<'_>) -> anyhow::Result<Branch> {
    struct Until<'i>(&'i Ending<'i>);
    impl Watch for Until<'_> {
        fn at(&mut self, _: u64) -> bool {
            !self.0.is_wanted()
        }
    }
    let branches = runner.journey(route, &mut Until(stop))?;
    branches.into_iter().next_back().ok_or_else(|| Interrupted.into())
}

#[cfg(test)]
mod tests {
    use std::path::Path as FilePath;

    use everett_explorer::property;
    use everett_explorer::run::Evidence;
    use everett_vmm::machine;

    use super::*;
    use crate::world_file;

    /// Runs whose results are a function of how many faults there are.
    struct Scripted {
        at_a_time: usize,
        result: fn(usize) -> anyhow::Result<Option<Shown>>,
    }

    impl Runs for Scripted {
        fn at_a_time(&self) -> usize {
            self.at_a_time
        }

        fn run(&mut self, routes: &[Route]) -> anyhow::Result<Vec<anyhow::Result<Option<Shown>>>> {
            let faults = |route: &Route| route.plan.as_ref().map_or(0, |plan| plan.entries().len());
            Ok(routes.iter().map(|route| (self.result)(faults(route))).collect())
        }
    }

    fn shown() -> anyhow::Result<Option<Shown>> {
        let hit = property::Hit {
            property: "p".to_owned(),
            signature: "s".to_owned(),
            text: String::new(),
            vtime_ns: 1,
            node: None,
        };
        Ok(Some(Shown { found: Found { hit, evidence: Evidence::default() }, trail: String::new() }))
    }

    fn failed() -> Failed {
        Failed { node: "a".to_owned(), end: machine::End::Host("no device".to_owned()) }
    }

    /// What comes of eight faults: how many are left, why it ended, and the failure.
    fn shrunk(
        at_a_time: usize,
        result: fn(usize) -> anyhow::Result<Option<Shown>>,
    ) -> anyhow::Result<Option<(usize, Why, Option<Failed>)>> {
        let names = world_file::parse("[[node]]\nname = \"a\"\n", FilePath::new("w.toml")).unwrap().names();
        let line = |i: u32| format!("{{\"at\": \"{i}s\", \"fault\": \"reseed\", \"node\": \"a\"}}\n");
        let plan = Plan::parse(&(0..8).map(line).collect::<String>(), &names).unwrap();
        let stop = Ending { interrupt: &Interrupt::default(), clock: Stopwatch::start(), host_ns: None };
        let progress = Progress {
            step: Step::Again,
            runs: 0,
            better: 0,
            faults_before: 8,
            faults: 8,
            tried: 0,
            round: 0,
        };
        let mut runs = Scripted { at_a_time, result };
        let mut shrinker =
            Shrinker { names: &names, runs: &mut runs, stop: &stop, told: &mut |_| {}, progress };
        let end = End { at_ns: 9_000_000_000, open: false, checked: false };
        let plot = Plot { path: Path::default(), entries: plan.entries().to_vec(), end };
        let best = shrinker.best(vec![plot])?;
        Ok(best.map(|(best, why, failed)| (best.plot.entries.len(), why, failed)))
    }

    /// A machine that is dead shows nothing: that is no reason to keep a fault.
    #[test]
    fn a_failure_ends_it_with_the_best_plan_so_far() {
        for at_a_time in [1, 2, 16] {
            let fails_at_two = shrunk(at_a_time, |faults| match faults {
                0 => Ok(None),
                1 | 2 => Err(failed().into()),
                _ => shown(),
            });
            assert_eq!(fails_at_two.unwrap(), Some((4, Why::Failed, Some(failed()))));
            let at_once = shrunk(at_a_time, |_| Err(failed().into())).unwrap_err();
            assert_eq!(at_once.downcast_ref(), Some(&failed()));
            let whole = shrunk(at_a_time, |faults| if faults > 2 { shown() } else { Ok(None) });
            assert_eq!(whole.unwrap(), Some((3, Why::Minimal, None)));
        }
    }
}

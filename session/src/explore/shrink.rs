//! Shrinking of a finding: removes the forks of its path if possible, then removes faults, then shortens faults.
//!
//! **Invariant.** The number of parallel runs does not change the result. Shrinking works in rounds, and each round
//! tries a list of plans. If several plans of a list show the finding, the round takes the one that is first in the
//! list, whichever run ends first. Only the budget of host time, Ctrl-C, or a failure of the host or the engine can end
//! shrinking early. The result is then the best plan so far.

use std::thread;

use anyhow::{Context, bail};
use everett_explorer::fate::BranchEnd;
use everett_explorer::plan::{Names, Plan, PlanEntry, What};
use everett_explorer::run::Hit;
use everett_explorer::search::Path;
use everett_explorer::shrink::Shrink;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::causes::with_causes;
use serde::Serialize;

use super::path_runner::{Branch, Interrupted, PathRunner, Route, Uninterrupted};
use super::setting::Setting;
use super::witness::HitWithEvidence;
use crate::run::worker::joined;

/// Maximum number of times that a fault's duration is halved.
const HALVINGS_MAX: u32 = 4;

/// Finding that a run must show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Property that is violated.
    pub property: String,
    /// Signature of the finding, i.e. the hash by which equal violations are recognised. `None` matches every
    /// signature.
    pub signature: Option<String>,
}

impl Wanted {
    /// Returns the wanted finding for a hit, i.e. a violation of a property.
    #[must_use]
    pub fn of(hit: &Hit) -> Wanted {
        Wanted { property: hit.property.clone(), signature: Some(hit.signature.clone()) }
    }

    /// Returns the first matching hit of a branch, with its evidence.
    #[must_use]
    pub fn in_branch<'b>(&self, branch: &'b Branch) -> Option<&'b HitWithEvidence> {
        let signature = self.signature.as_deref();
        branch.testimony.found.iter().find(|found| {
            found.hit.property == self.property
                && signature.is_none_or(|wanted| wanted == found.hit.signature)
        })
    }

    /// Returns the first matching hit of the branches along a route (a path with a fault plan and an end), with its
    /// evidence. The hit can be on any of the branches. Later branches inherit the state of the judge, which evaluates
    /// properties, and do not report the hit again.
    #[must_use]
    pub fn in_journey<'b>(&self, branches: &'b [Branch]) -> Option<&'b HitWithEvidence> {
        branches.iter().find_map(|branch| self.in_branch(branch))
    }
}

/// Bounds on the resources of shrinking, and conditions that end it early.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'l> {
    /// Number of parallel runs.
    pub workers: usize,
    /// Host time after which shrinking ends, in nanoseconds.
    pub host_ns: Option<u64>,
    /// Interrupt that ends shrinking.
    pub interrupt: &'l Interrupt,
}

/// Step of shrinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShrinkStep {
    /// Runs all faults again, first without forks, then with them.
    Again,
    /// Removes faults.
    Fewer,
    /// Shortens faults.
    Shorter,
}

impl ShrinkStep {
    /// Returns a description of the step for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            ShrinkStep::Again => "running it again",
            ShrinkStep::Fewer => "removing faults",
            ShrinkStep::Shorter => "shortening faults",
        }
    }
}

/// Progress of shrinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShrinkProgress {
    /// Current step.
    pub step: ShrinkStep,
    /// Number of runs so far.
    pub runs: u64,
    /// Number of better plans that were found, the first plan included.
    pub better: u64,
    /// Number of faults of the original plan.
    pub faults_before: usize,
    /// Number of faults of the best plan so far.
    pub faults: usize,
    /// Number of tried plans in the current round.
    pub tried: usize,
    /// Number of plans in the current round.
    pub round: usize,
}

/// Reason for the end of shrinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShrinkEnd {
    /// The finding needs each fault that is left.
    Minimal,
    /// The budget of host time was used up.
    Budget,
    /// The interrupt was raised.
    Interrupted,
    /// A run failed, in most cases because the host or the engine failed. [`Shrunk::failed`] has the error.
    Failed,
}

/// Result of shrinking.
#[derive(Debug)]
pub struct Shrunk {
    /// Route of the best plan. It always has a plan and an end.
    pub route: Route,
    /// Number of faults of the original plan.
    pub faults_before: usize,
    /// Finding that the best plan shows, with its evidence.
    pub found: HitWithEvidence,
    /// Digest of the trail under the best plan.
    pub trail: String,
    /// Number of runs.
    pub runs: u64,
    /// Reason for the end. Only [`ShrinkEnd::Minimal`] means that no fault can be removed.
    pub why: ShrinkEnd,
    /// Error that ended shrinking, for [`ShrinkEnd::Failed`].
    pub failed: Option<String>,
}

/// Shrinking ended before any run showed the finding, so no plan is known that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooEarly {
    /// The budget of host time was used up.
    #[error("the time budget ran out before a run showed the finding again; give a longer --budget")]
    Budget,
    /// The interrupt was raised.
    #[error("interrupted before a run showed the finding again, so there is no plan to keep")]
    Interrupted,
}

/// Shrinks the finding of a path. If shrinking is ended early, returns the best plan so far.
///
/// # Errors
/// Returns an error if no run shows the finding again, or if the plan cannot be run. Before the first run that shows
/// the finding, there is no best plan. An early end then returns [`TooEarly`], and a failure of the host or the engine
/// [`Failed`](super::path_runner::Failed).
pub fn shrink(
    setting: &Setting,
    path: &Path,
    wanted: &Wanted,
    limits: &Limits<'_>,
    report: &mut dyn FnMut(&ShrinkProgress),
) -> anyhow::Result<Shrunk> {
    let fates = setting.fates();
    let end = fates.end(path).context("the root moment has no finding")?;
    let entries: Vec<PlanEntry> = faults_before(&fates.plan(path), end.at_ns.saturating_sub(setting.root_ns));
    let faults_before = entries.len();
    let progress = ShrinkProgress {
        step: ShrinkStep::Again,
        runs: 0,
        better: 0,
        faults_before,
        faults: faults_before,
        tried: 0,
        round: 0,
    };
    let stop = &Ending { interrupt: limits.interrupt, clock: Stopwatch::start(), host_ns: limits.host_ns };
    let workers = limits.workers.max(1);
    let runs = &mut Runners { setting, wanted, workers, stop, idle: Vec::new() };
    let mut shrinker = Shrinker { names: &setting.abstractions.names, runs, stop, report, progress };

    // The route without forks comes first because it is simpler: it needs only a world, a seed and a plan.
    let paths = [Path::default(), path.clone()];
    let end = BranchEnd { open: false, ..end };
    let tries: Vec<Candidate> =
        paths.into_iter().map(|path| Candidate { path, entries: entries.clone(), end }).collect();
    let Some((best, why, failed)) = shrinker.best(tries)? else {
        bail!(
            "{}: {} does not show again: the run is not exact, or the world has changed",
            setting.name(path),
            wanted.property
        );
    };
    let Best { candidate, shown: Shown { found, trail } } = best;
    let route = candidate.route(&setting.abstractions.names)?;
    Ok(Shrunk { route, faults_before, found, trail, runs: shrinker.progress.runs, why, failed })
}

/// Returns the plan's faults that begin before `end_ns`.
fn faults_before(plan: &Plan, end_ns: u64) -> Vec<PlanEntry> {
    let begins = |entry: &&PlanEntry| entry.at_ns < end_ns && matches!(entry.what, What::Fault(_));
    plan.entries().iter().filter(begins).cloned().collect()
}

/// A path, faults and an end that may show the finding.
#[derive(Debug, Clone)]
struct Candidate {
    path: Path,
    entries: Vec<PlanEntry>,
    end: BranchEnd,
}

impl Candidate {
    fn route(&self, names: &Names) -> anyhow::Result<Route> {
        let plan = Plan::new(self.entries.clone(), names)?;
        Ok(Route { path: self.path.clone(), plan: Some(plan), end: Some(self.end) })
    }

    fn with(&self, entries: Vec<PlanEntry>) -> Candidate {
        Candidate { entries, path: self.path.clone(), end: self.end }
    }
}

/// Result of a run that showed the finding.
struct Shown {
    found: HitWithEvidence,
    trail: String,
}

impl Shown {
    /// Returns the hit if one of a route's branches shows the finding, with the trail digest of the last branch.
    fn of(wanted: &Wanted, branches: &[Branch]) -> Option<Shown> {
        let found = wanted.in_journey(branches)?.clone();
        let trail = super::marks::digest(&branches.last()?.marks);
        Some(Shown { found, trail })
    }
}

/// Best candidate so far, and the result of its run.
struct Best {
    candidate: Candidate,
    shown: Shown,
}

/// Conditions that end shrinking early.
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

    fn why(&self) -> ShrinkEnd {
        if self.interrupt.wanted() { ShrinkEnd::Interrupted } else { ShrinkEnd::Budget }
    }
}

/// Runs routes (paths with a fault plan and an end), and says which of them show the finding.
trait Runs {
    /// Returns the maximum number of routes for one call of [`Runs::run`].
    fn at_a_time(&self) -> usize;

    /// Runs routes and returns their results in the same order. Results after an error may be missing.
    fn run(&mut self, routes: &[Route]) -> Vec<anyhow::Result<Option<Shown>>>;
}

/// Runs routes on machines of this host.
struct Runners<'s, 't> {
    setting: &'s Setting,
    wanted: &'t Wanted,
    workers: usize,
    stop: &'t Ending<'t>,
    idle: Vec<PathRunner<'s>>,
}

impl Runs for Runners<'_, '_> {
    fn at_a_time(&self) -> usize {
        self.workers
    }

    fn run(&mut self, routes: &[Route]) -> Vec<anyhow::Result<Option<Shown>>> {
        let (setting, wanted, stop) = (self.setting, self.wanted, self.stop);
        let go = |runner: &mut PathRunner<'_>, route: &Route| {
            let branches = runner.journey(route, &mut Uninterrupted(&|| stop.is_wanted()))?;
            Ok(Shown::of(wanted, &branches))
        };
        // A failed machine cannot continue, so its runner is dropped.
        let lives = |runner: &PathRunner<'_>| runner.failure().is_none();
        in_turns(routes, &mut self.idle, &mut self.workers, || PathRunner::new(setting), go, lives)
    }
}

/// Runs routes on at most `workers` runners in parallel. `make` creates missing runners, which are added to `idle`.
///
/// Returns the results in the order of the routes. If `make` fails while there are other runners, the host cannot
/// provide more machines, and `workers` is reduced to the number of runners. If `make` fails while there is no runner,
/// the last result is its error, and the remaining routes have no results.
fn in_turns<R: Send>(
    routes: &[Route],
    idle: &mut Vec<R>,
    workers: &mut usize,
    make: impl Fn() -> anyhow::Result<R>,
    go: impl Fn(&mut R, &Route) -> anyhow::Result<Option<Shown>> + Sync,
    lives: impl Fn(&R) -> bool,
) -> Vec<anyhow::Result<Option<Shown>>> {
    let (mut results, go) = (Vec::with_capacity(routes.len()), &go);
    while let Some(left) = routes.get(results.len()..).filter(|left| !left.is_empty()) {
        while idle.len() < left.len().min(*workers) {
            match make() {
                Ok(runner) => idle.push(runner),
                Err(_) if !idle.is_empty() => *workers = idle.len(),
                Err(error) => {
                    results.push(Err(error));
                    return results;
                }
            }
        }
        results.extend(thread::scope(|scope| {
            let runs =
                left.iter().zip(&mut *idle).map(|(route, runner)| scope.spawn(move || go(runner, route)));
            let runs: Vec<_> = runs.collect();
            runs.into_iter().map(joined).collect::<Vec<_>>()
        }));
        idle.retain(&lives);
    }
    results
}

struct Shrinker<'t> {
    names: &'t Names,
    runs: &'t mut dyn Runs,
    stop: &'t Ending<'t>,
    report: &'t mut dyn FnMut(&ShrinkProgress),
    progress: ShrinkProgress,
}

impl Shrinker<'_> {
    /// Shrinks the first candidate that shows the finding. Returns the best candidate and the reason for the end, or
    /// `None` if no candidate shows it.
    fn best(&mut self, tries: Vec<Candidate>) -> anyhow::Result<Option<(Best, ShrinkEnd, Option<String>)>> {
        let first = match self.first(&tries) {
            Ok(Some((first, shown))) => {
                tries.into_iter().nth(first).map(|candidate| Best { candidate, shown })
            }
            Ok(None) => None,
            Err(error) if error.is::<Interrupted>() => match self.stop.why() {
                ShrinkEnd::Budget => return Err(TooEarly::Budget.into()),
                _ => return Err(TooEarly::Interrupted.into()),
            },
            Err(error) => return Err(error),
        };
        let Some(mut best) = first else { return Ok(None) };
        self.is_better(&best);
        let (why, failed) = match self.fewer(&mut best).and_then(|()| self.shorter(&mut best)) {
            Ok(()) => (ShrinkEnd::Minimal, None),
            Err(error) if error.is::<Interrupted>() => (self.stop.why(), None),
            // No error may discard the plan that shows the finding.
            Err(error) => (ShrinkEnd::Failed, Some(with_causes(error.as_ref()))),
        };
        Ok(Some((best, why, failed)))
    }

    /// Removes faults until the finding needs all faults that are left.
    fn fewer(&mut self, best: &mut Best) -> anyhow::Result<()> {
        self.progress.step = ShrinkStep::Fewer;
        let all = best.candidate.entries.clone();
        let mut search = Shrink::new(all.len());
        loop {
            let round = search.round();
            if round.is_empty() {
                return Ok(());
            }
            let subset = |set: &Vec<usize>| set.iter().filter_map(|&i| all.get(i).cloned()).collect();
            let candidates: Vec<Candidate> =
                round.iter().map(|set| best.candidate.with(subset(set))).collect();
            let first = self.first(&candidates)?;
            search.tell(first.as_ref().map(|(place, _)| *place));
            if let Some((place, shown)) = first
                && let Some(candidate) = candidates.into_iter().nth(place)
            {
                *best = Best { candidate, shown };
                self.is_better(best);
            }
        }
    }

    /// Halves the durations of faults, one fault after the other.
    fn shorter(&mut self, best: &mut Best) -> anyhow::Result<()> {
        self.progress.step = ShrinkStep::Shorter;
        for fault in 0..best.candidate.entries.len() {
            for _ in 0..HALVINGS_MAX {
                let mut entries = best.candidate.entries.clone();
                let lasts = entries.get_mut(fault).and_then(|entry| entry.for_ns.as_mut());
                let Some(lasts) = lasts.filter(|ns| **ns > 1) else { break };
                *lasts /= 2;
                let candidate = best.candidate.with(entries);
                // A shorter fault can conflict with another entry of the plan.
                if candidate.route(self.names).is_err() {
                    break;
                }
                let Some((_, shown)) = self.first(std::slice::from_ref(&candidate))? else { break };
                *best = Best { candidate, shown };
                self.is_better(best);
            }
        }
        Ok(())
    }

    fn is_better(&mut self, best: &Best) {
        self.progress.better += 1;
        self.progress.faults = best.candidate.entries.len();
        (self.report)(&self.progress);
    }

    /// Returns the first candidate whose run shows the finding, even if runs beside it were interrupted.
    fn first(&mut self, candidates: &[Candidate]) -> anyhow::Result<Option<(usize, Shown)>> {
        (self.progress.tried, self.progress.round) = (0, candidates.len());
        let at_a_time = self.runs.at_a_time();
        for (chunk, candidates) in candidates.chunks(at_a_time).enumerate() {
            (self.report)(&self.progress);
            if self.stop.is_wanted() {
                return Err(Interrupted.into());
            }
            let routes = candidates.iter().map(|candidate| candidate.route(self.names));
            let results = self.runs.run(&routes.collect::<anyhow::Result<Vec<Route>>>()?);
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path as FilePath;

    use everett_explorer::composer::Tally;
    use everett_explorer::coverage::Delta;
    use everett_explorer::property;
    use everett_explorer::run::Evidence;
    use everett_vmm::digest::Digest;
    use everett_vmm::machine;

    use super::*;
    use crate::explore::abstractions::Abstractions;
    use crate::explore::cpu_time::CpuTime;
    use crate::explore::marks;
    use crate::explore::path_runner::Failed;
    use crate::explore::witness::{Inherited, Testimony};
    use everett_world_file as world_file;

    /// Runs whose results depend only on the number of faults.
    struct Scripted {
        at_a_time: usize,
        result: fn(usize) -> anyhow::Result<Option<Shown>>,
    }

    impl Runs for Scripted {
        fn at_a_time(&self) -> usize {
            self.at_a_time
        }

        fn run(&mut self, routes: &[Route]) -> Vec<anyhow::Result<Option<Shown>>> {
            let faults = |route: &Route| route.plan.as_ref().map_or(0, |plan| plan.entries().len());
            routes.iter().map(|route| (self.result)(faults(route))).collect()
        }
    }

    fn found() -> HitWithEvidence {
        let hit = property::PropertyHit {
            property: "p".to_owned(),
            signature: "s".to_owned(),
            text: String::new(),
            vtime_ns: 1,
            node: None,
        };
        HitWithEvidence { hit, evidence: Evidence::default() }
    }

    fn shown() -> anyhow::Result<Option<Shown>> {
        Ok(Some(Shown { found: found(), trail: String::new() }))
    }

    /// Returns a branch with these hits. Its trail is a single digest, and each byte of the digest is `mark`.
    fn branch(found: Vec<HitWithEvidence>, mark: u8) -> Branch {
        let world = world_file::parse("[[node]]\nname = \"a\"\n", FilePath::new("w.toml")).unwrap();
        let testimony = Testimony {
            delta: Delta::default(),
            found,
            sometimes: Vec::new(),
            faults: 0,
            losses: 0,
            messages: 0,
            log_bytes: 0,
            log_cut: false,
        };
        Branch {
            end_ns: 1,
            last_ns: 1,
            open: false,
            checked: false,
            broken: None,
            instructions: 0,
            final_phase: None,
            marks: vec![(1, Digest([mark; 32]))],
            testimony,
            commands: Tally::default(),
            history: None,
            spent: CpuTime::default(),
            memory: Inherited::new(&Abstractions::new(&world).unwrap()),
            at_moment: None,
        }
    }

    /// Branches after a hit do not report the hit again.
    #[test]
    fn a_journey_shows_the_finding_on_any_of_its_branches() {
        let wanted = |signature: Option<&str>| Wanted {
            property: "p".to_owned(),
            signature: signature.map(str::to_owned),
        };
        let early = [branch(vec![found()], 1), branch(Vec::new(), 2)];
        for signature in [None, Some("s")] {
            let shown = Shown::of(&wanted(signature), &early).expect("the first branch has it");
            assert_eq!(shown.trail, marks::digest(&early[1].marks), "the trail is that of the whole journey");
        }
        assert!(Shown::of(&wanted(Some("t")), &early).is_none());
        assert!(Shown::of(&wanted(None), &early[1..]).is_none());
    }

    fn failed() -> Failed {
        Failed { node: "a".to_owned(), end: machine::End::Host("no device".to_owned()) }
    }

    /// Shrinks a plan of eight faults. Returns the number of faults left, the reason for the end, and the failure.
    fn shrunk(
        at_a_time: usize,
        result: fn(usize) -> anyhow::Result<Option<Shown>>,
    ) -> anyhow::Result<Option<(usize, ShrinkEnd, Option<String>)>> {
        let names = world_file::parse("[[node]]\nname = \"a\"\n", FilePath::new("w.toml")).unwrap().names();
        let line = |i: u32| format!("{{\"at\": \"{i}s\", \"fault\": \"reseed\", \"node\": \"a\"}}\n");
        let plan = Plan::parse(&(0..8).map(line).collect::<String>(), &names).unwrap();
        let stop = Ending { interrupt: &Interrupt::default(), clock: Stopwatch::start(), host_ns: None };
        let progress = ShrinkProgress {
            step: ShrinkStep::Again,
            runs: 0,
            better: 0,
            faults_before: 8,
            faults: 8,
            tried: 0,
            round: 0,
        };
        let mut runs = Scripted { at_a_time, result };
        let mut shrinker =
            Shrinker { names: &names, runs: &mut runs, stop: &stop, report: &mut |_| {}, progress };
        let end = BranchEnd { at_ns: 9_000_000_000, open: false, checked: false };
        let candidate = Candidate { path: Path::default(), entries: plan.entries().to_vec(), end };
        let best = shrinker.best(vec![candidate])?;
        Ok(best.map(|(best, why, failed)| (best.candidate.entries.len(), why, failed)))
    }

    /// A run on a failed machine does not show whether the finding needs a fault, so shrinking ends.
    #[test]
    fn a_failure_ends_it_with_the_best_plan_so_far() {
        for at_a_time in [1, 2, 16] {
            let fails_at_two = shrunk(at_a_time, |faults| match faults {
                0 => Ok(None),
                1 | 2 => Err(failed().into()),
                _ => shown(),
            });
            assert_eq!(fails_at_two.unwrap(), Some((4, ShrinkEnd::Failed, Some(failed().to_string()))));
            let at_once = shrunk(at_a_time, |_| Err(failed().into())).unwrap_err();
            assert_eq!(at_once.downcast_ref(), Some(&failed()));
            let whole = shrunk(at_a_time, |faults| if faults > 2 { shown() } else { Ok(None) });
            assert_eq!(whole.unwrap(), Some((3, ShrinkEnd::Minimal, None)));
        }
    }

    #[test]
    fn any_other_error_ends_it_with_the_best_plan_so_far() {
        let fails_at_two = shrunk(2, |faults| match faults {
            0 => Ok(None),
            1 | 2 => Err(anyhow::anyhow!("no room").context("no machine")),
            _ => shown(),
        });
        assert_eq!(
            fails_at_two.unwrap(),
            Some((4, ShrinkEnd::Failed, Some("no machine: no room".to_owned())))
        );
    }

    /// Runs five routes with [`in_turns`], on a scripted host that has machines for `most` runners. Returns the paths
    /// that were run, and the number of workers that is left.
    fn taken_in_turns(workers: usize, most: usize) -> (Vec<Result<String, String>>, usize) {
        let routes: Vec<Route> = (1..=5).map(|n| Route::along(format!("9.{n}").parse().unwrap())).collect();
        let (mut idle, mut workers, made) = (Vec::new(), workers, Cell::new(0));
        let make = || {
            made.set(made.get() + 1);
            if made.get() > most { Err(anyhow::anyhow!("no room")) } else { Ok(made.get()) }
        };
        let go =
            |_: &mut usize, route: &Route| Ok(Some(Shown { found: found(), trail: route.path.to_string() }));
        let results = in_turns(&routes, &mut idle, &mut workers, make, go, |_| true);
        let result = |result: anyhow::Result<Option<Shown>>| match result {
            Ok(shown) => Ok(shown.expect("its path").trail),
            Err(error) => Err(error.to_string()),
        };
        (results.into_iter().map(result).collect(), workers)
    }

    #[test]
    fn fewer_runs_at_a_time_are_enough() {
        let all: Vec<_> = (1..=5).map(|n| Ok(format!("9.{n}"))).collect();
        assert_eq!(taken_in_turns(4, 9), (all.clone(), 4));
        assert_eq!(taken_in_turns(4, 2), (all.clone(), 2));
        assert_eq!(taken_in_turns(4, 1), (all, 1));
        assert_eq!(taken_in_turns(4, 0), (vec![Err("no room".to_owned())], 4));
    }
}

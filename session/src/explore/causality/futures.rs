//! Futures: timelines that share the finding's past up to a vtime. All workers run them in parallel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use everett_explorer::causality::Vary;
use everett_explorer::fate::{BranchEnd, Fates};
use everett_explorer::plan::Plan;
use everett_explorer::search::{Fork, Path};

use super::super::branch_moment::BranchMoment;
use super::super::path_runner::{Interrupted, PathRunner, Uninterrupted};
use super::super::setting::Setting;
use super::super::shrink::Wanted;
use super::super::witness::Inherited;
use crate::run::worker::joined;

/// Child number of the first future. Explorations number the children of a moment (the branches that start there) from
/// 1. A future that starts at the same moment as the finding's branch, with the same number, would repeat this branch.
const CHILD_FIRST: u64 = 1 << 40;

/// A future to run.
pub(super) struct Future {
    fork: Fork,
    plan: Plan,
    from: Option<Arc<BranchMoment>>,
}

impl Future {
    /// Creates the future number `number`. It starts at `from`, the moment at `vtime_ns` on the timeline of `path`, or
    /// at the root moment if `from` is `None`.
    pub(super) fn new(
        fates: &Fates<'_>,
        path: &Path,
        vtime_ns: u64,
        number: u64,
        vary: Vary,
        from: Option<Arc<BranchMoment>>,
    ) -> anyhow::Result<Future> {
        let fork = Fork { vtime_ns, child: CHILD_FIRST + number };
        let plan = match vary {
            Vary::Streams => fates.plan(path),
            Vary::All => {
                let before = path.forks().iter().take_while(|fork| fork.vtime_ns < vtime_ns);
                let before = before.copied().try_fold(Path::default(), |path, fork| path.child(fork))?;
                fates.plan(&before.child(fork)?)
            }
        };
        Ok(Future { fork, plan, from })
    }
}

/// Runners with machines, which run futures.
pub(super) struct Runners<'s> {
    setting: &'s Setting,
    wanted: Wanted,
    workers: usize,
    idle: Vec<PathRunner<'s>>,
    root: Option<Inherited>,
}

/// Index of a future in its batch, and whether it showed the finding.
type Done = (usize, anyhow::Result<bool>);

impl<'s> Runners<'s> {
    pub(super) fn new(setting: &'s Setting, wanted: Wanted, workers: usize) -> Self {
        let workers = workers.max(1);
        Runners { setting, wanted, workers, idle: Vec::new(), root: None }
    }

    /// Returns an idle runner, or makes one.
    pub(super) fn take(&mut self) -> anyhow::Result<PathRunner<'s>> {
        self.idle.pop().map_or_else(|| PathRunner::new(self.setting), Ok)
    }

    /// Keeps a runner for later, unless its machines have failed.
    pub(super) fn give(&mut self, runner: PathRunner<'s>) {
        if runner.failure().is_none() {
            self.idle.push(runner);
        }
    }

    /// Runs futures. Returns, in their order, whether each future showed the finding. The list ends before the first
    /// future without a result, and the returned error says why this result is missing. Calls `done` after each future.
    pub(super) fn run(
        &mut self,
        futures: &[Future],
        end: BranchEnd,
        stop: &(dyn Fn() -> bool + Sync),
        done: &mut dyn FnMut(),
    ) -> (Vec<bool>, Option<anyhow::Error>) {
        match self.results(futures, end, stop, done) {
            Ok(results) => first_results(results),
            Err(error) => (Vec::new(), Some(error)),
        }
    }

    fn results(
        &mut self,
        futures: &[Future],
        end: BranchEnd,
        stop: &(dyn Fn() -> bool + Sync),
        done: &mut dyn FnMut(),
    ) -> anyhow::Result<Vec<Option<anyhow::Result<bool>>>> {
        if self.root.is_none() {
            self.root = Some(self.setting.inherited_at_boot()?);
        }
        while self.idle.len() < self.workers.min(futures.len()) {
            match PathRunner::new(self.setting) {
                Ok(runner) => self.idle.push(runner),
                // The host cannot provide machines for more workers, so the existing ones do the work.
                Err(_) if !self.idle.is_empty() => self.workers = self.idle.len(),
                Err(error) => return Err(error),
            }
        }
        let Some(root) = &self.root else { return Ok(Vec::new()) };
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let crew = Crew {
            futures,
            end: BranchEnd { open: false, ..end },
            wanted: &self.wanted,
            root,
            next,
            failed,
            stop,
        };
        let mut results: Vec<Option<anyhow::Result<bool>>> = futures.iter().map(|_| None).collect();
        let runners = std::mem::take(&mut self.idle);
        let ended: Vec<anyhow::Result<PathRunner<'s>>> = thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            let crew = &crew;
            let start = |runner: PathRunner<'s>| {
                let send = send.clone();
                scope.spawn(move || Ok(crew.work(runner, &send)))
            };
            let workers: Vec<_> = runners.into_iter().map(start).collect();
            drop(send);
            for (place, shown) in receive {
                if shown.is_ok() {
                    done();
                }
                if let Some(result) = results.get_mut(place) {
                    *result = Some(shown);
                }
            }
            workers.into_iter().map(joined).collect()
        });
        for runner in ended {
            self.give(runner?);
        }
        Ok(results)
    }
}

/// Returns the results before the first missing one, and the error that explains the missing result.
fn first_results(results: Vec<Option<anyhow::Result<bool>>>) -> (Vec<bool>, Option<anyhow::Error>) {
    let mut shown = Vec::with_capacity(results.len());
    let mut results = results.into_iter();
    for result in results.by_ref() {
        match result {
            Some(Ok(is_shown)) => shown.push(is_shown),
            Some(Err(error)) if !error.is::<Interrupted>() => return (shown, Some(error)),
            _ => {
                // The failure of another worker may have prevented this result.
                let failed =
                    results.flatten().filter_map(Result::err).find(|error| !error.is::<Interrupted>());
                return (shown, Some(failed.unwrap_or_else(|| Interrupted.into())));
            }
        }
    }
    (shown, None)
}

/// State that the workers of a batch share.
struct Crew<'c> {
    futures: &'c [Future],
    end: BranchEnd,
    wanted: &'c Wanted,
    root: &'c Inherited,
    next: AtomicUsize,
    failed: AtomicBool,
    stop: &'c (dyn Fn() -> bool + Sync),
}

impl Crew<'_> {
    /// Runs futures until none is left or one has failed.
    fn work<'s>(&self, mut runner: PathRunner<'s>, results: &Sender<Done>) -> PathRunner<'s> {
        let stop = || (self.stop)() || self.failed.load(Ordering::Relaxed);
        while !stop() {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(future) = self.futures.get(place) else { break };
            let memory = future.from.as_ref().map_or(self.root, |from| &from.memory);
            let Future { fork, plan, from } = future;
            let branch =
                runner.future(from.as_deref(), *fork, plan, self.end, memory, &mut Uninterrupted(&stop));
            let shown = branch.map(|branch| self.wanted.in_branch(&branch).is_some());
            if shown.is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            // Sending fails only if the receiver has ended and needs no more results.
            let _ = results.send((place, shown));
        }
        runner
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use everett_explorer::config::ExploreConfig;
    use everett_explorer::plan::draw::FaultConfig;
    use everett_explorer::plan::{Names, NodeNames};
    use everett_streams::Seed;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Futures share the finding's past. Their random streams differ from those of all branches of an exploration.
    #[test]
    fn futures_have_the_past_of_the_finding_and_a_plan_of_their_own_after_it() {
        let (explore, faults) = (ExploreConfig::default(), FaultConfig::default());
        let node = |name: &str| (name.to_owned(), NodeNames { disks: 1, ..NodeNames::default() });
        let names: Names = ["a", "b", "c"].map(node).into_iter().collect();
        let fates = Fates {
            explore: &explore,
            faults: &faults,
            names: &names,
            seed: Seed::new(7),
            root_ns: SECOND_NS,
        };
        let child = |path: Path, s: u64| path.child(Fork { vtime_ns: s * SECOND_NS, child: 1 }).unwrap();
        let path = child(child(Path::default(), 1), 5);
        let at_ns = 4 * SECOND_NS;
        let future = |number, vary| Future::new(&fates, &path, at_ns, number, vary, None).unwrap();
        // The finding's branch has child number 1, so futures need other child numbers.
        assert!((0..3).all(|number| future(number, Vary::All).fork.child > u64::from(u32::MAX)));
        assert_ne!(future(0, Vary::All).fork, future(1, Vary::All).fork);
        assert_eq!(future(0, Vary::Streams).plan, fates.plan(&path));
        let (first, second) = (future(0, Vary::All).plan, future(1, Vary::All).plan);
        assert!(first != fates.plan(&path) && first != second);
        // The fork at 5 s lies after the vtime at which the futures begin, so it is not in their past.
        let before = fates.plan(&child(Path::default(), 1));
        let past = |plan: &Plan| -> Vec<_> {
            let is_past = |at: u64| at + fates.root_ns < at_ns;
            plan.events().all().iter().filter(|event| is_past(event.at_ns)).cloned().collect()
        };
        assert_eq!(past(&first), past(&before));
        assert!(!past(&first).is_empty(), "{}", first.write());
    }

    #[test]
    fn results_count_up_to_the_first_missing_one() {
        let interrupted = || Some(Err(Interrupted.into()));
        let (shown, error) = first_results(vec![Some(Ok(true)), Some(Ok(false))]);
        assert!(error.is_none() && shown == [true, false]);
        let (shown, error) = first_results(vec![Some(Ok(true)), None, Some(Ok(true))]);
        assert!(error.unwrap().is::<Interrupted>() && shown == [true]);
        let (shown, error) = first_results(vec![interrupted(), Some(Ok(true)), Some(Err(anyhow!("host")))]);
        assert_eq!((error.unwrap().to_string().as_str(), shown.len()), ("host", 0));
    }
}

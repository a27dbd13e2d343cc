//! Replays recorded branches of an exploration, each once, on worker threads.
//!
//! - `tasks`: branches to replay
//! - this file: the workers, and what they call for each branch
//!
//! **Invariant.** Each replay ends with the recorded trail, or the replays end with an error.

mod tasks;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, bail};
use everett_explorer::run::Reading;
use everett_explorer::search::Path;

use super::marks;
use super::path_runner::{Aim, Branch, Interrupted, PathRunner, Watch};
use super::setting::Setting;
use super::witness::Inherited;
use tasks::{Parent, Task, Tasks};

/// Recorded branch that is replayed.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Number of the branch that it extends.
    pub(crate) from: Option<u64>,
    /// Its path.
    pub(crate) path: Path,
    /// Recorded digest of the branch's trail.
    pub(crate) trail: String,
    /// True if the branch violates a property. Failing branches are replayed first.
    pub(crate) is_failing: bool,
}

/// Observers of replays, and what they make of each branch.
pub(crate) trait Job: Sync {
    /// Results that a branch passes on to the branches that extend it.
    type Inherited: Clone + Default + Send;
    /// Observer of a branch.
    type Watch<'w>: Watch
    where
        Self: 'w;
    /// Result of a branch.
    type Result: Send;

    /// Returns the observer of a branch, whose segment ends at the vtime `segment_end_ns`.
    fn watch<'w>(&'w self, runner: &mut PathRunner<'_>, number: u64, segment_end_ns: u64) -> Self::Watch<'w>;

    /// Returns the result of a branch, and what the branches that extend it inherit. The branch has the recorded trail.
    fn finish(
        &self,
        number: u64,
        inherited: &Self::Inherited,
        branch: &Branch,
        watch: Self::Watch<'_>,
    ) -> (Self::Result, Self::Inherited);
}

/// Reads the first `most` recorded branches that the host could run to their end.
pub(crate) fn first_targets(reading: &Reading, most: u64) -> anyhow::Result<BTreeMap<u64, Target>> {
    let mut targets = BTreeMap::new();
    for number in 0..reading.len() {
        if targets.len() as u64 >= most {
            break;
        }
        if let Some(target) = target(reading, number)? {
            targets.insert(number, target);
        }
    }
    Ok(targets)
}

/// Reads recorded branches and all branches that they extend.
pub(crate) fn targets_of(reading: &Reading, numbers: &[u64]) -> anyhow::Result<BTreeMap<u64, Target>> {
    let mut targets = BTreeMap::new();
    for number in numbers {
        let mut next = Some(*number);
        while let Some(number) = next.filter(|number| !targets.contains_key(number)) {
            let target = target(reading, number)?;
            let target =
                target.with_context(|| format!("the host could not run branch {number} to its end"))?;
            // A branch has a higher number than the branch that it extends.
            next = target.from.filter(|from| *from < number);
            targets.insert(number, target);
        }
    }
    Ok(targets)
}

/// Reads a recorded branch. `None` if the host could not run it to its end.
fn target(reading: &Reading, number: u64) -> anyhow::Result<Option<Target>> {
    let record = reading.get(number)?.with_context(|| format!("there is no branch {number}"))?;
    let (from, path, trail, is_failing) = (record.from, record.path, record.trail, !record.hits.is_empty());
    Ok(record.broken.is_none().then_some(Target { from, path, trail, is_failing }))
}

/// Replays branches on `workers` threads and calls `receive` with each result. Ends early, without an error, when
/// `stop` returns true.
///
/// # Errors
/// Returns an error if a branch cannot be run, if its trail differs from the recorded one, or if `receive` returns one.
pub(crate) fn run<J: Job>(
    setting: &Setting,
    targets: &BTreeMap<u64, Target>,
    workers: usize,
    job: &J,
    stop: &(dyn Fn() -> bool + Sync),
    receive: &mut dyn FnMut(J::Result) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let tasks = Tasks::new(targets);
    let replays = Replays { setting, targets, tasks: &tasks, root: setting.inherited_at_boot()?, job, stop };
    let workers = workers.clamp(1, targets.len().max(1));
    thread::scope(|scope| {
        // A full channel makes workers wait, so few results are in memory.
        let (send, results) = mpsc::sync_channel(workers);
        for _ in 0..workers {
            let (send, replays) = (send.clone(), &replays);
            scope.spawn(move || replays.work(&send));
        }
        drop(send);
        let mut failed = None;
        for result in results {
            let received = match result {
                Ok(result) if failed.is_none() => receive(result),
                Ok(_) => Ok(()),
                Err(error) if error.is::<Interrupted>() => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = received {
                tasks.end();
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    })
}

/// State that all workers share.
struct Replays<'r, J: Job> {
    setting: &'r Setting,
    targets: &'r BTreeMap<u64, Target>,
    tasks: &'r Tasks<J::Inherited>,
    root: Inherited,
    job: &'r J,
    stop: &'r (dyn Fn() -> bool + Sync),
}

impl<J: Job> Replays<'_, J> {
    /// Replays branches until there are no more. An error ends all workers.
    fn work(&self, send: &mpsc::SyncSender<anyhow::Result<J::Result>>) {
        let mut runner = match PathRunner::new(self.setting) {
            Ok(runner) => runner,
            Err(error) => {
                self.tasks.end();
                // Sending fails only if the receiver has ended, and an ended receiver needs no result.
                let _ = send.send(Err(error));
                return;
            }
        };
        while let Some(task) = self.tasks.take() {
            let result = self.replay(&mut runner, &task);
            if result.is_err() {
                self.tasks.end();
            }
            self.tasks.finish();
            let _ = send.send(result);
        }
    }

    /// Replays a branch, and adds the branches that extend it to the tasks.
    fn replay(&self, runner: &mut PathRunner<'_>, task: &Task<J::Inherited>) -> anyhow::Result<J::Result> {
        let Task { number, parent } = task;
        if (self.stop)() {
            return Err(Interrupted.into());
        }
        let target = self.targets.get(number).context("the branch is not recorded")?;
        let name = || self.setting.name(&target.path);
        let end = self.setting.fates().end(&target.path).context("the root is not a branch")?;
        let mut watch = self.job.watch(runner, *number, end.at_ns);
        let memory = parent.moment.as_ref().map_or(&self.root, |moment| &moment.memory);
        let branch = runner.branch(parent.moment.as_deref(), &target.path, memory, Aim::Whole, &mut watch)?;
        let trail = marks::digest(&branch.marks);
        if trail != target.trail {
            bail!("{} ends with trail {trail}; the recorded trail is {}", name(), target.trail);
        }
        let (result, inherited) = self.job.finish(*number, &parent.inherited, &branch, watch);
        if self.tasks.is_extended(*number) {
            let moment = branch.at_moment.map(Arc::new);
            let moment =
                Some(moment.with_context(|| format!("{}: no branch can continue from here", name()))?);
            self.tasks.extend(Some(*number), &Parent { moment, inherited });
        }
        Ok(result)
    }
}

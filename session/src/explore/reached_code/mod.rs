//! Finds the functions and source lines that an exploration reached, by replaying its branches on machines that record
//! executed jumps (*edges*).
//!
//! - `places`: places of code that a branch reaches
//! - `tasks`: branches to replay
//! - `table`: counts of the branches that reached each place and each function
//! - `names`: names and source lines of reached code
//! - this file: the replays
//!
//! Not here: the format of the result (`everett_explorer::reached_code`), and how it looks (`everett-report`).
//!
//! **Invariants.**
//! - Each replay ends with the recorded trail, or the replays end with an error. Records of code change no timeline.
//! - If all branches are replayed, the result does not depend on the number of workers.

mod names;
mod places;
mod table;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, bail};
use everett_explorer::reached_code::{FINDINGS_MAX, ReachedCode, ReplaysEnd, SCHEMA_VERSION};
use everett_explorer::run::{Merged, Reading};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;

use super::marks;
use super::path_runner::{Aim, Interrupted, PathRunner};
use super::setting::Setting;
use super::witness::Inherited;
use crate::guest::symbols;
use crate::inside::debug_files::DebugFolders;
use crate::run::edges::programs::Programs;
use crate::run::edges::sources::Sources;
use names::Names;
use places::{Collector, Reached};
use table::Table;
use tasks::{Parent, Target, Task, Tasks};

/// Options of the replays.
#[derive(Debug, Clone)]
pub struct Options<'o> {
    /// Maximum number of branches. The first branches of the exploration are replayed.
    pub branches: u64,
    /// Maximum duration of the replays, in nanoseconds of host time. `None` means no limit.
    pub host_ns: Option<u64>,
    /// Number of branches that are replayed in parallel.
    pub workers: usize,
    /// Folders with separate debug files of programs.
    pub debug: DebugFolders,
    /// Interrupt that ends the replays.
    pub interrupt: &'o Interrupt,
}

/// Replayed branch.
struct Replayed {
    number: u64,
    reached: Arc<Reached>,
    findings: BTreeSet<u32>,
}

/// Replays branches of an exploration and returns the code that they reached. `progress` is called after each branch
/// with the number of branches so far and of all branches to replay.
///
/// # Errors
/// Returns an error if a branch cannot be run, if its trail differs from the recorded one, or if an image or the run
/// directory cannot be read.
pub fn reached_code(
    setting: &Setting,
    reading: &Reading,
    merged: &Merged,
    options: &Options<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> anyhow::Result<ReachedCode> {
    let clock = Stopwatch::start();
    let setting = setting.with_edges()?;
    let targets = targets(reading, merged, options.branches)?;
    let programs = Programs::of_launcher(&setting.launcher)?;
    let sources = Sources::of_launcher(&setting.launcher, options.debug.clone())?;
    let names = Names::new(&programs, &sources, symbols::of_file(&setting.launcher.files.kernel));
    let is_over = || options.host_ns.is_some_and(|ns| clock.elapsed().as_nanos() >= u128::from(ns));
    let stop = || options.interrupt.wanted() || is_over();
    let tasks = Tasks::new(&targets);
    let replays = Replays {
        setting: &setting,
        programs: &programs,
        targets: &targets,
        tasks: &tasks,
        root: setting.inherited_at_boot()?,
        stop: &stop,
    };
    let workers = options.workers.clamp(1, targets.len().max(1));
    let (mut table, mut nodes) = (Table::default(), BTreeSet::new());
    thread::scope(|scope| {
        // A full channel makes workers wait, so few results are in memory.
        let (send, receive) = mpsc::sync_channel(workers);
        for _ in 0..workers {
            let (send, replays) = (send.clone(), &replays);
            scope.spawn(move || replays.work(&send));
        }
        drop(send);
        let mut failed = None;
        for result in receive {
            match result {
                Ok(Replayed { number, reached, findings }) => {
                    table.add(number, &reached.places, &findings, &|place| names.function_of(place));
                    nodes.extend(&reached.nodes);
                    progress(table.branches.branches, targets.len() as u64);
                }
                Err(error) if error.is::<Interrupted>() => {}
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    })?;
    let why = match (table.branches.branches == targets.len() as u64, options.interrupt.wanted()) {
        (true, _) => ReplaysEnd::Done,
        (false, true) => ReplaysEnd::Interrupted,
        (false, false) => ReplaysEnd::Budget,
    };
    let node_names: Vec<&str> = setting.launcher.nodes().map(|node| node.name.as_str()).collect();
    let (programs, programs_count) = names.programs(&table, &nodes, &node_names);
    Ok(ReachedCode {
        schema_version: SCHEMA_VERSION,
        identity: reading.header().identity.clone(),
        seed: reading.header().seed,
        branches: table.branches.branches,
        branches_all: reading.len(),
        passing: table.branches.passing,
        why,
        programs,
        programs_count,
        findings: names.findings(&table, &merged.findings()[..merged.findings().len().min(FINDINGS_MAX)]),
    })
}

/// Reads the recorded branches that are replayed: the first `most` that the host could run to their end.
fn targets(reading: &Reading, merged: &Merged, most: u64) -> anyhow::Result<BTreeMap<u64, Target>> {
    let mut targets = BTreeMap::new();
    for number in 0..reading.len() {
        if targets.len() as u64 >= most {
            break;
        }
        let record = reading.get(number)?.with_context(|| format!("there is no branch {number}"))?;
        if record.broken.is_some() {
            continue;
        }
        let finding = |hit: &everett_explorer::run::Hit| {
            let id = merged.finding_of(&(hit.property.clone(), hit.signature.clone()))?;
            Some((id, hit.vtime_ns))
        };
        let hits = record.hits.iter().filter_map(finding).collect();
        let (from, path, trail) = (record.from, record.path, record.trail);
        targets.insert(number, Target { from, path, trail, hits });
    }
    Ok(targets)
}

/// State that all workers share.
struct Replays<'r> {
    setting: &'r Setting,
    programs: &'r Programs,
    targets: &'r BTreeMap<u64, Target>,
    tasks: &'r Tasks,
    root: Inherited,
    stop: &'r (dyn Fn() -> bool + Sync),
}

impl Replays<'_> {
    /// Replays branches until there are no more. An error ends all workers.
    fn work(&self, send: &mpsc::SyncSender<anyhow::Result<Replayed>>) {
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
    fn replay(&self, runner: &mut PathRunner<'_>, task: &Task) -> anyhow::Result<Replayed> {
        let Task { number, parent } = task;
        if (self.stop)() {
            return Err(Interrupted.into());
        }
        let target = self.targets.get(number).context("the branch is not recorded")?;
        let name = || self.setting.name(&target.path);
        let end = self.setting.fates().end(&target.path).context("the root is not a branch")?;
        // Machines report each edge once. A branch reports all of its edges, whatever the machines ran before.
        for node in 0..self.setting.launcher.nodes().count() {
            runner.timeline().machine_mut(node).forget_edges();
        }
        let mut collector = Collector::new(self.programs, end.at_ns, self.stop);
        let memory = parent.moment.as_ref().map_or(&self.root, |moment| &moment.memory);
        let branch =
            runner.branch(parent.moment.as_deref(), &target.path, memory, Aim::Whole, &mut collector)?;
        let trail = marks::digest(&branch.marks);
        if trail != target.trail {
            bail!("{} ends with trail {trail}; the recorded trail is {}", name(), target.trail);
        }
        let Collector { mut segment, checks, .. } = collector;
        segment.extend(&parent.reached);
        let segment = Arc::new(segment);
        let shown = |until_ns: u64| target.hits.iter().filter(move |(_, at_ns)| *at_ns <= until_ns);
        let mut findings = parent.findings.clone();
        findings.extend(shown(u64::MAX).map(|(id, _)| *id));
        if self.tasks.is_extended(*number) {
            let moment = branch.at_moment.map(Arc::new);
            let moment =
                Some(moment.with_context(|| format!("{}: no branch can continue from here", name()))?);
            let mut inherited = parent.findings.clone();
            inherited.extend(shown(branch.end_ns).map(|(id, _)| *id));
            let parent = Parent { moment, reached: Arc::clone(&segment), findings: inherited };
            self.tasks.extend(Some(*number), &parent);
        }
        let reached = match checks.places.is_empty() {
            true => segment,
            false => {
                let mut whole = checks;
                whole.extend(&segment);
                Arc::new(whole)
            }
        };
        Ok(Replayed { number: *number, reached, findings })
    }
}

//! Finds the functions and source lines that an exploration reached, by replaying its branches on machines that record
//! executed jumps (*edges*).
//!
//! - `places`: places of code that a branch reaches
//! - `table`: counts of the branches that reached each place and each function
//! - `names`: names and source lines of reached code
//! - this file: what the replays of branches collect
//!
//! Not here: the format of the result (`everett_explorer::reached_code`), and how it looks (`everett-report`).
//!
//! **Invariants.**
//! - Each replay ends with the recorded trail, or the replays end with an error. Records of code change no timeline.
//! - If all branches are replayed, the result does not depend on the number of workers.

mod names;
mod places;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use everett_explorer::reached_code::{FINDINGS_MAX, ReachedCode, ReplaysEnd, SCHEMA_VERSION};
use everett_explorer::run::{Merged, Reading};
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;

use super::path_runner::{Branch, PathRunner};
use super::replays::{self, Job, Target};
use super::setting::Setting;
use crate::guest::symbols;
use crate::inside::debug_files::DebugFolders;
use crate::run::edges::programs::Programs;
use crate::run::edges::sources::Sources;
use names::Names;
use places::{Collector, Reached};
use table::Table;

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
    let targets = replays::first_targets(reading, options.branches)?;
    let hits = hits(reading, merged, &targets)?;
    let programs = Programs::of_launcher(&setting.launcher)?;
    let sources = Sources::of_launcher(&setting.launcher, options.debug.clone())?;
    let names = Names::new(&programs, &sources, symbols::of_file(&setting.launcher.files.kernel));
    let is_over = || options.host_ns.is_some_and(|ns| clock.elapsed().as_nanos() >= u128::from(ns));
    let stop = || options.interrupt.wanted() || is_over();
    let job = Collecting { programs: &programs, hits, stop: &stop };
    let (mut table, mut nodes) = (Table::default(), BTreeSet::new());
    let count = targets.len() as u64;
    replays::run(&setting, &targets, options.workers, &job, &stop, &mut |replayed| {
        let Replayed { number, reached, findings } = replayed;
        table.add(number, &reached.places(), &findings, &|place| names.function_of(place));
        nodes.extend(&reached.nodes);
        progress(table.branches.branches, count);
        Ok(())
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

/// Findings that a branch shows, with their vtimes in nanoseconds.
type Hits = Vec<(u32, u64)>;

/// Reads the findings that the branches show.
fn hits(
    reading: &Reading,
    merged: &Merged,
    targets: &BTreeMap<u64, Target>,
) -> anyhow::Result<BTreeMap<u64, Hits>> {
    let mut all = BTreeMap::new();
    for number in targets.keys() {
        let Some(record) = reading.get(*number)? else { continue };
        let finding = |hit: &everett_explorer::run::Hit| {
            let id = merged.finding_of(&(hit.property.clone(), hit.signature.clone()))?;
            Some((id, hit.vtime_ns))
        };
        all.insert(*number, record.hits.iter().filter_map(finding).collect());
    }
    Ok(all)
}

/// Collection of the code that branches reach.
struct Collecting<'r> {
    programs: &'r Programs,
    hits: BTreeMap<u64, Hits>,
    stop: &'r (dyn Fn() -> bool + Sync),
}

/// Code that a branch's timeline reached up to its end, and the findings that it showed.
#[derive(Debug, Clone, Default)]
struct Inherited {
    reached: Arc<Reached>,
    findings: BTreeSet<u32>,
}

impl Job for Collecting<'_> {
    type Inherited = Inherited;
    type Watch<'w>
        = Collector<'w>
    where
        Self: 'w;
    type Result = Replayed;

    fn watch<'w>(&'w self, runner: &mut PathRunner<'_>, _: u64, segment_end_ns: u64) -> Collector<'w> {
        // Machines report each edge once. A branch reports all of its edges, whatever the machines ran before.
        for machine in runner.timeline().world_mut().nodes_mut().map(|node| node.machine_mut()) {
            machine.forget_edges();
        }
        Collector::new(self.programs, segment_end_ns, self.stop)
    }

    fn finish(
        &self,
        number: u64,
        parent: &Inherited,
        branch: &Branch,
        collector: Collector<'_>,
    ) -> (Replayed, Inherited) {
        let (mut segment, checks) = collector.finish();
        segment.extend(&parent.reached);
        let segment = Arc::new(segment);
        let hits = self.hits.get(&number).map(Vec::as_slice).unwrap_or_default();
        let shown = |until_ns: u64| hits.iter().filter(move |(_, at_ns)| *at_ns <= until_ns);
        let findings_until = |until_ns: u64| {
            let mut findings = parent.findings.clone();
            findings.extend(shown(until_ns).map(|(id, _)| *id));
            findings
        };
        let inherited = Inherited { reached: Arc::clone(&segment), findings: findings_until(branch.end_ns) };
        let reached = match checks.is_empty() {
            true => segment,
            false => {
                let mut whole = checks;
                whole.extend(&segment);
                Arc::new(whole)
            }
        };
        (Replayed { number, reached, findings: findings_until(u64::MAX) }, inherited)
    }
}

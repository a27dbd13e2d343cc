//! State of the live view, as plain data. Drawing depends only on this state and on scrolling.
//!
//! **Invariants.** All lists are bounded. Text from guests and files is converted on entry to one line without hidden
//! characters.

use std::collections::{BTreeMap, VecDeque};

use everett_explorer::run::{Hit, Record};
use everett_explorer::search::subtrees::Subtree;
use everett_input::text::one_line;
use everett_session::explore::expedition::ExplorationProgress;
use everett_session::explore::working::Activity;
use everett_streams::Seed;

use super::series::Series;

/// Maximum number of findings in the list. Further findings are only counted.
pub(super) const FINDINGS_MAX: usize = 1024;
/// Maximum number of log lines. Older lines are dropped.
const LOG_MAX: usize = 400;
/// Maximum length of a text from guests or files, in characters.
const TEXT_CHARS_MAX: usize = 2_000;
/// Maximum number of lines of a finding's evidence.
const EVIDENCE_MAX: usize = 8;
/// Maximum number of subtrees in the list. A subtree is a branch that begins at the root moment, with all branches that
/// extend it.
pub(super) const SUBTREES_MAX: usize = 200;

/// Facts that do not change during the exploration.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    /// Name of the world file, or of its folder.
    pub(super) world: String,
    pub(super) seed: Seed,
    pub(super) strategy: String,
    /// Run directory.
    pub(super) run: String,
    /// Budget of host time, in seconds. `None` without a budget.
    pub(super) budget_s: Option<f64>,
    /// Maximum number of branches. `None` without a limit.
    pub(super) branches: Option<u64>,
    /// Memory for moments, in bytes.
    pub(super) memory_bytes: u64,
    /// Vtime of the root moment, from which all branches fork, in nanoseconds.
    pub(super) root_ns: u64,
    /// Number of branches on a timeline that reaches the horizon, i.e. the end of the explored vtime.
    pub(super) depth_max: u64,
    /// True if results may depend on the host.
    pub(super) inexact: bool,
}

/// Finding in the list.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) property: String,
    pub(super) text: String,
    pub(super) node: Option<String>,
    /// Number of the first branch whose result showed the finding.
    pub(super) branch: u64,
    pub(super) vtime_ns: u64,
    /// Host time from the start to the first occurrence, in seconds.
    pub(super) seconds: f64,
    /// Number of branches that showed the finding.
    pub(super) count: u64,
    /// Last lines of the finding's evidence.
    pub(super) evidence: Vec<String>,
}

/// Kind of a log line, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Note,
    Bad,
}

/// Line of the log.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Host time from the start, in seconds.
    pub(super) seconds: f64,
    pub(super) tone: Tone,
    pub(super) text: String,
}

/// State of a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worker {
    pub(super) activity: Activity,
    pub(super) branch: Option<u64>,
    pub(super) vtime_ns: u64,
    /// Host time that the worker has spent on its activity, in seconds.
    pub(super) seconds: f64,
}

/// Subtree in the list.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Number of the first branch of the subtree.
    pub(super) first: u64,
    pub(super) figures: Subtree,
    /// Share of the subtree's weight in the sum of all weights. When the strategy chooses a branch to extend, the
    /// branch lies in this subtree with this probability. `None` if the strategy does not use weights.
    pub(super) share: Option<f64>,
    /// Number of findings in the subtree.
    pub(super) findings: u64,
}

/// Use of the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Disk {
    /// Size of the run directory, in bytes.
    pub(super) run_bytes: u64,
    /// Free space on the file system of the run directory, in bytes.
    pub(super) free_bytes: u64,
}

/// State of the view.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) about: About,
    /// Host time from the start, in seconds.
    pub(super) seconds: f64,
    pub(super) progress: ExplorationProgress,
    /// Number of branches that this process ran, over time.
    pub(super) run: Series,
    /// Number of abstract states (classes of similar states that guide the search), over time.
    pub(super) states: Series,
    /// Number of applied faults.
    pub(super) faults: u64,
    /// Number of branches on which a fault of each kind began. The key is the name of the kind.
    pub(super) fault_kinds: BTreeMap<String, u64>,
    /// Number of branches after which the checks ran.
    pub(super) checked: u64,
    /// Number of branches that broke off before their end.
    pub(super) broken: u64,
    /// Number of branches by depth. The first entry is depth 1.
    pub(super) by_depth: Vec<u64>,
    pub(super) findings: Vec<Finding>,
    /// Index of each finding in `findings`. The key is its property and its signature, i.e. a text that is equal for
    /// failures of the same kind.
    known: BTreeMap<(String, String), usize>,
    /// Subtrees with the most new points of coverage.
    pub(super) subtrees: Vec<Row>,
    pub(super) subtrees_all: u64,
    pub(super) workers: Vec<Worker>,
    /// Number of branches whose results the explorer has added to the totals of the exploration. Later results do not
    /// count yet in the lists of subtrees and properties.
    pub(super) merged: u64,
    /// Properties that were never checked, with the reason.
    pub(super) unchecked: Vec<(String, String)>,
    /// Estimated probability that the next state is new, in parts per million.
    pub(super) unseen_ppm: Option<u32>,
    /// Estimated lower bound on the number of unreached states (Chao).
    pub(super) more_states: u64,
    pub(super) disk: Disk,
    pub(super) log: VecDeque<Line>,
    /// Number of log lines that were dropped.
    pub(super) log_dropped: u64,
    /// True after the operator asked for the end.
    pub(super) ending: bool,
}

impl Model {
    pub(super) fn new(about: About) -> Model {
        Model { about, ..Model::default() }
    }

    /// Adds a line to the log.
    pub(super) fn log(&mut self, tone: Tone, text: &str) {
        if self.log.len() >= LOG_MAX {
            self.log.pop_front();
            self.log_dropped += 1;
        }
        self.log.push_back(Line { seconds: self.seconds, tone, text: safe(text) });
    }

    /// Adds a finding at its first occurrence.
    pub(super) fn found(&mut self, branch: u64, hit: &Hit) {
        let at = hit.node.as_ref().map_or(String::new(), |node| format!(" on {node}"));
        self.log(Tone::Bad, &format!("found on b{branch}{at}: {}: {}", hit.property, hit.text));
        if self.findings.len() >= FINDINGS_MAX {
            return;
        }
        self.known.insert((hit.property.clone(), hit.signature.clone()), self.findings.len());
        let lines = &hit.evidence.lines;
        let evidence = lines.get(lines.len().saturating_sub(EVIDENCE_MAX)..).unwrap_or_default();
        self.findings.push(Finding {
            property: safe(&hit.property),
            text: safe(&hit.text),
            node: hit.node.as_deref().map(safe),
            branch,
            vtime_ns: hit.vtime_ns,
            seconds: self.seconds,
            count: 0,
            evidence: evidence.iter().map(|line| safe(line)).collect(),
        });
    }

    /// Counts a branch that has ended, given its record (result). The caller has already added its new findings.
    pub(super) fn branch<'k>(&mut self, record: &Record, kinds: impl Iterator<Item = &'k str>) {
        self.faults = self.faults.saturating_add(record.faults);
        for kind in kinds {
            match self.fault_kinds.get_mut(kind) {
                Some(branches) => *branches += 1,
                None => drop(self.fault_kinds.insert(safe(kind), 1)),
            }
        }
        self.checked += u64::from(record.checked);
        let depth = record.path.forks().len().clamp(1, everett_explorer::search::subtrees::DEPTH_MAX);
        if self.by_depth.len() < depth {
            self.by_depth.resize(depth, 0);
            if depth > 1 {
                self.log(Tone::Plain, &format!("b{} is the first branch at depth {depth}", record.choice));
            }
        }
        if let Some(branches) = self.by_depth.get_mut(depth - 1) {
            *branches += 1;
        }
        for hit in &record.hits {
            let place = self.known.get(&(hit.property.clone(), hit.signature.clone()));
            if let Some(finding) = place.and_then(|place| self.findings.get_mut(*place)) {
                finding.count += 1;
            }
        }
        if let Some(why) = &record.broken {
            self.broken += 1;
            self.log(Tone::Note, &format!("b{} broke off: {why}", record.choice));
        }
    }

    /// Stores the progress of the exploration after `seconds` of host time.
    pub(super) fn at(&mut self, seconds: f64, progress: &ExplorationProgress) {
        self.seconds = seconds;
        self.progress = *progress;
        self.run.add(seconds, progress.search.run);
        self.states.add(seconds, progress.search.states);
    }

    /// Replaces the list of properties that were never checked. Logs the properties that leave the list.
    pub(super) fn uncheck(&mut self, unchecked: Vec<(String, String)>) {
        let unchecked: Vec<(String, String)> =
            unchecked.into_iter().map(|(name, why)| (safe(&name), safe(&why))).collect();
        let reached: Vec<String> = self
            .unchecked
            .iter()
            .filter(|(name, _)| unchecked.iter().all(|(other, _)| other != name))
            .map(|(name, _)| format!("{name} was checked for the first time"))
            .collect();
        self.unchecked = unchecked;
        reached.iter().for_each(|text| self.log(Tone::Good, text));
    }

    /// Returns the estimated remaining host time, in seconds. `None` if the end cannot be estimated.
    pub(super) fn left_s(&self) -> Option<f64> {
        let search = &self.progress.search;
        match (self.about.budget_s, self.about.branches) {
            (Some(budget_s), _) => Some((budget_s - self.seconds).max(0.0)),
            (None, Some(branches)) if search.run > 0 => {
                let rate = search.run as f64 / self.seconds.max(1e-9);
                Some(branches.saturating_sub(search.branches) as f64 / rate)
            }
            _ => None,
        }
    }

    /// Returns the completed share of the exploration, from 0 to 1. `None` if the exploration has no limit.
    pub(super) fn share(&self) -> Option<f64> {
        let of_branches = |branches: u64| self.progress.search.branches as f64 / (branches as f64).max(1.0);
        let shares =
            [self.about.budget_s.map(|s| self.seconds / s.max(1e-9)), self.about.branches.map(of_branches)];
        shares.into_iter().flatten().reduce(f64::max).map(|share| share.clamp(0.0, 1.0))
    }
}

/// Returns text from guests or files on one line, without hidden characters, cut to [`TEXT_CHARS_MAX`].
pub(super) fn safe(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

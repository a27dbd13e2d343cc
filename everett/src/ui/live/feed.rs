//! Updates the model (the data that the live view shows) from the exploration.
//!
//! Each branch is counted when its result arrives. Other numbers are read a few times a second. Readings whose cost
//! grows with the exploration are rarer, so that they take at most [`SLOW_SHARE`] of a core.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use everett_explorer::coverage::{Dictionary, Kind};
use everett_explorer::run::{FaultKinds, Header, Hit, MergeInput, Record};
use everett_explorer::search::strategy::StrategyKind;
use everett_explorer::search::subtrees::Subtrees;
use everett_host::time::Stopwatch;
use everett_report::data::unreached;
use everett_report::exploration::{KindCoverage, KindFigures};
use everett_session::explore::expedition::{ExplorationProgress, Sight};

use super::disk;
use super::model::{About, Disk, Model, Row, SUBTREES_MAX, Tone, Worker};
use crate::ui::exploration_facts::ExplorationFacts;

/// Interval between two readings, in seconds.
const LOOK_S: f64 = 0.25;
/// Minimum interval between two slow readings, in seconds.
const SLOW_S: f64 = 2.0;
/// Maximum share of a core for slow readings.
const SLOW_SHARE: f64 = 0.004;

/// Source of the data in the model.
pub(super) struct Feed {
    clock: Stopwatch,
    header: Header,
    run: PathBuf,
    sometimes: Vec<String>,
    subtrees: Subtrees,
    kinds: FaultKinds,
    /// Times of the next reading and of the next slow reading, in seconds.
    next_s: f64,
    slow_s: f64,
    /// Number of stopped workers that the log already reports.
    absent: usize,
}

impl About {
    pub(super) fn of(subject: &ExplorationFacts<'_>) -> About {
        let ExplorationFacts { header, run, limits, .. } = subject;
        About {
            world: everett_report::data::world_name(&header.world_file),
            seed: header.seed,
            strategy: header.strategy.0.clone(),
            run: everett_input::text::one_line(&run.display().to_string()),
            budget_s: limits.host_ns.map(|ns| ns as f64 / 1e9),
            branches: Some(limits.branches).filter(|branches| *branches < u64::MAX),
            memory_bytes: limits.memory_bytes,
            root_ns: header.root_ns,
            depth_max: header.horizon_ns.div_ceil(header.segment_ns.max(1)),
            inexact: !header.exact,
        }
    }
}

impl Feed {
    pub(super) fn new(subject: &ExplorationFacts<'_>, clock: Stopwatch) -> Feed {
        Feed {
            clock,
            header: subject.header.clone(),
            run: subject.run.to_owned(),
            sometimes: subject.sometimes.to_vec(),
            subtrees: Subtrees::default(),
            kinds: FaultKinds::default(),
            next_s: 0.0,
            slow_s: 0.0,
            absent: 0,
        }
    }

    pub(super) fn found(&mut self, model: &mut Model, record: &Record, hit: &Hit) {
        model.seconds = self.clock.seconds();
        model.found(record.choice, hit);
    }

    pub(super) fn branch(&mut self, model: &mut Model, input: &MergeInput, dictionary: &Dictionary) {
        let bits = self.kinds.of(dictionary, input);
        let names = self.kinds.names().iter().enumerate();
        let began = names.filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| name.as_str());
        model.branch(input.record(), began);
    }

    pub(super) fn at(&mut self, model: &mut Model, progress: &ExplorationProgress) {
        model.at(self.clock.seconds(), progress);
    }

    /// True if the next reading is due.
    pub(super) fn is_due(&self) -> bool {
        self.clock.seconds() >= self.next_s
    }

    pub(super) fn look(&mut self, shared: &Mutex<Model>, sight: &Sight<'_>) {
        let begin_s = self.clock.seconds();
        self.next_s = begin_s + LOOK_S;
        self.subtrees.update(sight.tree);
        let workers = sight.workers().into_iter().map(|working| Worker {
            activity: working.activity,
            branch: working.branch,
            vtime_ns: working.vtime_ns,
            seconds: working.since.seconds(),
        });
        let workers: Vec<Worker> = workers.collect();
        let slow = (begin_s >= self.slow_s).then(|| self.slow(sight));
        let absent = sight.absent();
        let mut model = shared.lock().unwrap_or_else(PoisonError::into_inner);
        model.workers = workers;
        for why in absent.iter().skip(self.absent) {
            model.log(Tone::Note, &format!("a worker stopped: {why}"));
        }
        self.absent = absent.len();
        model.merged = sight.merged.branches();
        if let Some(Slow { rows, states, unchecked, disk }) = slow {
            model.subtrees = rows;
            model.subtrees_all = self.subtrees.all().len() as u64;
            model.unseen_ppm = states.unseen_ppm;
            model.more_states = states.more;
            model.uncheck(unchecked);
            model.disk = disk;
            drop(model);
            let end_s = self.clock.seconds();
            self.slow_s = end_s + SLOW_S.max((end_s - begin_s) / SLOW_SHARE);
        }
    }

    /// Computes the figures whose cost grows with the exploration.
    fn slow(&self, sight: &Sight<'_>) -> Slow {
        let total = sight.tree.weight();
        let weighted = self.header.strategy.0 == StrategyKind::Novelty.name();
        let mut ranked: Vec<(u64, u64)> =
            self.subtrees.all().iter().map(|(first, figures)| (figures.new_points, *first)).collect();
        let order = |a: &(u64, u64), b: &(u64, u64)| b.0.cmp(&a.0).then(a.1.cmp(&b.1));
        if ranked.len() > SUBTREES_MAX {
            ranked.select_nth_unstable_by(SUBTREES_MAX, order);
            ranked.truncate(SUBTREES_MAX);
        }
        ranked.sort_unstable_by(order);
        let rows = ranked.into_iter().filter_map(|(_, first)| {
            let figures = self.subtrees.all().get(&first)?.clone();
            let share = weighted.then(|| figures.weight as f64 / (total as f64).max(1.0));
            let found = sight.merged.findings().iter();
            let findings = found.filter(|finding| finding.tally.subtrees.contains_key(&first)).count() as u64;
            Some(Row { first, figures, share, findings })
        });
        Slow {
            rows: rows.collect(),
            states: KindCoverage::of(sight.merged.coverage(), Kind::State).figures,
            // Before the first branch is merged, the list would name every property, so it stays empty until then.
            unchecked: match sight.merged.branches() {
                0 => Vec::new(),
                _ => unreached(&self.header, sight.merged, &self.sometimes),
            },
            disk: disk::measure(&self.run),
        }
    }
}

/// Figures of a slow reading.
struct Slow {
    rows: Vec<Row>,
    states: KindFigures,
    unchecked: Vec<(String, String)>,
    disk: Disk,
}

//! Scripted world for measurements of the search. No branch is executed. The result of a branch is computed from its
//! path, and resembles results of a cluster of three nodes.
//!
//! The search, the journal and the run directory are the real ones. A branch reaches about 750 points of coverage
//! (states, and orders of events). Other branches also reach most of them. One branch in eleven has the finding of this
//! world.

use std::collections::VecDeque;
use std::num::NonZero;
use std::path::Path;

use everett_explorer::coverage::{Delta, Point, PointId, Reached};
use everett_explorer::expedition::{Aim, ExpeditionError, Job, SearchOutcome, Workers, explore};
use everett_explorer::run::{Evidence, Header, HistoryCount, Hit, Journal, Record, RunError, StrategyName};
use everett_explorer::search::strategy::StrategyKind;
use everett_host::time::CpuClock;
use everett_input::units::write_duration_ns;
use everett_streams::Seed;

use crate::host::resident_bytes;

/// Vtime of the root moment, in nanoseconds.
const ROOT_NS: u64 = 700_000_000;
/// Length of a branch, in nanoseconds of vtime.
const SEGMENT_NS: u64 = 2_000_000_000;
/// Maximum number of branches on a timeline.
const DEPTH: usize = 6;
/// Interval between two digests, in nanoseconds of vtime.
const GRID_NS: u64 = 100_000_000;
const IN_FLIGHT: u32 = 64;
/// Number of types of events.
const TYPES: u64 = 64;
/// Number of events in a branch.
const EVENTS: u64 = 52;
/// Number of common states, i.e. states that are reached by many branches.
const STATES: u64 = 400;
/// One branch in this number reaches a state that no other branch reaches.
const STRANGE: u64 = 50;
/// One branch in this number has the finding.
const FOUND: u64 = 11;

/// Returns the header of the world's run directory.
#[must_use]
pub fn header(strategy: StrategyKind) -> Header {
    Header {
        everett: "0".to_owned(),
        machine_version: "scripted".to_owned(),
        identity: "0".to_owned(),
        image: "0".to_owned(),
        world_file: "scripted.toml".to_owned(),
        world: serde_json::json!({}),
        seed: Seed::new(1),
        strategy: StrategyName(strategy.name().to_owned()),
        in_flight: IN_FLIGHT,
        root_ns: ROOT_NS,
        segment_ns: SEGMENT_NS,
        horizon_ns: SEGMENT_NS * DEPTH as u64,
        nodes: ["a", "b", "db"].map(str::to_owned).to_vec(),
        ..Header::default()
    }
}

/// Creates a run of this world in a folder, or resumes the run there.
///
/// # Errors
/// Returns an error if [`Journal`] cannot create or resume the run.
pub fn journal(folder: &Path, strategy: StrategyKind) -> Result<Journal, RunError> {
    match folder.join("run.json").exists() {
        true => Journal::resume(folder, &header(strategy)),
        false => Journal::create(folder, &header(strategy)),
    }
}

/// Cost of the search itself, without the scripted branches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Number of branches so far.
    pub branches: u64,
    /// CPU time of the search so far, without the scripted branches, in nanoseconds.
    pub cpu_ns: u64,
    /// Memory of the process, in bytes.
    pub resident_bytes: u64,
}

/// Worker that runs scripted branches, and measures the search between them.
pub struct Scripted {
    world: World,
    jobs: VecDeque<Job>,
    /// Number of jobs among which the worker picks at random. It considers the jobs that have waited longest, and
    /// finishes the picked job next. Results therefore do not arrive in the order in which the search chose the
    /// branches.
    shuffled: usize,
    dice: u64,
    clock: CpuClock,
    cpu_ns: u64,
    results: u64,
    every: u64,
    /// Callback for each sample.
    pub on_sample: Box<dyn FnMut(Sample)>,
    /// Callback for each result, with the number of results so far.
    pub on_result: Box<dyn FnMut(u64)>,
}

impl Scripted {
    /// Creates a worker that takes a sample after every `every` results.
    #[must_use]
    pub fn new(every: u64) -> Scripted {
        Scripted {
            world: World::new(),
            jobs: VecDeque::new(),
            shuffled: 16,
            dice: 1,
            clock: CpuClock::start(),
            cpu_ns: 0,
            results: 0,
            every: every.max(1),
            on_sample: Box::new(|_| {}),
            on_result: Box::new(|_| {}),
        }
    }

    /// Explores up to `branches` branches.
    ///
    /// # Errors
    /// Returns an error if the run directory cannot be written, or if the size of the process's memory cannot be read.
    pub fn explore(
        &mut self,
        journal: Option<&mut Journal>,
        strategy: StrategyKind,
        branches: u64,
    ) -> Result<SearchOutcome, ExpeditionError<String>> {
        let aim = Aim {
            seed: Seed::new(1),
            root_ns: ROOT_NS,
            in_flight: NonZero::new(IN_FLIGHT).unwrap_or(NonZero::<u32>::MIN),
            strategy: strategy.strategy(),
            branches,
            until_found: false,
            waiting: IN_FLIGHT as usize,
        };
        self.clock = CpuClock::start();
        explore(aim, journal, self, &mut ())
    }
}

impl Workers for Scripted {
    type Error = String;

    fn waiting(&self) -> usize {
        self.jobs.len()
    }

    fn ask(&mut self, job: Job) {
        self.jobs.push_back(job);
    }

    fn result(&mut self, _: bool) -> Result<Option<(u64, Record)>, String> {
        self.cpu_ns += self.clock.elapsed_ns();
        self.dice = next(self.dice);
        let place = (self.dice >> 33) as usize % self.shuffled.min(self.jobs.len()).max(1);
        let done = self.jobs.remove(place).map(|job| (job.choice.number, self.world.run(&job)));
        if done.is_some() {
            self.results += 1;
            (self.on_result)(self.results);
            if self.results.is_multiple_of(self.every) {
                let (branches, cpu_ns) = (self.results, self.cpu_ns);
                (self.on_sample)(Sample { branches, cpu_ns, resident_bytes: resident_bytes()? });
            }
        }
        self.clock = CpuClock::start();
        Ok(done)
    }

    fn call_off(&mut self) {
        self.jobs.clear();
    }
}

/// Points of coverage that branches can reach by the order of events. Such a point (`Point::Order`) says that one type
/// of event came before another.
struct World {
    /// Points, indexed by the types of the two events and by whether the events are on two nodes.
    orders: Vec<(PointId, Point)>,
}

/// Returns the next value of a pseudo-random sequence.
fn next(state: u64) -> u64 {
    // SplitMix64, by Steele, Lea and Flood.
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn order(first: u64, then: u64, across: u64) -> usize {
    usize::try_from((first * TYPES + then) * 2 + across).unwrap_or(0)
}

impl World {
    fn new() -> World {
        let name = |kind: u64| match kind % 3 {
            0 => format!(
                "redis: {kind} connections accepted, the background saving started by pid {}",
                kind * 7
            ),
            1 => format!("tcp data {} worker-{kind}", if kind.is_multiple_of(2) { "to" } else { "from" }),
            _ => format!("worker-{kind}: the lock is mine until the clock of node {kind} says otherwise"),
        };
        let pairs = (0..TYPES).flat_map(|first| (0..TYPES).map(move |then| (first, then)));
        let orders = pairs.flat_map(|(first, then)| {
            [false, true].map(|across| {
                let point = Point::Order { first: name(first), then: name(then), across };
                (point.id(), point)
            })
        });
        World { orders: orders.collect() }
    }

    fn run(&self, job: &Job) -> Record {
        let path = job.choice.path.to_string();
        let mut dice = path.bytes().fold(0, |state, byte| next(state ^ u64::from(byte)));
        let mut draw = |n: u64| {
            dice = next(dice);
            (dice >> 32) % n
        };
        let depth = job.choice.path.forks().len();
        let begin_ns = job.choice.path.forks().last().map_or(ROOT_NS, |fork| fork.vtime_ns);
        let end_ns = begin_ns + SEGMENT_NS;
        let mut reached: Vec<(PointId, Reached)> = Vec::with_capacity(1000);
        let mut known = vec![false; self.orders.len()];
        let mut seen: Vec<u64> = Vec::new();
        let (mut vtime_ns, mut last) = (begin_ns, 0);
        for _ in 0..EVENTS {
            vtime_ns += draw(2 * SEGMENT_NS / EVENTS);
            // The type of an event is often the previous type plus one. Otherwise small type numbers are more frequent
            // than large ones.
            let kind = if draw(3) > 0 { (last + 1) % TYPES } else { draw(TYPES).min(draw(TYPES)) };
            last = kind;
            for &first in &seen {
                // A hash of the pair's types decides whether its two events are on one node or on two.
                let across = next(first * TYPES + kind) % 3 / 2;
                let place = order(first, kind, across);
                if let (Some(known), Some((id, point))) = (known.get_mut(place), self.orders.get(place))
                    && !std::mem::replace(known, true)
                {
                    reached.push((*id, Reached { point: point.clone(), vtime_ns }));
                }
            }
            if !seen.contains(&kind) {
                seen.push(kind);
            }
        }
        let mut state = |text: String, vtime_ns| {
            let point = Point::State { state: text };
            reached.push((point.id(), Reached { point, vtime_ns }));
        };
        for step in 0..4 {
            let number = draw(STATES).min(draw(STATES));
            state(format!("a: lock=mine; b: lock=lost; db: role=master, {number} keys"), begin_ns + step);
        }
        if draw(STRANGE) == 0 {
            state(format!("a state that only {path} comes to"), end_ns);
        }
        let delta: Delta = reached.into_iter().collect();
        let hits = if draw(FOUND) == 0 { vec![hit(vtime_ns)] } else { Vec::new() };
        let marks: Vec<(u64, String)> = (begin_ns / GRID_NS + 1..=end_ns / GRID_NS)
            .map(|step| (step * GRID_NS, format!("{:016x}", draw(u64::MAX) << 32 | draw(u64::MAX))))
            .collect();
        Record {
            choice: job.choice.number,
            from: job.way.last().map(|(branch, _)| *branch),
            path: job.choice.path.clone(),
            open_ns: (depth < DEPTH && draw(4) > 0).then_some(end_ns),
            end_ns,
            instructions: 60_000_000 + draw(40_000_000),
            executed: 70_000_000,
            cpu_ns: 250_000_000 + draw(50_000_000),
            trail: (0..8).map(|_| format!("{:08x}", draw(1 << 32))).collect(),
            marks,
            checked: draw(8) == 0,
            faults: draw(3),
            losses: draw(2),
            messages: 60 + draw(60),
            delta,
            hits,
            history: Some(HistoryCount {
                operations: draw(90),
                acknowledged: draw(9),
                ..HistoryCount::default()
            }),
            log_bytes: draw(4_000),
            ..Record::default()
        }
    }
}

fn hit(vtime_ns: u64) -> Hit {
    let line = |i| {
        format!(
            "{i:>12} db | a line of a log that says what was seen just before the lock was lost, in some words"
        )
    };
    let before = |ns: u64| write_duration_ns(vtime_ns.saturating_sub(ns));
    let (begin, end) = (before(1_500_000), before(500_000));
    Hit {
        property: "linearizability".to_owned(),
        signature: "acquire by process # of # cannot be".to_owned(),
        text: format!(
            "acquire by process 10 of b ({begin} to {end}, lines 1 and 2) cannot be: process 0 of a held it"
        ),
        vtime_ns,
        node: None,
        evidence: Evidence {
            lines: (0..60).map(line).collect(),
            packets: (0..40).map(line).collect(),
            faults: vec!["power_loss of db".to_owned()],
        },
    }
}

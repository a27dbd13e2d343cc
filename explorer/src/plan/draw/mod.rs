//! Plans drawn from the world's random streams according to the `[faults]` table of a world file.
//!
//! - `kinds`: each kind's settings, defaults and bounds
//! - `quiet`: settings of quiet periods, in which all faults have ended and no fault starts
//! - `config`: checks the whole table, and tells which kinds are drawn
//! - `error`: errors of the table
//! - `span`: durations and ranges, the types of most settings
//! - `frequency`: bounds of the times between faults and between quiet periods
//! - `numbers`: random numbers
//! - `choose`: draws the target and the values of a fault, for each kind of fault
//! - [`pct`]: gives the nodes random priorities, and derives the latencies of the nodes' frames from the priorities
//! - `merge`: adds these latencies to a plan
//! - `guarantee`: lower bound on the probability that such latencies lead to a bug
//!
//! **Invariants.**
//! - Each kind has its own random stream, whose key is the kind's name. The draws of a kind depend only on the kind's
//!   settings, on the time at which faults may first start (`start` in the table), and on the world's nodes,
//!   disks and units (services and drivers). A change of one kind's settings therefore does not affect another kind's
//!   draws.
//! - A drawn fault that conflicts with an earlier fault, or takes down too many nodes, is left out. A drawn fault that
//!   would last into a quiet period is cut short. No fault is drawn as a replacement.
//! - A drawn plan passes the same checks as a plan from a file, even if the settings are invalid.

mod choose;
mod config;
mod error;
mod frequency;
mod guarantee;
mod kinds;
mod merge;
pub(crate) mod numbers;
pub mod pct;
mod quiet;
mod span;

use std::collections::BTreeMap;

use everett_fault::{Fault, NodeFault};
use everett_streams::{Purpose, Streams};

use super::conflicts::HeldResources;
use super::limits::{AT_NS_MAX, FOR_NS_MAX, LINES_MAX, PLAN_BYTES_MAX, PLAN_LINE_BYTES_MAX};
use super::line::{self, Faulty};
use super::names::Names;
use super::quiet_periods::QuietPeriods;
use super::{Plan, PlanEntry, What, check};
use choose::{Choose, Dice};

pub use error::{ConfigError, ConfigProblem};
pub use kinds::{
    Bandwidth, BitRot, ClockDrift, ClockStep, Clog, Command, Corrupt, DiskError, DiskFull, DiskLatency,
    Duplicate, FaultConfig, Latency, LinkChoice, Loss, Partition, Pause, PowerLoss, Priorities, Reorder,
    Reseed, Reset, RestartService, SlowCpu, Stalls,
};
pub use quiet::Quiet;
pub use span::{Between, Span};

/// Result of a draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// Drawn plan.
    pub plan: Plan,
    /// Time at which the plan was full, so that later faults were left out. In nanoseconds after *ready*, the time at
    /// which all services of the world are up. `None` if the plan had room for all faults.
    pub full_at_ns: Option<u64>,
}

/// Draws a plan for the first `horizon_ns` nanoseconds after *ready*, but for at most [`AT_NS_MAX`].
#[must_use]
pub fn draw(config: &FaultConfig, names: &Names, horizon_ns: u64, streams: &mut Streams) -> Drawn {
    draw_on(config, names, &Plan::default(), 0, horizon_ns, streams)
}

/// Draws the continuation of a plan. Keeps the faults of `plan` that start before `from_ns`, and draws all later
/// faults. `plan` must have been drawn for the same horizon and quiet periods.
#[must_use]
pub fn draw_on(
    config: &FaultConfig,
    names: &Names,
    plan: &Plan,
    from_ns: u64,
    horizon_ns: u64,
    streams: &mut Streams,
) -> Drawn {
    let horizon_ns = horizon_ns.min(AT_NS_MAX);
    let mut full_at_ns = None;
    let mut drawing = Drawing::new(config, names, quiet_periods(config, horizon_ns));
    for entry in plan.entries.iter().filter(|entry| entry.at_ns < from_ns) {
        if let What::Fault(fault) = &entry.what {
            drawing.put(entry.clone(), fault);
        }
    }
    let enabled = config.kinds().into_iter().filter(|kind| config.draws(&kind.common()));
    let start_ns = config.start.0.max(from_ns);
    let mut waiting: Vec<Waiting<'_>> = enabled.map(|kind| Waiting::new(kind, start_ns, streams)).collect();
    // Take the kind whose next fault comes first. Ties go to the first kind in the table of kinds.
    while let Some((i, at_ns)) = waiting.iter().map(|kind| kind.at_ns).enumerate().min_by_key(|(_, at)| *at) {
        if at_ns >= horizon_ns {
            break;
        }
        if drawing.is_full() {
            full_at_ns = Some(at_ns);
            break;
        }
        match waiting[i].next(names, streams) {
            Some((fault, for_ns)) => drawing.enter(at_ns, for_ns, fault),
            None => {
                waiting.remove(i);
            }
        }
    }
    Drawn { plan: drawing.finish(), full_at_ns }
}

fn quiet_periods(config: &FaultConfig, horizon_ns: u64) -> Vec<PlanEntry> {
    let period = |at_ns, Span(ns)| PlanEntry { at_ns, for_ns: Some(ns.min(FOR_NS_MAX)), what: What::Quiet };
    let mut periods = Vec::new();
    let Quiet { enabled, every, lasts } = &config.quiet;
    if *enabled && lasts.0 > 0 {
        let every_ns = every.0.clamp(*frequency::QUIET_EVERY_NS.start(), *frequency::QUIET_EVERY_NS.end());
        let starts = (1..).map(|n| config.start.0.saturating_add(every_ns.saturating_mul(n)));
        periods.extend(starts.take_while(|at_ns| *at_ns < horizon_ns).map(|at_ns| period(at_ns, *lasts)));
    }
    if config.calm_end.0 > 0 && horizon_ns > 0 {
        periods.push(period(horizon_ns.saturating_sub(config.calm_end.0), config.calm_end));
        periods.sort_by_key(|period| period.at_ns);
    }
    periods
}

/// Kind of fault, with the time of its next fault. The values of that fault are not drawn yet.
struct Waiting<'c> {
    kind: &'c dyn Choose,
    stream: Purpose,
    every_ns: u64,
    at_ns: u64,
}

impl<'c> Waiting<'c> {
    fn new(kind: &'c dyn Choose, start_ns: u64, streams: &mut Streams) -> Waiting<'c> {
        let common = kind.common();
        let every_ns = common.every.0.max(*frequency::EVERY_NS.start());
        let stream = Purpose::Fault { kind: common.kind };
        let mut waiting = Waiting { kind, stream, every_ns, at_ns: start_ns };
        waiting.wait(streams);
        waiting
    }

    fn wait(&mut self, streams: &mut Streams) {
        let ns = numbers::exponential(streams.get(self.stream), self.every_ns);
        self.at_ns = self.at_ns.saturating_add(ns);
    }

    /// Draws the values of the next fault, and then the time of the fault after it.
    fn next(&mut self, names: &Names, streams: &mut Streams) -> Option<(Fault, Option<u64>)> {
        let rng = streams.get(self.stream);
        let drawn = self.kind.choose(&mut Dice { rng, names, nodes: self.kind.common().nodes });
        self.wait(streams);
        drawn
    }
}

/// Plan under construction. Faults are added in order of time, and conflicting faults are left out.
struct Drawing<'c> {
    config: &'c FaultConfig,
    names: &'c Names,
    periods: QuietPeriods,
    held: HeldResources,
    /// For each node, the time until which the node is off, paused or recovering.
    down: BTreeMap<String, u64>,
    /// For each node, the time of its last restart.
    started: BTreeMap<String, u64>,
    entries: Vec<PlanEntry>,
    bytes: usize,
}

impl<'c> Drawing<'c> {
    fn new(config: &'c FaultConfig, names: &'c Names, quiet: Vec<PlanEntry>) -> Drawing<'c> {
        let periods = QuietPeriods::of(quiet.iter().enumerate());
        let bytes = quiet.iter().map(|entry| line::write(entry).len() + 1).sum();
        let (down, started) = (BTreeMap::new(), BTreeMap::new());
        Drawing {
            config,
            names,
            periods,
            held: HeldResources::default(),
            down,
            started,
            entries: quiet,
            bytes,
        }
    }

    /// Returns true if another entry could exceed the bounds of a plan.
    fn is_full(&self) -> bool {
        self.entries.len() >= LINES_MAX || self.bytes > PLAN_BYTES_MAX - PLAN_LINE_BYTES_MAX - 1
    }

    fn enter(&mut self, at_ns: u64, for_ns: Option<u64>, fault: Fault) {
        let left = self.periods.next(at_ns).map_or(u64::MAX, |quiet| quiet.at_ns - at_ns);
        let for_ns = for_ns.map(|ns| ns.min(left));
        if self.too_many_down(at_ns, &fault) || self.too_soon(at_ns, &fault) {
            return;
        }
        self.put(PlanEntry { at_ns, for_ns, what: What::Fault(fault.clone()) }, &fault);
    }

    /// Adds a fault that starts after all others, unless it conflicts with an earlier fault.
    fn put(&mut self, entry: PlanEntry, fault: &Fault) {
        let mut faulty = Faulty::default();
        check::entry(&entry, self.names, &mut faulty);
        let bytes = line::write(&entry).len();
        if !faulty.is_empty() || bytes > PLAN_LINE_BYTES_MAX {
            return;
        }
        if self.held.admit(self.entries.len(), &entry, fault, &self.periods, self.names).is_ok() {
            self.note_down(entry.at_ns, entry.for_ns, fault);
            self.bytes += bytes + 1;
            self.entries.push(entry);
        }
    }

    fn too_many_down(&self, at_ns: u64, fault: &Fault) -> bool {
        if takes_down(fault).is_none() {
            return false;
        }
        let others =
            self.down.iter().filter(|(node, until)| Some(node.as_str()) != fault.node() && **until > at_ns);
        others.count() >= self.config.down_max(self.names.count())
    }

    /// Returns true if the fault is a power loss too soon after the node's last restart.
    fn too_soon(&self, at_ns: u64, fault: &Fault) -> bool {
        let Fault::Node { node, fault: NodeFault::PowerLoss { .. } } = fault else { return false };
        self.started.get(node).is_some_and(|ns| at_ns < ns.saturating_add(self.config.power_loss.up.0))
    }

    fn note_down(&mut self, at_ns: u64, for_ns: Option<u64>, fault: &Fault) {
        let Some(down) = takes_down(fault) else { return };
        let (recovers, recovery_ns) = match down {
            Down::Restarts => (true, self.config.recovery.0),
            Down::Paused => (false, 0),
        };
        let node = fault.node().unwrap_or_default();
        let back = at_ns.saturating_add(for_ns.unwrap_or(0));
        let down = self.down.entry(node.to_owned()).or_default();
        *down = back.saturating_add(recovery_ns).max(*down);
        if recovers {
            self.started.insert(node.to_owned(), back);
        }
    }

    fn finish(mut self) -> Plan {
        self.entries.sort_by_key(|entry| entry.at_ns);
        Plan { entries: self.entries }
    }
}

/// Way in which a fault keeps a node from serving clients.
enum Down {
    Restarts,
    Paused,
}

/// Returns how a fault keeps a node from serving clients, or `None` if the node keeps serving.
fn takes_down(fault: &Fault) -> Option<Down> {
    match fault {
        Fault::Node { fault, .. } => match fault {
            NodeFault::PowerLoss { .. } | NodeFault::Reset { .. } => Some(Down::Restarts),
            NodeFault::Pause => Some(Down::Paused),
            NodeFault::SlowCpu { .. } | NodeFault::ClockDrift { .. } | NodeFault::Stalls { .. } => None,
        },
        Fault::Network(_) | Fault::Disk { .. } | Fault::Medium { .. } | Fault::Guest { .. } => None,
    }
}

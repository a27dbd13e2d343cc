//! Runner that replays paths. It restores the root moment or a stored moment, takes each remaining fork, and runs the
//! last branch to its end.
//!
//! A runner keeps its machines between branches, so a restore copies only the pages that differ. The runner stops at
//! multiples of [`GRID_NS`] after each fork. The stops therefore do not depend on the moment from which a branch is
//! replayed.

use anyhow::{Context, bail};
use everett_cpu::Edge;
use everett_explorer::composer::Tally;
use everett_explorer::config::GRID_NS;
use everett_explorer::fate::BranchEnd;
use everett_explorer::plan::Plan;
use everett_explorer::run::{FinalPhase, HistoryCount, Span};
use everett_explorer::search::{Fork, Path};
use everett_host::time::CpuClock;
use everett_vmm::digest::Digest;
use everett_vmm::machine::{self, Machine, Stop, Until};
use everett_vmm::wire::log::FrameStep;
use everett_vmm::world::Captured;

use super::branch_moment::BranchMoment;
use super::cpu_time::CpuTime;
use super::setting::Setting;
use super::verdict::judge_history;
use super::witness::{Inherited, Observation, Testimony, Witness};
use crate::probes::Prober;
use crate::run::drive::checks_end_ns;
use crate::world::conversation::Phase;
use crate::world::event::{Event, What};
use crate::world::timeline::Timeline;

/// Digests along a branch: vtime in nanoseconds, and the digest of the world.
pub type Marks = Vec<(u64, Digest)>;

/// Result of running a branch.
#[derive(Debug)]
pub struct Branch {
    /// Vtime at the end of the branch's segment, i.e. of the part before the checks, in nanoseconds.
    pub end_ns: u64,
    /// Vtime at the end of the timeline, after its checks, in nanoseconds.
    pub last_ns: u64,
    /// True if other branches can continue from the end of the segment.
    pub open: bool,
    /// True if the checks ran to their end.
    pub checked: bool,
    /// Reason why the branch ended early.
    pub broken: Option<String>,
    /// Number of retired instructions or, in other clock modes, of retired conditional branches or exits.
    pub instructions: u64,
    /// Cost of the final phase, i.e. the part after the segment. `None` if the branch has no final phase.
    pub final_phase: Option<FinalPhase>,
    /// Digests at points of the trail, at the end of the segment and at the end of the checks.
    pub marks: Marks,
    /// Results of the witness, which observes the branch's events and messages.
    pub testimony: Testimony,
    /// Counts of test commands on this branch. If checks ran, the counts include the `eventually_` or `finally_`
    /// commands after the workload.
    pub commands: Tally,
    /// Counts of the operation history, if the world declares one.
    pub history: Option<HistoryCount>,
    /// CPU time by activity.
    pub spent: CpuTime,
    /// State of the witness at the end of the segment. Branches that continue from there inherit it.
    pub memory: Inherited,
    /// Moment at the end of the segment, if other branches can continue from it and the [`Aim`] asks for a moment.
    pub at_moment: Option<BranchMoment>,
}

/// Results of a branch that the caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// All results: the checks, the history, and the moment at the end of the segment.
    Whole,
    /// The moment at the end of the segment. Checks do not run, and the history is not judged.
    Moment,
    /// The execution alone, without checks and without a moment.
    Way,
}

/// A path to replay, optionally with another plan and another end than in the exploration.
#[derive(Debug, Clone)]
pub struct Route {
    /// Forks of the timeline. A route can have none.
    pub path: Path,
    /// Fault plan of all branches. With `None`, the explorer draws the plans for the path.
    pub plan: Option<Plan>,
    /// End of the last branch. With `None`, the branch ends as in the exploration.
    pub end: Option<BranchEnd>,
}

impl Route {
    /// Returns a route on which each branch has the same plan and the same end as in the exploration.
    #[must_use]
    pub fn along(path: Path) -> Route {
        Route { path, plan: None, end: None }
    }
}

/// Observer of a runner. It can end a timeline early, but cannot change it.
pub trait Watch {
    /// True if the observer sets breakpoints itself. The world's probes are then not observed.
    fn sets_breakpoints(&self) -> bool {
        false
    }
    /// Reports that a segment begins. The timeline has just taken the fork. An observer can set breakpoints here.
    ///
    /// # Errors
    /// An error ends the timeline.
    fn begins(&mut self, _: &mut Timeline) -> anyhow::Result<()> {
        Ok(())
    }
    /// Reports that a node's next instruction is at a breakpoint. The timeline then goes on. The events up to this
    /// vtime are reported later.
    ///
    /// # Errors
    /// An error ends the timeline.
    fn breakpoint(&mut self, _: &mut Timeline, _node: usize) -> anyhow::Result<()> {
        Ok(())
    }
    /// Reports an event.
    fn event(&mut self, _: &Event) {}
    /// Reports the fate of a message between two nodes.
    fn message(&mut self, _: &FrameStep) {}
    /// Reports frames at the nodes' cards, in the order of their vtimes, if the world captures frames
    /// ([`World::capture`](everett_vmm::world::World::capture)). The events and messages up to the last of these frames
    /// have been reported before.
    fn frames(&mut self, _: &[Captured]) {}
    /// Reports the world's digest at a point of the trail, or at the end of a segment or its checks. Returns false to
    /// end the timeline.
    fn mark(&mut self, _vtime_ns: u64, _digest: Digest) -> bool {
        true
    }
    /// Reports the edges of code that a node has executed for the first time.
    fn edges(&mut self, _node: usize, _edges: &[Edge]) {}
    /// Reports the current vtime. Returns false to end the timeline.
    fn at(&mut self, _vtime_ns: u64) -> bool {
        true
    }
}

/// Observer that does nothing.
impl Watch for () {}

/// Observer that ends the timeline as soon as its function returns true.
pub struct Unless<'u>(pub &'u dyn Fn() -> bool);

impl Watch for Unless<'_> {
    fn at(&mut self, _: u64) -> bool {
        !(self.0)()
    }
}

/// A [`Watch`] has ended the timeline early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// The host or the engine (the part of Everett that executes guest instructions) failed. The machine cannot continue,
/// and the failure says nothing about the guest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{node}: {end}")]
pub struct Failed {
    /// Name of the node whose machine failed.
    pub node: String,
    /// End of the machine.
    pub end: machine::End,
}

impl Failed {
    /// Returns the failure of the first machine of a timeline that has failed.
    pub(crate) fn of(timeline: &Timeline) -> Option<Failed> {
        let machines = timeline.world().nodes().iter().map(|node| node.machine());
        Failed::among(machines.filter_map(|machine| Some((machine.name(), machine.end()?))))
    }

    /// Returns the first failure in a list of machine ends with node names.
    fn among<'e>(mut ends: impl Iterator<Item = (&'e str, &'e machine::End)>) -> Option<Failed> {
        let (node, end) = ends.find(|(_, end)| end.is_failure())?;
        Some(Failed { node: node.to_owned(), end: end.clone() })
    }
}

/// Runner with its own machines, whose timeline can be moved to any branch of the tree.
pub struct PathRunner<'s> {
    setting: &'s Setting,
    timeline: Timeline,
    marker: Marker,
    spent: CpuTime,
    /// Observer of the world's probes, while a timeline runs with them.
    prober: Option<Prober>,
}

impl<'s> PathRunner<'s> {
    /// Creates a runner with its own machines, at the root moment.
    ///
    /// # Errors
    /// Returns an error if the machines cannot be created.
    pub fn new(setting: &'s Setting) -> anyhow::Result<PathRunner<'s>> {
        Ok(PathRunner {
            setting,
            timeline: setting.launcher.resume(&setting.ready)?,
            marker: Marker::default(),
            spent: CpuTime::default(),
            prober: None,
        })
    }

    /// Returns the timeline, so that callers can inspect it.
    pub fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// Returns the timeline, and drops the runner.
    #[must_use]
    pub fn into_timeline(self) -> Timeline {
        self.timeline
    }

    /// Runs the last branch of `path` from its parent's moment `from`, or from the root moment if `from` is `None`.
    ///
    /// # Errors
    /// Returns an error if the branch cannot be run, and [`Interrupted`] if `watch` ended it. Returns [`Failed`] if the
    /// host or the engine failed. After this error, the runner cannot be used any more.
    pub fn branch(
        &mut self,
        from: Option<&BranchMoment>,
        path: &Path,
        memory: &Inherited,
        aim: Aim,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Branch> {
        let fates = self.setting.fates();
        let (plan, end) = (fates.plan(path), fates.end(path).context("the root is not a branch")?);
        let fork = *path.forks().last().context("the root is not a branch")?;
        self.start(from, fork, &plan)?;
        let branch = self.segment(&plan, end, memory, aim, watch);
        self.unless_failed(branch)
    }

    /// Runs a future: a branch with its own plan and end. `from` can be a moment at any vtime. Up to the fork, `plan`
    /// must equal the plan under which `from` was taken.
    ///
    /// # Errors
    /// See [`PathRunner::branch`].
    pub fn future(
        &mut self,
        from: Option<&BranchMoment>,
        fork: Fork,
        plan: &Plan,
        end: BranchEnd,
        memory: &Inherited,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Branch> {
        self.start(from, fork, plan)?;
        let branch = self.segment(plan, end, memory, Aim::Whole, watch);
        self.unless_failed(branch)
    }

    /// Runs the timeline of a path to the vtime `to_ns` and returns the moment there. The run starts at `from`, with
    /// the witness state that `from` contains. If `from` is `None`, the run starts at the root moment with the
    /// witness state `memory`. A fork at `to_ns` is not taken. `from` must lie before the checks.
    ///
    /// # Errors
    /// See [`PathRunner::branch`]. Also returns an error if the timeline ends before `to_ns`, or if a machine ends there.
    pub fn rewind(
        &mut self,
        path: &Path,
        from: Option<&BranchMoment>,
        to_ns: u64,
        memory: &Inherited,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<BranchMoment> {
        let (moment, ended) = self.rewind_to_end(path, from, to_ns, memory, watch)?;
        match ended {
            Some(why) => bail!("{}: it ended at {to_ns} ns: {why}", self.setting.name(path)),
            None => Ok(moment),
        }
    }

    /// Like [`PathRunner::rewind`], but a timeline may end at `to_ns`. Also returns why it cannot continue, if it cannot.
    ///
    /// # Errors
    /// See [`PathRunner::branch`]. Also returns an error if the timeline ends before `to_ns`.
    pub fn rewind_to_end(
        &mut self,
        path: &Path,
        from: Option<&BranchMoment>,
        to_ns: u64,
        memory: &Inherited,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<(BranchMoment, Option<String>)> {
        let reached = self.go_to(path, from, to_ns, memory, true, watch);
        let (memory, ended) = self.unless_failed(reached)?;
        let clock = CpuClock::start();
        let moment = BranchMoment::of(&mut self.timeline, &self.setting.pool, memory);
        self.spent.moment_ns += clock.elapsed_ns();
        Ok((moment, ended))
    }

    /// Runs the timeline of a path from the root moment to the vtime `to_ns`, so that callers can inspect it. `to_ns`
    /// can be an instant of the checks, or the end of the timeline.
    ///
    /// # Errors
    /// See [`PathRunner::rewind`].
    pub fn seek(&mut self, path: &Path, to_ns: u64, watch: &mut dyn Watch) -> anyhow::Result<()> {
        let memory = self.setting.inherited_at_boot()?;
        let reached = self.go_to(path, None, to_ns, &memory, false, watch);
        self.unless_failed(reached).map(|_| ())
    }

    /// Runs the timeline of a path to a vtime. Returns the state of the witness there, and why the timeline cannot
    /// continue, if it ended exactly there. `is_probed` says whether the world's probes are observed.
    fn go_to(
        &mut self,
        path: &Path,
        from: Option<&BranchMoment>,
        to_ns: u64,
        memory: &Inherited,
        is_probed: bool,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<(Inherited, Option<String>)> {
        let fates = self.setting.fates();
        let mut here = Path::default();
        match from {
            Some(from) => {
                here = self.restore(from)?;
            }
            None => {
                let first = *path.forks().first().context("the root moment has no other one before it")?;
                here = here.child(first)?;
                self.begin(Some(first), &fates.plan(&here))?;
            }
        }
        let mut memory = from.map_or(memory, |from| &from.memory).clone();
        loop {
            let next = path.forks().get(here.forks().len()).filter(|fork| fork.vtime_ns < to_ns).copied();
            let plan = fates.plan(&here);
            self.marker = Marker::new(&self.timeline);
            let mut witness = Witness::new(&self.setting.abstractions, &plan, &memory)?;
            self.probe(&memory, is_probed && !watch.sets_breakpoints())?;
            let end = fates.end(&here).context("the root is not a branch")?;
            let until_ns = next.map_or(to_ns, |fork| fork.vtime_ns);
            let segment_ns = if next.is_none() { to_ns.min(end.at_ns) } else { until_ns };
            let mut ended = self.run_to(segment_ns, &mut witness, watch)?;
            if ended.is_none() && end.checked && self.timeline.vtime() < until_ns {
                ended = self.checks(until_ns, &mut witness, watch)?;
            }
            memory = self.inherited(&mut witness);
            self.end_probes(false);
            if self.timeline.vtime() < until_ns {
                let why = ended.map(|why| format!(": {why}")).unwrap_or_default();
                bail!("{}: it ended before {until_ns} ns{why}", self.setting.name(&here));
            }
            let Some(fork) = next else { return Ok((memory, ended)) };
            here = here.child(fork)?;
            self.timeline.fork(fork, Some(self.setting.faults(fates.plan(&here))))?;
        }
    }

    /// Runs all branches of a route from the root moment and returns them.
    ///
    /// The last branch runs with its checks, as in an exploration. If a machine ends early, no further branch runs: see
    /// [`ended_early`].
    ///
    /// # Errors
    /// See [`PathRunner::branch`].
    pub fn journey(&mut self, route: &Route, watch: &mut dyn Watch) -> anyhow::Result<Vec<Branch>> {
        let fates = self.setting.fates();
        let forks = route.path.forks();
        let mut memory = self.setting.inherited_at_boot()?;
        let mut branches: Vec<Branch> = Vec::new();
        let mut here = Path::default();
        for leg in 0..forks.len().max(1) {
            let fork = forks.get(leg).copied();
            if let Some(fork) = fork {
                here = here.child(fork)?;
            }
            let plan = route.plan.clone().unwrap_or_else(|| fates.plan(&here));
            match (branches.last(), fork) {
                (None, fork) => self.begin(fork, &plan)?,
                (Some(before), Some(_)) if before.broken.is_some() => break,
                (Some(before), Some(fork)) if before.open && before.end_ns == fork.vtime_ns => {
                    self.timeline.fork(fork, Some(self.setting.faults(plan.clone())))?;
                }
                _ => bail!("{}: its parent branch does not end at this fork", self.setting.name(&here)),
            }
            let last = leg + 1 >= forks.len();
            let end = route.end.filter(|_| last).or_else(|| fates.end(&here));
            let end = end.context("a timeline without forks has no end of its own")?;
            let aim = if last { Aim::Whole } else { Aim::Way };
            let branch = self.segment(&plan, end, &memory, aim, watch);
            let branch = self.unless_failed(branch)?;
            memory = branch.memory.clone();
            branches.push(branch);
        }
        Ok(branches)
    }

    /// Begins the timeline at the root moment, and takes `fork` there if there is one.
    fn begin(&mut self, fork: Option<Fork>, plan: &Plan) -> anyhow::Result<()> {
        let clock = CpuClock::start();
        let ready = &self.setting.ready;
        self.setting.launcher.go_to(&mut self.timeline, &ready.moment, ready.session.clone())?;
        self.timeline.apply_faults(Some(self.setting.faults(plan.clone())))?;
        if let Some(fork) = fork {
            self.timeline.begin_as(fork)?;
        }
        self.timeline.begin(self.setting.seed)?;
        self.spent.restore_ns += clock.elapsed_ns();
        Ok(())
    }

    /// Goes to a stored moment, or to the root moment, and takes the fork there.
    fn start(&mut self, from: Option<&BranchMoment>, fork: Fork, plan: &Plan) -> anyhow::Result<()> {
        match from {
            None => self.begin(Some(fork), plan),
            Some(from) => {
                self.restore(from)?;
                Ok(self.timeline.fork(fork, Some(self.setting.faults(plan.clone())))?)
            }
        }
    }

    /// Restores a stored moment. Returns the path to it.
    fn restore(&mut self, from: &BranchMoment) -> anyhow::Result<Path> {
        let clock = CpuClock::start();
        self.setting.launcher.go_to(&mut self.timeline, &from.world, from.session.clone())?;
        let path = self.timeline.path().clone();
        let before = self.setting.fates().plan(&path);
        self.timeline.apply_faults(Some(self.setting.faults(before)))?;
        self.spent.restore_ns += clock.elapsed_ns();
        Ok(path)
    }

    /// Runs a branch to its end. The timeline has just taken the branch's fork.
    fn segment(
        &mut self,
        plan: &Plan,
        end: BranchEnd,
        memory: &Inherited,
        aim: Aim,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Branch> {
        let started = self.timeline.icount();
        let commands = self.timeline.tally().cloned().unwrap_or_default();
        self.marker = Marker::new(&self.timeline);
        let mut witness = Witness::new(&self.setting.abstractions, plan, memory)?;
        self.probe(memory, !watch.sets_breakpoints())?;
        watch.begins(&mut self.timeline)?;
        let mut broken = self.run_to(end.at_ns, &mut witness, watch)?;
        let end_ns = self.timeline.vtime();
        self.mark_end(watch)?;
        let open = end.open && broken.is_none();
        let checks = aim == Aim::Whole && end.checked && broken.is_none();
        // `Witness::memory` changes the witness: it ends a log message of several lines that is still unfinished. The
        // runner therefore calls it for every aim, so that later branches inherit the same state for every aim.
        let memory = self.inherited(&mut witness);
        let mut history = None;
        if aim == Aim::Whole && !checks {
            history = self.judge(&mut witness);
        }
        let keep = open && aim != Aim::Way;
        let clock = CpuClock::start();
        let at_moment =
            keep.then(|| BranchMoment::of(&mut self.timeline, &self.setting.pool, memory.clone()));
        self.spent.moment_ns += clock.elapsed_ns();
        let (mut checked, mut final_phase) = (false, None);
        if checks {
            let calm_begun = (self.timeline.icount(), end_ns);
            broken = self.checks(u64::MAX, &mut witness, watch)?;
            final_phase = Some(self.final_phase(calm_begun));
            checked = broken.is_none();
            history = self.judge(&mut witness);
            self.mark_end(watch)?;
        }
        self.end_probes(aim == Aim::Whole);
        Ok(Branch {
            end_ns,
            last_ns: self.timeline.vtime(),
            open,
            checked,
            broken,
            instructions: self.timeline.icount().saturating_sub(started),
            final_phase,
            marks: std::mem::take(&mut self.marker.taken),
            spent: std::mem::take(&mut self.spent),
            testimony: witness.finish(),
            commands: self.timeline.tally().map(|tally| tally.since(&commands)).unwrap_or_default(),
            history,
            memory,
            at_moment,
        })
    }

    /// Begins to observe the world's probes on a timeline that inherits `memory`, if `is_probed`.
    fn probe(&mut self, memory: &Inherited, is_probed: bool) -> anyhow::Result<()> {
        // A timeline that ended with an error has left its breakpoints.
        self.end_probes(false);
        let setting = self.setting;
        self.prober = setting.probes.as_ref().filter(|_| is_probed).map(Prober::new);
        match &mut self.prober {
            Some(prober) => prober.begin(&mut self.timeline, &memory.probes),
            None => Ok(()),
        }
    }

    /// Ends the observation of the world's probes.
    fn end_probes(&mut self, is_counted: bool) {
        if let Some(mut prober) = self.prober.take() {
            prober.end(&mut self.timeline, is_counted);
        }
    }

    /// Returns the state that a branch from here inherits.
    fn inherited(&self, witness: &mut Witness<'_>) -> Inherited {
        let mut memory = witness.memory();
        if let Some(prober) = &self.prober {
            memory.probes = prober.state().clone();
        }
        memory
    }

    /// Judges the timeline's operation history up to the current vtime.
    fn judge(&mut self, witness: &mut Witness<'_>) -> Option<HistoryCount> {
        let clock = CpuClock::start();
        let count = judge_history(&self.setting.abstractions, witness);
        self.spent.history_ns += clock.elapsed_ns();
        count
    }

    /// Runs to the vtime `end_ns`. Returns the reason if the timeline ended earlier.
    fn run_to(
        &mut self,
        end_ns: u64,
        witness: &mut Witness<'_>,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Option<String>> {
        // The grid begins at the last fork, even if the timeline was restored from a later moment.
        let fork_ns = self.timeline.path().forks().last().map_or(self.setting.root_ns, |fork| fork.vtime_ns);
        while self.timeline.vtime() < end_ns {
            let since_ns = self.timeline.vtime().saturating_sub(fork_ns);
            let next_ns =
                end_ns.min(fork_ns.saturating_add((since_ns / GRID_NS + 1).saturating_mul(GRID_NS)));
            if let Some(why) = self.step(next_ns, witness, watch)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// Ends faults, stops drivers and runs to the end of the last check, or to the vtime `to_ns`. Returns the reason if
    /// the timeline ended earlier.
    fn checks(
        &mut self,
        to_ns: u64,
        witness: &mut Witness<'_>,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Option<String>> {
        let from_ns = self.timeline.vtime();
        let duration_ns = from_ns.saturating_sub(self.setting.root_ns);
        self.timeline.end_after(duration_ns);
        witness.calm(from_ns);
        let last_ns = self.setting.root_ns.saturating_add(checks_end_ns(&self.timeline, duration_ns));
        loop {
            let next_ns = self.timeline.vtime().saturating_add(GRID_NS).min(to_ns);
            if let Some(why) = self.step(next_ns, witness, watch)? {
                return Ok(Some(why));
            }
            if self.timeline.phase() == Phase::Done {
                witness.over(self.timeline.vtime());
                return Ok(None);
            }
            if self.timeline.vtime() >= to_ns {
                return Ok(None);
            }
            if self.timeline.vtime() > last_ns {
                self.timeline.give_up("the checks did not end in time");
            }
        }
    }

    /// Returns the cost of the final phase, which has just ended. `calm_begun` has the instruction count and
    /// the vtime at the start of the phase.
    fn final_phase(&self, calm_begun: (u64, u64)) -> FinalPhase {
        let end = (self.timeline.icount(), self.timeline.vtime());
        // Checks begin only after all drivers have ended and all restarts are over. If this took too long, no check
        // ran, and the whole phase counts as waiting.
        let checks_begun = self.timeline.checks_begun().unwrap_or(end);
        let span = |from: (u64, u64), to: (u64, u64)| Span {
            instructions: to.0.saturating_sub(from.0),
            vtime_ns: to.1.saturating_sub(from.1),
        };
        FinalPhase { calm: span(calm_begun, checks_begun), checks: span(checks_begun, end) }
    }

    /// Returns the failure of a machine, if one has failed. A failed machine cannot continue.
    #[must_use]
    pub fn failure(&self) -> Option<Failed> {
        Failed::of(&self.timeline)
    }

    /// Returns the result of a run. If a machine has failed, returns its failure instead, which may have caused the
    /// result.
    fn unless_failed<T>(&self, came: anyhow::Result<T>) -> anyhow::Result<T> {
        match self.failure() {
            Some(failed) => Err(failed.into()),
            None => came,
        }
    }

    fn machines(&mut self) -> impl Iterator<Item = &mut Machine> {
        self.timeline.world_mut().nodes_mut().map(|node| node.machine_mut())
    }

    /// Adds a mark at the end of a segment or of its checks.
    fn mark_end(&mut self, watch: &mut dyn Watch) -> anyhow::Result<()> {
        let clock = CpuClock::start();
        let (vtime_ns, digest) = (self.timeline.vtime(), self.timeline.digest());
        self.spent.digest_ns += clock.elapsed_ns();
        if self.marker.taken.last() == Some(&(vtime_ns, digest)) {
            return Ok(());
        }
        self.mark(vtime_ns, digest, watch)
    }

    fn mark(&mut self, vtime_ns: u64, digest: Digest, watch: &mut dyn Watch) -> anyhow::Result<()> {
        self.marker.taken.push((vtime_ns, digest));
        if watch.mark(vtime_ns, digest) { Ok(()) } else { Err(Interrupted.into()) }
    }

    fn step(
        &mut self,
        next_ns: u64,
        witness: &mut Witness<'_>,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Option<String>> {
        let (clock, trail_ns) = (CpuClock::start(), self.timeline.trail_cpu_ns());
        let stop = loop {
            match self.timeline.run_node(0, &Until::vtime(next_ns)) {
                (Some(node), Stop::Breakpoint) => {
                    if let Some(prober) = &mut self.prober {
                        prober.stopped(&mut self.timeline, node)?;
                    }
                    watch.breakpoint(&mut self.timeline, node)?;
                }
                (_, stop) => break stop,
            }
        };
        let digest_ns = self.timeline.trail_cpu_ns() - trail_ns;
        self.spent.digest_ns += digest_ns;
        self.spent.guest_ns += clock.elapsed_ns().saturating_sub(digest_ns);
        let clock = CpuClock::start();
        let probed = self.prober.as_mut().map(Prober::take).unwrap_or_default();
        let (plan, abstractions, prober) = (witness.plan(), &self.setting.abstractions, &mut self.prober);
        witness.take(&mut self.timeline, probed, &mut |observation| match observation {
            Observation::Event(event) => {
                if let (What::Fault { id, .. }, Some(prober)) = (&event.what, prober.as_mut()) {
                    prober.fault(plan, *id, |name| abstractions.node(name));
                }
                watch.event(event);
            }
            Observation::Message(step) => watch.message(step),
        });
        let frames = self.timeline.world_mut().take_captured();
        if !frames.is_empty() {
            watch.frames(&frames);
        }
        self.spent.witness_ns += clock.elapsed_ns();
        for (node, machine) in self.machines().enumerate() {
            let edges = machine.take_edges();
            if !edges.is_empty() {
                watch.edges(node, &edges);
            }
        }
        let new = self.timeline.trail().points().get(self.marker.points..).unwrap_or_default().to_vec();
        self.marker.points += new.len();
        for (vtime_ns, digest) in new {
            self.mark(vtime_ns, digest, watch)?;
        }
        if !watch.at(self.timeline.vtime()) {
            return Err(Interrupted.into());
        }
        Ok(match stop {
            Stop::End(end) => Some(end.to_string()),
            _ if self.timeline.phase() == Phase::Broken => {
                Some("a machine or its agent cannot be used any more".to_owned())
            }
            _ => None,
        })
    }
}

/// Returns where and why a route ended before the last branch of its path, or `None` if it reached the last branch.
#[must_use]
pub fn ended_early(branches: &[Branch], path: &Path) -> Option<String> {
    let (legs, forks) = (branches.len(), path.forks().len());
    let why = branches.last()?.broken.as_deref()?;
    (legs < forks).then(|| format!("it ended early, on branch {legs} of the {forks} of its path: {why}"))
}

/// Collector of a branch's marks.
#[derive(Debug, Default)]
struct Marker {
    /// Number of the trail's points that lie before the branch or are already in `taken`.
    points: usize,
    taken: Marks,
}

impl Marker {
    fn new(timeline: &Timeline) -> Marker {
        Marker { points: timeline.trail().points().len(), taken: Marks::new() }
    }
}

#[cfg(test)]
mod tests {
    use everett_vmm::machine::End;

    use super::Failed;

    #[test]
    fn failures_of_host_and_engine_are_found() {
        let (off, host) = (End::PowerOff, End::Host("no device".to_owned()));
        let engine = End::Engine("a panic".to_owned());
        let among =
            |ends: &[(&str, &End)]| Failed::among(ends.iter().copied()).map(|failed| failed.to_string());
        assert_eq!(among(&[("a", &off), ("b", &End::TripleFault)]), None);
        assert_eq!(among(&[("a", &off), ("b", &host)]).as_deref(), Some("b: the host failed: no device"));
        let told = "a: engine failure, a defect of Everett: panicked with \"a panic\"";
        assert_eq!(among(&[("a", &engine), ("b", &host)]).as_deref(), Some(told));
    }
}

//! A timeline that goes along a path: from the root moment or a stored one, fork after fork, to the end of its last branch.
//!
//! A runner keeps its machines from branch to branch; only pages that differ are copied. It stops on a grid from each fork on,
//! which is the same whoever goes there.

use anyhow::{Context, bail};
use everett_cpu::Edge;
use everett_explorer::composer::Tally;
use everett_explorer::config::GRID_NS;
use everett_explorer::fate::End;
use everett_explorer::plan::Plan;
use everett_explorer::run::HistoryCount;
use everett_explorer::search::{Fork, Path};
use everett_host::time::CpuClock;
use everett_vmm::digest::Digest;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::machine::{self, Machine, Stop, Until};

use super::branch_moment::BranchMoment;
use super::setting::Setting;
use super::spent::Spent;
use super::verdict::judge_history;
use super::witness::{Inherited, Testimony, Witness};
use crate::conversation::Phase;
use crate::drive::checks_end_ns;
use crate::event::Event;
use crate::timeline::Timeline;

/// Places of a timeline with the world's digest there.
pub type Marks = Vec<(u64, Digest)>;

/// A branch that was run.
#[derive(Debug)]
pub struct Branch {
    /// Where its segment ended, in nanoseconds of vtime.
    pub end_ns: u64,
    /// Where the timeline did, its checks included.
    pub last_ns: u64,
    /// Others can go on from its end.
    pub open: bool,
    /// Its checks were run to their end.
    pub checked: bool,
    /// Why it ended before its time.
    pub broken: Option<String>,
    /// Instructions.
    pub instructions: u64,
    /// Its points, and the world's digest at its ends.
    pub marks: Marks,
    /// What was seen.
    pub testimony: Testimony,
    /// What became of a test template's commands, its last ones included if there were checks.
    pub commands: Tally,
    /// What was made of its history, if there is one.
    pub history: Option<HistoryCount>,
    /// Where its time went.
    pub spent: Spent,
    /// What was seen up to the end of its segment.
    pub memory: Inherited,
    /// The moment there, if others can go on from it and it was wanted.
    pub stand: Option<BranchMoment>,
}

/// What is wanted of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// All of it: its checks, its history, the moment at the end of its segment.
    Whole,
    /// That moment alone.
    Moment,
    /// To come there.
    Way,
}

/// Where somebody wants to go.
#[derive(Debug, Clone)]
pub struct Route {
    /// Where timelines fork on the way: nowhere, perhaps.
    pub path: Path,
    /// What is done to them, instead of what is drawn for the path.
    pub plan: Option<Plan>,
    /// How the last branch ends, instead of how it does when it is explored.
    pub end: Option<End>,
}

impl Route {
    /// As it is explored.
    #[must_use]
    pub fn along(path: Path) -> Route {
        Route { path, plan: None, end: None }
    }
}

/// Who watches a runner. Nothing they do changes it, but for ending it early.
pub trait Watch {
    /// Something happened.
    fn event(&mut self, _: &Event) {}
    /// This is the world's digest at a point of the trail, or where a branch ends. Returns whether the timeline goes on.
    fn mark(&mut self, _vtime_ns: u64, _digest: Digest) -> bool {
        true
    }
    /// A node has executed these edges of code for the first time.
    fn edges(&mut self, _node: usize, _edges: &[Edge]) {}
    /// The timeline is here. Returns whether it goes on.
    fn at(&mut self, _vtime_ns: u64) -> bool {
        true
    }
}

/// Nobody.
impl Watch for () {}

/// Somebody did not want to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// The host or the engine has failed. The machine executes nothing any more, and what it showed says nothing of its guest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{node}: {end}")]
pub struct Failed {
    /// The machine's node.
    pub node: String,
    /// How it ended.
    pub end: machine::End,
}

impl Failed {
    /// The first failure among the ends of machines, with the names of their nodes.
    fn among<'e>(mut ends: impl Iterator<Item = (&'e str, &'e machine::End)>) -> Option<Failed> {
        let (node, end) = ends.find(|(_, end)| end.is_failure())?;
        Some(Failed { node: node.to_owned(), end: end.clone() })
    }
}

/// A timeline that can go anywhere in the tree.
pub struct PathRunner<'s> {
    setting: &'s Setting,
    timeline: Timeline,
    marker: Marker,
    spent: Spent,
}

impl<'s> PathRunner<'s> {
    /// At the root moment.
    ///
    /// # Errors
    /// The machines cannot be made.
    pub fn new(setting: &'s Setting) -> anyhow::Result<PathRunner<'s>> {
        Ok(PathRunner {
            setting,
            timeline: setting.launcher.resume(&setting.ready)?,
            marker: Marker::default(),
            spent: Spent::default(),
        })
    }

    /// The timeline, to look at.
    pub fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// Run the last branch of a path from its parent's moment, the root's without one.
    ///
    /// # Errors
    /// It cannot be run; the host or the engine failed ([`Failed`]): another runner has to be made then; or it was interrupted
    /// ([`Interrupted`]).
    pub fn branch(
        &mut self,
        from: Option<&BranchMoment>,
        path: &Path,
        memory: &Inherited,
        aim: Aim,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Branch> {
        let fates = self.setting.fates();
        let (plan, end) = (fates.plan(path), fates.end(path).context("the root is no branch")?);
        let fork = *path.forks().last().context("the root is no branch")?;
        match from {
            None => self.begin(Some(fork), &plan)?,
            Some(stand) => self.go_on(stand, fork, &plan)?,
        }
        let branch = self.segment(&plan, end, memory, aim, watch);
        self.unless_failed(branch)
    }

    /// Go all the way from the root moment. The branches on the way, of which the last one is run as it is when it is explored.
    ///
    /// # Errors
    /// As [`PathRunner::branch`].
    pub fn journey(&mut self, route: &Route, watch: &mut dyn Watch) -> anyhow::Result<Vec<Branch>> {
        let fates = self.setting.fates();
        let forks = route.path.forks();
        let mut memory = self.setting.memory_of_boot()?;
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
                (Some(before), Some(fork)) if before.open && before.end_ns == fork.vtime_ns => {
                    self.timeline.fork(fork, Some(self.setting.faults(plan.clone())))?;
                }
                _ => bail!("{}: no branch goes on from there", self.setting.name(&here)),
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

    /// Begin at the root moment, as a child of it if it is one.
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

    /// Become a child of a moment that was kept.
    fn go_on(&mut self, from: &BranchMoment, fork: Fork, plan: &Plan) -> anyhow::Result<()> {
        let clock = CpuClock::start();
        self.setting.launcher.go_to(&mut self.timeline, &from.world, from.session.clone())?;
        let before = self.setting.fates().plan(self.timeline.path());
        self.timeline.apply_faults(Some(self.setting.faults(before)))?;
        self.timeline.fork(fork, Some(self.setting.faults(plan.clone())))?;
        self.spent.restore_ns += clock.elapsed_ns();
        Ok(())
    }

    /// Run on to the end of a branch, whose fork the timeline has just taken.
    fn segment(
        &mut self,
        plan: &Plan,
        end: End,
        memory: &Inherited,
        aim: Aim,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Branch> {
        let started = self.timeline.icount();
        let commands = self.timeline.tally().cloned().unwrap_or_default();
        self.marker = Marker::new(&self.timeline);
        let mut witness = Witness::new(&self.setting.lens, plan, memory)?;
        let mut broken = self.run_to(end.at_ns, &mut witness, watch)?;
        let end_ns = self.timeline.vtime();
        self.mark_end(watch)?;
        let open = end.open && broken.is_none();
        let checks = aim == Aim::Whole && end.checked && broken.is_none();
        // Whoever only comes here remembers the same.
        let memory = witness.memory();
        let mut history = None;
        if aim == Aim::Whole && !checks {
            history = self.judge(&mut witness);
        }
        let keep = open && aim != Aim::Way;
        let clock = CpuClock::start();
        let stand = keep.then(|| BranchMoment::of(&mut self.timeline, &self.setting.pool, memory.clone()));
        self.spent.moment_ns += clock.elapsed_ns();
        let mut checked = false;
        if checks {
            broken = self.checks(end_ns, &mut witness, watch)?;
            checked = broken.is_none();
            history = self.judge(&mut witness);
            self.mark_end(watch)?;
        }
        Ok(Branch {
            end_ns,
            last_ns: self.timeline.vtime(),
            open,
            checked,
            broken,
            instructions: self.timeline.icount().saturating_sub(started),
            marks: std::mem::take(&mut self.marker.taken),
            spent: std::mem::take(&mut self.spent),
            testimony: witness.finish(),
            commands: self.timeline.tally().map(|tally| tally.since(&commands)).unwrap_or_default(),
            history,
            memory,
            stand,
        })
    }

    /// Judge the history of the timeline up to here.
    fn judge(&mut self, witness: &mut Witness<'_>) -> Option<HistoryCount> {
        let clock = CpuClock::start();
        let count = judge_history(&self.setting.lens, witness);
        self.spent.history_ns += clock.elapsed_ns();
        count
    }

    /// Run on to a vtime. Why the timeline cannot, if it ends before.
    fn run_to(
        &mut self,
        end_ns: u64,
        witness: &mut Witness<'_>,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Option<String>> {
        while self.timeline.vtime() < end_ns {
            let next_ns = end_ns.min(self.timeline.vtime().saturating_add(GRID_NS));
            if let Some(why) = self.step(next_ns, witness, watch)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// Faults end, drivers stop, checks run, from here on. Why they cannot, if they cannot.
    fn checks(
        &mut self,
        from_ns: u64,
        witness: &mut Witness<'_>,
        watch: &mut dyn Watch,
    ) -> anyhow::Result<Option<String>> {
        let duration_ns = from_ns.saturating_sub(self.setting.root_ns);
        self.timeline.end_after(duration_ns);
        witness.calm(from_ns);
        let last_ns = self.setting.root_ns.saturating_add(checks_end_ns(&self.timeline, duration_ns));
        loop {
            let next_ns = self.timeline.vtime().saturating_add(GRID_NS);
            if let Some(why) = self.step(next_ns, witness, watch)? {
                return Ok(Some(why));
            }
            if self.timeline.phase() == Phase::Done {
                witness.over(self.timeline.vtime());
                return Ok(None);
            }
            if self.timeline.vtime() > last_ns {
                self.timeline.give_up("the checks did not end in time");
            }
        }
    }

    /// How one of the machines has failed, if one has: it executes nothing any more.
    #[must_use]
    pub fn failure(&self) -> Option<Failed> {
        let machines = self.timeline.world().nodes().iter().map(|node| node.machine());
        Failed::among(machines.filter_map(|machine| Some((machine.name(), machine.end()?))))
    }

    /// What a run came to, unless a machine has failed: that comes before all else, since it may be what led there.
    fn unless_failed<T>(&self, came: anyhow::Result<T>) -> anyhow::Result<T> {
        match self.failure() {
            Some(failed) => Err(failed.into()),
            None => came,
        }
    }

    fn machines(&mut self) -> impl Iterator<Item = &mut Machine<AnyEngine>> {
        self.timeline.world_mut().nodes_mut().map(|node| node.machine_mut())
    }

    /// The place where a segment ends, or its checks do.
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
        let stop = self.timeline.run(&Until::vtime(next_ns));
        let digest_ns = self.timeline.trail_cpu_ns() - trail_ns;
        self.spent.digest_ns += digest_ns;
        self.spent.guest_ns += clock.elapsed_ns().saturating_sub(digest_ns);
        let clock = CpuClock::start();
        witness.take(&mut self.timeline, &mut |event| watch.event(event));
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

/// The points of a branch's trail.
#[derive(Debug, Default)]
struct Marker {
    /// Points before the branch, and those that were taken.
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
    fn failures_are_the_hosts_and_the_engines() {
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

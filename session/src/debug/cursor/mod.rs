//! A timeline of a recorded branch that moves to any instant, forwards and backwards.
//!
//! Forwards, the timeline runs as in the exploration: it takes the forks of its path and runs the checks at its end.
//! Backwards, it restores an earlier moment and runs again. Breakpoints and watchpoints stop the run on any node. They
//! change nothing that a guest can observe.
//!
//! - [`position`]: an instant of one node
//! - [`moments`]: moments along the timeline, within a budget
//! - [`backwards`]: the last stop before an instant
//! - [`pieces`]: the search for that stop, on several cores
//! - `points`: breakpoints, watchpoints and other places where moves stop

mod backwards;
mod moments;
pub mod pieces;
mod points;
pub mod position;

use anyhow::Context as _;
use everett_cpu::WatchpointHit;
use everett_explorer::config::GRID_NS;
use everett_explorer::search::Path;
use everett_vmm::machine::{self, Until};
use everett_vmm::wire::log::FrameStep;
use everett_vmm::world::{Captured, Node};

use crate::explore::path_runner::{Failed, Interrupted};
use crate::explore::setting::Setting;
use crate::run::drive::checks_end_ns;
use crate::world::conversation::Phase;
use crate::world::event::Event;
use crate::world::timeline::Timeline;
use moments::Moments;
use points::Points;
use position::Position;

/// Vtime between two looks at the operator's wish to interrupt, in nanoseconds.
const LOOK_NS: u64 = GRID_NS;

/// End of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// All nodes have reached this vtime, in nanoseconds.
    Vtime(u64),
    /// A node has retired this number of instructions ([`Node::retired`]). In other clock modes than `insn`, counts
    /// that mode's unit.
    Count {
        /// Number of the node.
        node: usize,
        /// Number of instructions.
        count: u64,
    },
}

/// Reason why a move ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The aim was reached.
    Reached,
    /// The next instruction of this node is at a breakpoint.
    Breakpoint {
        /// Number of the node.
        node: usize,
    },
    /// The last instruction of this node accessed watched bytes.
    Access {
        /// Number of the node.
        node: usize,
        /// The accesses, in their order.
        hits: Vec<WatchpointHit>,
    },
    /// The last instruction, interrupt or exception of this node entered or left user mode.
    ModeChange {
        /// Number of the node.
        node: usize,
    },
    /// The timeline cannot continue, for this reason.
    End(String),
}

impl Stop {
    /// Returns the node that stopped at a place. `None` if none did.
    #[must_use]
    pub fn node(&self) -> Option<usize> {
        match self {
            Stop::Breakpoint { node } | Stop::Access { node, .. } | Stop::ModeChange { node } => Some(*node),
            Stop::Reached | Stop::End(_) => None,
        }
    }
}

/// Observer of a cursor that moves forwards.
pub trait Listener {
    /// Reports an event. An event is reported when all nodes have reached its vtime.
    fn event(&mut self, _: &Event) {}
    /// Reports the outcome of a frame on the wire. It is reported with the events of its vtime.
    fn message(&mut self, _: &FrameStep) {}
    /// Reports frames at the nodes' cards, in the order of their vtimes, if the cursor captures frames
    /// ([`Cursor::capture`]).
    fn frames(&mut self, _: &[Captured]) {}
    /// Returns false to end the move with the error [`Interrupted`].
    fn goes_on(&mut self) -> bool {
        true
    }
}

/// Listener that does nothing.
impl Listener for () {}

/// Listener that ends moves as soon as its function returns true.
pub struct Unless<'u>(pub &'u dyn Fn() -> bool);

impl Listener for Unless<'_> {
    fn goes_on(&mut self) -> bool {
        !(self.0)()
    }
}

/// A timeline that moves to any instant of a recorded branch.
pub struct Cursor<'s> {
    setting: &'s Setting,
    path: Path,
    end_ns: u64,
    timeline: Timeline,
    moments: Moments,
    /// Places where moves stop, of each node.
    points: Vec<Points>,
    /// Cursors on the same branch that search beside this one. They keep their machines for the next search.
    helpers: Vec<Cursor<'s>>,
    /// Vtime at which the cursor must act next ([`Cursor::act`]), in nanoseconds. 0 if that is not known.
    act_ns: u64,
    /// Vtime at which the checks are given up, if they have begun, in nanoseconds.
    give_up_ns: Option<u64>,
    /// Reason why the timeline cannot continue from where it is.
    over: Option<String>,
}

impl<'s> Cursor<'s> {
    /// Creates a cursor at the root moment of the branch `path`, which ends at the vtime `end_ns`. Moments along the
    /// timeline may use about `budget_bytes` bytes, and so may the machines of searches on further cores. Moments that such
    /// a search takes itself use at most half as much.
    ///
    /// # Errors
    /// Returns an error if the machines cannot be created.
    pub fn new(
        setting: &'s Setting,
        path: &Path,
        end_ns: u64,
        budget_bytes: u64,
    ) -> anyhow::Result<Cursor<'s>> {
        let mut timeline = setting.launcher.resume(&setting.ready)?;
        let first = *path.forks().first().context("the root moment is not a branch")?;
        let plan = setting.fates().plan(&Path::default().child(first)?);
        setting.launcher.go_to(&mut timeline, &setting.ready.moment, setting.ready.session.clone())?;
        timeline.apply_faults(Some(setting.faults(plan)))?;
        timeline.begin_as(first)?;
        timeline.begin(setting.seed)?;
        let mut cursor = Cursor::of(setting, path.clone(), end_ns, timeline, Moments::new(budget_bytes));
        cursor.keep_moment();
        Ok(cursor)
    }

    fn of(setting: &'s Setting, path: Path, end_ns: u64, timeline: Timeline, moments: Moments) -> Cursor<'s> {
        let points = timeline.world().nodes().iter().map(|_| Points::default()).collect();
        let (helpers, act_ns, give_up_ns, over) = (Vec::new(), 0, None, None);
        Cursor { setting, path, end_ns, timeline, moments, points, helpers, act_ns, give_up_ns, over }
    }

    /// Returns the timeline, to look into its machines.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns the setting in which the branch ran.
    pub(crate) fn setting(&self) -> &'s Setting {
        self.setting
    }

    /// Returns the path of the branch.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the digest of the world.
    pub fn digest(&mut self) -> everett_vmm::Digest {
        self.timeline.digest()
    }

    /// Returns the vtime at which the timeline ends, in nanoseconds.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Returns the vtime that all nodes have reached, in nanoseconds.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        self.timeline.vtime()
    }

    /// Returns where a node is.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn position(&self, node: usize) -> Position {
        let there = self.node(node);
        Position { vtime_ns: there.vtime(), node, count: there.retired() }
    }

    /// Returns the number of instructions that a node has retired at the start of the timeline.
    #[must_use]
    pub fn first_count(&self, node: usize) -> u64 {
        self.moments.first_count(node).unwrap_or(0)
    }

    fn node(&self, node: usize) -> &Node {
        &self.timeline.world().nodes()[node]
    }

    /// Switches the capture of frames for [`Listener::frames`] on or off.
    pub fn capture(&mut self, on: bool) {
        self.timeline.world_mut().capture(on);
    }

    /// Moves forwards until `aim` is reached, a breakpoint or watchpoint stops the run, or the timeline ends.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if `listener` ended the move, and [`Failed`] if the host or the engine failed. After the
    /// second error, the cursor cannot be used any more.
    pub fn run(&mut self, aim: Aim, listener: &mut dyn Listener) -> anyhow::Result<Stop> {
        let (to_ns, node, count) = match aim {
            Aim::Vtime(vtime_ns) => (vtime_ns.min(self.end_ns), 0, u64::MAX),
            Aim::Count { node, count } => (self.end_ns, node, count),
        };
        loop {
            if let Some(why) = &self.over {
                return Ok(Stop::End(why.clone()));
            }
            let now = self.timeline.vtime();
            if now >= to_ns {
                let is_there = aim == Aim::Vtime(to_ns);
                return Ok(if is_there { Stop::Reached } else { self.ended("it ends here") });
            }
            if now >= self.act_ns {
                self.act_ns = self.act(now)?;
            }
            let boundary_ns = self.act_ns.min(to_ns).min(self.moments.next_after(now)).min(now + LOOK_NS);
            let until = Until { icount: count, ..Until::vtime(boundary_ns) };
            let (stopped, stop) = self.timeline.run_node(node, &until);
            self.unless_failed()?;
            self.report(listener);
            let stopped = stopped.unwrap_or(node);
            if !listener.goes_on() {
                return Err(Interrupted.into());
            }
            match stop {
                machine::Stop::Count => return Ok(Stop::Reached),
                machine::Stop::Breakpoint => return Ok(Stop::Breakpoint { node: stopped }),
                machine::Stop::ModeChange => return Ok(Stop::ModeChange { node: stopped }),
                machine::Stop::Watchpoint => {
                    let hits = self.timeline.machine_mut(stopped).take_accesses();
                    return Ok(Stop::Access { node: stopped, hits });
                }
                machine::Stop::End(end) => return Ok(self.ended(&end.to_string())),
                _ if self.timeline.phase() == Phase::Broken => {
                    return Ok(self.ended("a machine or its agent cannot be used any more"));
                }
                _ => {}
            }
            if self.moments.wants(self.timeline.vtime(), self.timeline.icount()) {
                self.keep_moment();
            }
        }
    }

    /// Takes a fork and begins the checks, if either is due at the vtime `now`. Returns the vtime at which the cursor
    /// must act next, in nanoseconds.
    fn act(&mut self, now: u64) -> anyhow::Result<u64> {
        let fates = self.setting.fates();
        let here = self.timeline.path().clone();
        let next = self.path.forks().get(here.forks().len()).copied();
        if let Some(fork) = next {
            if fork.vtime_ns > now {
                return Ok(fork.vtime_ns);
            }
            let child = here.child(fork)?;
            self.timeline.fork(fork, Some(self.setting.faults(fates.plan(&child))))?;
            return self.act(now);
        }
        let end = fates.end(&here).context("the root moment is not a branch")?;
        if now < end.at_ns {
            return Ok(end.at_ns);
        }
        if let Some(give_up_ns) = self.give_up_ns {
            if now >= give_up_ns {
                self.timeline.give_up("the checks did not end in time");
                return Ok(u64::MAX);
            }
            return Ok(give_up_ns);
        }
        if end.checked {
            let duration_ns = now.saturating_sub(self.setting.root_ns);
            self.timeline.end_after(duration_ns);
            let last_ns = self.setting.root_ns.saturating_add(checks_end_ns(&self.timeline, duration_ns));
            // Explorations look at the time limit at multiples of the grid after the end of the segment.
            let grids = (last_ns.saturating_sub(now) / GRID_NS).saturating_add(1);
            self.give_up_ns = Some(now.saturating_add(grids.saturating_mul(GRID_NS)));
        }
        Ok(self.give_up_ns.unwrap_or(u64::MAX))
    }

    fn ended(&mut self, why: &str) -> Stop {
        self.over = Some(why.to_owned());
        Stop::End(why.to_owned())
    }

    /// Passes events to the listener, and drops everything else that machines and wire keep for observers.
    fn report(&mut self, listener: &mut dyn Listener) {
        for event in self.timeline.take_events() {
            listener.event(&event);
        }
        for node in 0..self.timeline.world().nodes().len() {
            let machine = self.timeline.machine_mut(node);
            machine.output().take_console();
            machine.take_edges();
        }
        let frames = self.timeline.world_mut().take_captured();
        if !frames.is_empty() {
            listener.frames(&frames);
        }
        for step in self.timeline.world_mut().wire().take_steps() {
            listener.message(&step);
        }
    }

    /// Returns an error if a machine has failed.
    fn unless_failed(&self) -> anyhow::Result<()> {
        match Failed::of(&self.timeline) {
            Some(failed) => Err(failed.into()),
            None => Ok(()),
        }
    }
}

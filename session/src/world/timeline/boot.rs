//! The boot of a world from power-on to *ready*, when all services are up, and the beginning of its timeline under a
//! seed.
//!
//! Everything up to *ready* happens under the boot seed, so one boot serves all seeds. At *ready* the timeline begins
//! under the operator's seed. The random streams of machines and wire restart, and each guest gets a new VM generation
//! ID. The agents (Everett's program in each guest) reseed their kernels and start the drivers, i.e. the programs of
//! the workload.

use everett_input::units::Vtime;
use everett_snapshot::Pool;
use everett_streams::Seed;
use everett_vmm::machine::{Stop, Until};
use everett_world_file::After;

use super::boot_watch::BootWatch;
use super::faults::FaultProgress;
use super::{NodeSession, Phase, Timeline};
use crate::world::event::{Event, What};
use crate::world::timeline::restart_point::RestartPoint;

/// Interval at which a boot asks its caller whether to continue, in nanoseconds of vtime.
const STEP_NS: u64 = 20_000_000;

/// Error of a boot.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// A node cannot become ready any more.
    #[error("node {node} does not get ready: {why}")]
    Useless {
        /// Name of the node.
        node: String,
        /// Reason, in one line.
        why: String,
        /// Last output lines of the node's services. Each line begins with the service's name.
        lines: Vec<String>,
    },
    /// The agent in the guest could not write a file that the world file declares. The world file is wrong, not the
    /// machine.
    #[error("node \"{node}\": files.\"{path}\": {why}")]
    File {
        /// Name of the node.
        node: String,
        /// Path in the guest.
        path: String,
        /// Answer of the agent.
        why: String,
    },
    /// The caller interrupted the boot.
    #[error("interrupted before the world was ready, {state}")]
    Interrupted {
        /// State of the boot: vtime, node and service.
        state: String,
    },
}

/// Point in a boot at which the caller is asked whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The node with this index has reached its restart point: its kernel and agent run, and its root file system is
    /// mounted, but no service has started.
    RestartPoint(usize),
    /// Any other point.
    Somewhere,
}

/// Error of a second call of [`Timeline::begin`], with the seed of the first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the timeline has begun already, under seed {0}")]
pub struct BegunAlready(pub Seed);

impl Timeline {
    /// Begins the timeline under `seed`, at once if all services are ready, otherwise as soon as they are.
    ///
    /// # Errors
    /// Returns an error if this function was called before.
    pub fn begin(&mut self, seed: Seed) -> Result<(), BegunAlready> {
        if let Some(first) = self.seed() {
            return Err(BegunAlready(first));
        }
        self.course.begin_with = Some(seed);
        if self.phase() == Phase::Ready {
            self.act();
        }
        Ok(())
    }

    /// Returns the seed under which the timeline has begun or will begin.
    #[must_use]
    pub fn seed(&self) -> Option<Seed> {
        self.course.seed()
    }

    /// Limits the boot of each node to [`BOOT_NS_MAX`](super::BOOT_NS_MAX) from the current vtime. If a node exceeds
    /// the limit, the timeline ends with a finding.
    pub fn limit_boot(&mut self) {
        let now = self.world.vtime();
        for session in &mut self.nodes {
            session.limit_boot(now);
        }
    }

    /// Runs until the timeline is in `phase`, which must be [`Phase::Mounted`] or [`Phase::Ready`].
    ///
    /// With one node, the machine stops right after the instruction with which the agent reported the phase, before
    /// Everett acts on the report. `run_to` calls `go_on` at each node's restart point and every 20 ms of vtime.
    /// `go_on` may take events and console output.
    ///
    /// # Errors
    /// Returns an error if the world cannot reach the phase, or if `go_on` returns false. If `go_on` returned false,
    /// the caller may call `run_to` again.
    pub fn run_to(
        &mut self,
        phase: Phase,
        go_on: &mut dyn FnMut(&mut Timeline, At) -> bool,
    ) -> Result<(), BootError> {
        self.limit_boot();
        let mut mounted = vec![false; self.nodes.len()];
        loop {
            for (node, seen) in mounted.iter_mut().enumerate() {
                let there = self.nodes[node].conversation.phase() == Phase::Mounted;
                if there && !std::mem::replace(seen, true) && !go_on(self, At::RestartPoint(node)) {
                    return Err(self.interrupted_boot());
                }
            }
            if let Some(error) = self.refused_file().or_else(|| self.useless()) {
                return Err(error);
            }
            if self.phase() >= phase {
                return Ok(());
            }
            // `run::drive` ends its steps at the same vtimes as `run_to`, so both give up a boot at the same vtime.
            let next_ns = self.world.vtime().saturating_add(1).next_multiple_of(STEP_NS);
            let is_mounted = |session: &NodeSession| session.conversation.phase() == Phase::Mounted;
            let wanted = |timeline: &Timeline| {
                let new =
                    timeline.nodes.iter().zip(&mounted).any(|(session, seen)| is_mounted(session) && !seen);
                new || timeline.phase() >= phase
            };
            let stop = self.run_until(0, &Until::vtime(next_ns), &wanted);
            if self.phase() < phase && !matches!(stop, Stop::End(_)) && !go_on(self, At::Somewhere) {
                return Err(self.interrupted_boot());
            }
            self.give_up_hopeless_boot();
        }
    }

    /// Sets the limit for services that end again and again during the boot. After a service has ended `limit` times in
    /// a row in the same way, the boot ends with a finding, unless a later start may still succeed (see `boot_watch`).
    /// A limit of 0 allows any number of ends.
    pub fn limit_ends(&mut self, limit: u32) {
        let scripts = self.nodes.iter().map(|session| session.conversation.script());
        self.boot_watch = Some(BootWatch::new(scripts, limit));
    }

    /// Passes events to the [`BootWatch`], if there is one.
    pub(super) fn watch_events_of_boot(&mut self, events: &[Event]) {
        if let Some(watch) = &mut self.boot_watch {
            self.boot_notes.extend(watch.note(events));
        }
    }

    /// Takes the lines that tell the operator about repeated ends of services.
    pub fn take_boot_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.boot_notes)
    }

    /// Ends the boot with a finding if a service that the world needs ends again and again. Returns true in this case.
    ///
    /// Call this function after [`Timeline::take_events`]. All callers run the boot in steps that end at multiples of
    /// 20 ms of vtime, so that all of them give up a boot at the same vtime.
    pub fn give_up_hopeless_boot(&mut self) -> bool {
        if self.ready_ns().is_some() {
            self.boot_watch = None;
            return false;
        }
        let Some(hopeless) = self.boot_watch.as_ref().and_then(BootWatch::hopeless) else {
            return false;
        };
        let now = self.world.vtime();
        let mut nodes = self.nodes.iter_mut().enumerate();
        let of_name = nodes.find(|(_, session)| session.conversation.script().node == hopeless.node);
        let Some((number, session)) = of_name else { return false };
        let is_new = session.conversation.phase() < Phase::Broken;
        if is_new {
            session.conversation.boot_is_hopeless(now, &hopeless.why);
            self.reporting.of_node(number, session.conversation.take_events());
        }
        is_new
    }

    /// Describes the boot in a few words: the vtime, and the first node that is not ready. Says what this node waits
    /// for and how often its services have ended.
    #[must_use]
    pub fn boot_state(&self) -> String {
        let at = format!("at {} s of vtime", Vtime(self.vtime()).to_string().trim());
        let waiting = |session: &&NodeSession| session.conversation.phase() < Phase::Ready;
        let mut late = self.nodes.iter().filter(waiting);
        let Some(first) = late.next() else { return at };
        let node = &first.conversation.script().node;
        let ends = self.boot_watch.as_ref().and_then(|watch| watch.ends_of(node));
        let ends = ends.map_or(String::new(), |ends| format!("; {ends}"));
        let others = match late.count() {
            0 => String::new(),
            1 => "; another node is not ready either".to_owned(),
            count => format!("; {count} other nodes are not ready either"),
        };
        format!("{at}: node {node}: {}{ends}{others}", first.conversation.waits_for())
    }

    fn interrupted_boot(&self) -> BootError {
        BootError::Interrupted { state: self.boot_state() }
    }

    /// Saves a node at its restart point. Everett later restarts the node from the saved state. Call this function only
    /// while the node is in phase [`Phase::Mounted`].
    pub fn restart_point(&mut self, node: usize, pool: &Pool) -> RestartPoint {
        let conversation = self.nodes[node].conversation.save();
        RestartPoint { machine: self.machine_mut(node).moment(pool), conversation }
    }

    /// Returns the error of a file that a node refused to create, or `None` once the world is ready. A refusal after
    /// that, at a restart, can have causes outside the world file, such as a full disk.
    #[must_use]
    pub fn refused_file(&self) -> Option<BootError> {
        let mut nodes = self.nodes.iter().filter(|_| self.ready_ns().is_none());
        nodes.find_map(|session| {
            let (path, why) = session.conversation.refused_file()?;
            let node = session.conversation.script().node.clone();
            Some(BootError::File { node, path: path.to_owned(), why: why.to_owned() })
        })
    }

    /// Returns the reason why the world cannot become ready, if there is one.
    fn useless(&self) -> Option<BootError> {
        let broken = self.nodes.iter().find_map(|session| match session.conversation.phase() {
            Phase::Broken => Some((session, session.conversation.broken_because().unwrap_or("it broke"))),
            Phase::Done => Some((session, "it was told to power off")),
            _ => None,
        });
        broken.map(|(session, why)| BootError::Useless {
            node: session.conversation.script().node.clone(),
            why: why.to_owned(),
            lines: self
                .boot_watch
                .as_ref()
                .map(|watch| watch.last_lines(&session.conversation.script().node))
                .unwrap_or_default(),
        })
    }

    /// Starts the services of each waiting node if the nodes for which it waits have reached the required state. After
    /// the beginning of the timeline no node waits, so a restarted machine starts its services at once.
    pub(super) fn start_in_order(&mut self, now: u64) {
        for number in 0..self.nodes.len() {
            let conversation = &self.nodes[number].conversation;
            if !conversation.is_held() {
                continue;
            }
            let has_begun = self.nodes[number].course.begun.is_some();
            let is_reached = |after: &After| {
                let mut others = self.nodes.iter().map(|session| &session.conversation);
                // If only some nodes were started, no node waits for a node that was not started.
                others.find(|other| other.script().node == after.node).is_none_or(|other| match after.ready {
                    true => other.phase() >= Phase::Ready && other.phase() < Phase::Broken,
                    false => other.has_started(),
                })
            };
            if has_begun || conversation.script().after.iter().all(is_reached) {
                self.nodes[number].conversation.start_services(has_begun, now);
            }
        }
    }

    /// Begins the timeline under `seed` at the current vtime.
    ///
    /// # Errors
    /// Returns an error of one line if the test template is invalid. No driver has been started in this case.
    pub(super) fn begin_here(&mut self, seed: Seed) -> Result<(), String> {
        self.course.begun = Some(seed);
        let lineage = self.lineage();
        self.course.faults = self.faults.as_ref().map(|faults| FaultProgress::new(&lineage, faults.digest()));
        let vtime_ns = self.vtime();
        self.reporting.of_host([Event { vtime_ns, node: String::new(), what: What::Begin { seed } }]);
        self.restart_streams(&lineage);
        let commands = self.begin_commands(&lineage);
        if let Some(fork) = self.course.fork_with.take() {
            self.branch(fork);
        }
        commands?;
        for (number, session) in self.nodes.iter_mut().enumerate() {
            session.begin(self.world.node_mut(number), seed);
        }
        Ok(())
    }
}

//! From power-on to a timeline under a seed.
//!
//! Everything up to *ready* happens under the boot seed, so one boot serves all seeds. There the timeline begins: the
//! machines' and the wire's random streams take the user's seed, each guest's VM generation ID changes, and its kernel is
//! reseeded through the agent; when that is done its drivers start.

use everett_snapshot::Pool;
use everett_vmm::machine::{Stop, Until};

use super::faults::Progress;
use super::{NodeSession, Phase, Timeline};
use crate::event::{Event, What};
use crate::timeline::restart_point::RestartPoint;

/// Whoever waits for a boot gets a word after so much vtime.
const STEP_NS: u64 = 20_000_000;

/// Why a world did not get where it was wanted.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// It cannot get there any more.
    #[error("node {node} does not get ready: {why}")]
    Useless {
        /// Which.
        node: String,
        /// What was found.
        why: String,
    },
    /// A file of the world file cannot be put into the guest: the world is wrong, not the machine.
    #[error("node \"{node}\": files.\"{path}\": {why}")]
    File {
        /// The node.
        node: String,
        /// The path in the guest.
        path: String,
        /// The agent's answer.
        why: String,
    },
    /// Somebody wanted an end.
    #[error("interrupted")]
    Interrupted,
}

/// Where somebody who waits for a boot is asked whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A node is at its restart point.
    RestartPoint(usize),
    /// Somewhere.
    Somewhere,
}

/// A timeline begins once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the timeline has begun already, under seed {0}")]
pub struct BegunAlready(pub u64);

impl Timeline {
    /// Begin under `seed`: here if the services are ready, else where they will be.
    ///
    /// # Errors
    /// It has begun, or is to begin under another seed.
    pub fn begin(&mut self, seed: u64) -> Result<(), BegunAlready> {
        if let Some(first) = self.seed() {
            return Err(BegunAlready(first));
        }
        self.course.begin_with = Some(seed);
        if self.phase() == Phase::Ready {
            self.act();
        }
        Ok(())
    }

    /// The seed under which it has begun or will.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.course.begun.or(self.course.begin_with)
    }

    /// A node that is not ready in [`BOOT_NS_MAX`](super::BOOT_NS_MAX) from here will not be: that is a finding, and ends the
    /// timeline.
    pub fn limit_boot(&mut self) {
        let now = self.world.vtime();
        for session in &mut self.nodes {
            session.limit_boot(now);
        }
    }

    /// Run until the timeline is in `phase`, which is [`Phase::Mounted`] or [`Phase::Ready`]. In a world of one the machine
    /// stops right after the instruction with which the agent said so, before the host has done anything about it. `go_on`
    /// is asked every few milliseconds of host time, and at each node's restart point; it may take events and consoles.
    ///
    /// # Errors
    /// The world does not get there, or `go_on` says no; then it may be called again.
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
                    return Err(BootError::Interrupted);
                }
            }
            if let Some(error) = self.refused_file().or_else(|| self.useless()) {
                return Err(error);
            }
            if self.phase() >= phase {
                return Ok(());
            }
            let next_ns = self.world.vtime().saturating_add(STEP_NS);
            let is_mounted = |session: &NodeSession| session.conversation.phase() == Phase::Mounted;
            let wanted = |timeline: &Timeline| {
                let new =
                    timeline.nodes.iter().zip(&mounted).any(|(session, seen)| is_mounted(session) && !seen);
                new || timeline.phase() >= phase
            };
            let stop = self.run_until(0, &Until::vtime(next_ns), &wanted);
            if self.phase() < phase && !matches!(stop, Stop::End(_)) && !go_on(self, At::Somewhere) {
                return Err(BootError::Interrupted);
            }
        }
    }

    /// Take the restart point of a node, which is there.
    pub fn restart_point(&mut self, node: usize, pool: &Pool) -> RestartPoint {
        let conversation = self.nodes[node].conversation.save();
        RestartPoint { machine: self.machine_mut(node).moment(pool), conversation }
    }

    /// The file of a node that was refused before the world was ready. Later it is the machine's: its disk may have become full.
    #[must_use]
    pub fn refused_file(&self) -> Option<BootError> {
        let mut nodes = self.nodes.iter().filter(|_| self.ready_ns().is_none());
        nodes.find_map(|session| {
            let (path, why) = session.conversation.refused_file()?;
            let node = session.conversation.plan().node.clone();
            Some(BootError::File { node, path: path.to_owned(), why: why.to_owned() })
        })
    }

    /// Why the world cannot get ready.
    fn useless(&self) -> Option<BootError> {
        let broken = self.nodes.iter().find_map(|session| match session.conversation.phase() {
            Phase::Broken => Some((session, session.conversation.broken_because().unwrap_or("it broke"))),
            Phase::Done => Some((session, "it was told to power off")),
            _ => None,
        });
        broken.map(|(session, why)| BootError::Useless {
            node: session.conversation.plan().node.clone(),
            why: why.to_owned(),
        })
    }

    /// Begin under `seed`.
    ///
    /// # Errors
    /// The nodes' test template is none: why, in one line. Nothing has been started then.
    pub(super) fn begin_here(&mut self, seed: u64) -> Result<(), String> {
        self.course.begun = Some(seed);
        let lineage = self.lineage();
        self.course.faults = self.faults.as_ref().map(|faults| Progress::new(&lineage, faults.digest()));
        let vtime_ns = self.vtime();
        self.telling.of_host([Event { vtime_ns, node: String::new(), what: What::Begin { seed } }]);
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

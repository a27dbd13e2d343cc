//! Forks: a timeline continues from its current moment as a child, i.e. as a new branch with the same past and a
//! different future.
//!
//! After the fork, every random stream of the world restarts with a key that is derived from the seed and the child's
//! path. The guest kernels' own random numbers change too: each guest gets a new VM generation ID, and its agent
//! (Everett's program in the guest) reseeds the kernel. A timeline that continues without a fork keeps its streams.
//!
//! **Invariant.** A fork lies at a stop of the whole world, before Everett performs the actions (e.g. faults) that are
//! due at this vtime. The child's fault plan therefore decides these actions.

use everett_explorer::search::{Fork, Path, PathError};

use super::director::Stage;
use super::{Event, Faults, OtherPlan, Phase, Timeline};
use crate::world::event::What;

/// Error of a timeline that cannot become this child.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// The fork is at another vtime than the timeline.
    #[error("the timeline is at {here} ns of vtime, the fork is {fork}")]
    Elsewhere {
        /// Vtime of the timeline, in nanoseconds.
        here: u64,
        /// Requested fork.
        fork: Fork,
    },
    /// [`Timeline::begin_as`] was called after the timeline had begun, or [`Timeline::fork`] was called while the
    /// workload did not run.
    #[error("a timeline can become a child only where it begins or while its workload runs")]
    Stage,
    /// The child's plan differs from the timeline's plan before the fork.
    #[error(transparent)]
    Plan(#[from] OtherPlan),
    /// The child's path is invalid.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Timeline {
    /// Sets the fork with which the timeline begins, as a child of the root moment. Call this before the timeline
    /// begins.
    ///
    /// # Errors
    /// Returns an error if the timeline has begun or the fork is invalid.
    pub fn begin_as(&mut self, fork: Fork) -> Result<(), ForkError> {
        if self.course.begun.is_some() {
            return Err(ForkError::Stage);
        }
        Path::default().child(fork)?;
        self.course.fork_with = Some(fork);
        Ok(())
    }

    /// Makes the timeline a child at the current vtime. `faults` must equal the old plan up to here.
    ///
    /// # Errors
    /// Returns an error if the fork is at another vtime or the path is invalid. Also returns an error if the workload
    /// does not run, or if the plans differ before the fork.
    pub fn fork(&mut self, fork: Fork, faults: Option<Faults>) -> Result<(), ForkError> {
        if fork.vtime_ns != self.vtime() {
            return Err(ForkError::Elsewhere { here: self.vtime(), fork });
        }
        if !matches!(self.course.stage, Stage::Running { .. }) || self.phase() == Phase::Broken {
            return Err(ForkError::Stage);
        }
        self.course.path.child(fork)?;
        match (&mut self.course.faults, &self.faults, &faults) {
            (Some(progress), Some(old), Some(new)) if old.agrees_with(new, &progress.cursor) => {
                progress.digest = new.digest();
            }
            (None, None, None) => {}
            _ => return Err(OtherPlan.into()),
        }
        self.faults = faults;
        self.branch(fork);
        for (number, session) in self.nodes.iter_mut().enumerate() {
            let node = self.world.node_mut(number);
            if !node.is_on() {
                continue;
            }
            session.new_generation(node);
            // A node in a phase before `Running` needs no request. A booting node draws entropy later, from the child's
            // streams. In phase `Beginning`, the agent is already reseeding the kernel, with entropy from before the
            // fork. The new VM generation ID still changes the kernel's random numbers.
            if session.conversation.phase() >= Phase::Running {
                session.reseed(node);
            }
        }
        Ok(())
    }

    /// Returns the forks that this timeline has taken.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.course.path
    }

    /// Adds the fork to the path and restarts every random stream with a key of the new path.
    pub(super) fn branch(&mut self, fork: Fork) {
        // The caller has already checked the path.
        self.course.path = self.course.path.child(fork).unwrap_or_default();
        self.restart_streams(&self.lineage());
        self.fork_commands();
        let path = self.course.path.to_string();
        let event = Event { vtime_ns: fork.vtime_ns, node: String::new(), what: What::Fork { path } };
        self.reporting.of_host([event]);
    }
}

//! Forks: a timeline becomes a child of its current moment, with the same past and a different future.
//!
//! Random draws after the fork follow the child's key. Every stream of the world restarts under it. So do the guest
//! kernels' own random numbers: each guest gets a new VM generation ID and is reseeded through its agent. Continuing a
//! timeline does none of this.
//!
//! **Invariant.** A fork lies at a stop of the whole world, before Everett acts there: the child's plan decides the
//! actions at its vtime.

use everett_explorer::search::{Fork, Path, PathError};

use super::director::Stage;
use super::{Event, Faults, OtherPlan, Phase, Timeline};
use crate::world::event::What;

/// Error of a timeline that cannot become a child.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// The timeline is not at the fork's vtime.
    #[error("the timeline is at {here} ns of vtime, the fork is {fork}")]
    Elsewhere {
        /// vtime of the timeline, in nanoseconds.
        here: u64,
        /// The requested fork.
        fork: Fork,
    },
    /// The timeline has begun already, or its workload does not run.
    #[error("a timeline can become a child only where it begins or while its workload runs")]
    Stage,
    /// The plan differs from the timeline's plan before the fork.
    #[error(transparent)]
    Plan(#[from] OtherPlan),
    /// The child's path is invalid.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Timeline {
    /// Makes the timeline begin as this child of the root moment. Call it before the timeline begins.
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

    /// Becomes a child here, under a plan that equals the old one up to here.
    ///
    /// # Errors
    /// Returns an error if the fork is at another vtime, the workload does not run, or the plans or the path do not
    /// fit.
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
            // A node that is booting draws its entropy when it joins. A node that is beginning has drawn it already.
            if session.conversation.phase() >= Phase::Running {
                session.reseed(node);
            }
        }
        Ok(())
    }

    /// Returns the path of this timeline: its forks so far.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.course.path
    }

    /// Restarts every stream of the timeline under the child's lineage.
    pub(super) fn branch(&mut self, fork: Fork) {
        // The caller has checked that the path is valid.
        self.course.path = self.course.path.child(fork).unwrap_or_default();
        self.restart_streams(&self.lineage());
        self.fork_commands();
        let path = self.course.path.to_string();
        let event = Event { vtime_ns: fork.vtime_ns, node: String::new(), what: What::Fork { path } };
        self.reporting.of_host([event]);
    }
}

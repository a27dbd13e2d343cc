//! A timeline becomes a child of its moment: the same past, another future.
//!
//! What is drawn from the fork on follows the child's key: every stream of the world restarts under it, and so does what the guests'
//! kernels draw: they are told of a new VM generation, and reseeded through their agents. Continuing a timeline does none of this.
//!
//! **Invariant.** A fork lies at a stop of the whole world, before the host does anything there: the child's plan decides what is
//! done at its vtime.

use everett_explorer::search::{Fork, Path, PathError};

use super::director::Stage;
use super::{Event, Faults, OtherPlan, Phase, Timeline};
use crate::event::What;

/// Why a timeline cannot become a child.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// It is somewhere else.
    #[error("the timeline is at {here} ns of vtime, the fork is {fork}")]
    Elsewhere {
        /// Where it is.
        here: u64,
        /// The fork.
        fork: Fork,
    },
    /// It has begun, or ended.
    #[error("a timeline becomes a child where it begins, or while its workload runs")]
    Stage,
    /// The plan is not the timeline's up to here.
    #[error(transparent)]
    Plan(#[from] OtherPlan),
    /// The path.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Timeline {
    /// Begin as this child of the root moment: to be said before it begins.
    ///
    /// # Errors
    /// It has begun.
    pub fn begin_as(&mut self, fork: Fork) -> Result<(), ForkError> {
        if self.course.begun.is_some() {
            return Err(ForkError::Stage);
        }
        Path::default().child(fork)?;
        self.course.fork_with = Some(fork);
        Ok(())
    }

    /// Become a child here, under a plan that is the old one up to here.
    ///
    /// # Errors
    /// The fork is somewhere else, or the workload does not run.
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
            // One that boots draws its randomness when it joins; one that has just begun has.
            if session.conversation.phase() >= Phase::Running {
                session.reseed(node);
            }
        }
        Ok(())
    }

    /// The forks behind this timeline.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.course.path
    }

    /// Every stream of the timeline restarts under the child's lineage.
    pub(super) fn branch(&mut self, fork: Fork) {
        // It was looked at before.
        self.course.path = self.course.path.child(fork).unwrap_or_default();
        self.restart_streams(&self.lineage());
        self.fork_commands();
        let path = self.course.path.to_string();
        let event = Event { vtime_ns: fork.vtime_ns, node: String::new(), what: What::Fork { path } };
        self.telling.of_host([event]);
    }
}

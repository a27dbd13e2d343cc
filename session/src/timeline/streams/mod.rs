//! The streams of a timeline: who has which, and how all of them restart.
//!
//! **Invariant.** After a restart every value that is drawn follows the new lineage. An owner that is added to
//! [`OwnerKind`] must be decided about here, or nothing compiles.

use everett_streams::{Lineage, Owner, OwnerKind, Streams};

use super::Timeline;

impl Timeline {
    /// The lineage of the timeline: that of its seed and of the forks behind it. Before it begins, of seed 0.
    pub(super) fn lineage(&self) -> Lineage {
        self.course.path.lineage(self.course.begun.unwrap_or_default())
    }

    /// Restarts all streams of the timeline under this lineage: where it begins, and where it becomes a child.
    pub(super) fn restart_streams(&mut self, lineage: &Lineage) {
        for owner in OwnerKind::ALL {
            match owner {
                OwnerKind::Node => {
                    self.world.nodes_mut().for_each(|node| node.machine_mut().restart_streams(lineage));
                }
                OwnerKind::Wire => self.world.wire().restart_streams(lineage),
                // A fork lies where there is no endpoint: one that is made later draws from these.
                OwnerKind::Host => self.course.host = Streams::new(lineage, Owner::Host),
                OwnerKind::Faults => {
                    if let Some(progress) = &mut self.course.faults {
                        progress.streams = Streams::new(lineage, Owner::Faults);
                    }
                }
                OwnerKind::Composer => {
                    if let Some(commands) = &mut self.course.commands {
                        commands.streams = Streams::new(lineage, Owner::Composer);
                    }
                }
                // No timeline has these: they are drawn from where its path is known.
                OwnerKind::Fates | OwnerKind::Plan | OwnerKind::Search => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;

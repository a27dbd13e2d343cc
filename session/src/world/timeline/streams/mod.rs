//! Random streams of a timeline: their owners, and their restart.
//!
//! **Invariant.** After a restart, every value that is drawn follows the new lineage. An owner that is added to
//! [`OwnerKind`] must be handled here; the `match` does not compile otherwise.

use everett_streams::{Lineage, Owner, OwnerKind, Streams};

use super::Timeline;

impl Timeline {
    /// Returns the timeline's lineage: that of its seed and its forks. Before the timeline begins, the seed is 0.
    pub(super) fn lineage(&self) -> Lineage {
        self.course.path.lineage(self.course.begun.unwrap_or_default())
    }

    /// Restarts all streams of the timeline under this lineage. Called when the timeline begins and when it becomes a
    /// child.
    pub(super) fn restart_streams(&mut self, lineage: &Lineage) {
        for owner in OwnerKind::ALL {
            match owner {
                OwnerKind::Node => {
                    self.world.nodes_mut().for_each(|node| node.machine_mut().restart_streams(lineage));
                }
                OwnerKind::Wire => self.world.wire().restart_streams(lineage),
                // Everett has no endpoint on the wire at a fork. Endpoints that it makes later draw from these streams.
                OwnerKind::Endpoint => self.course.host = Streams::new(lineage, Owner::Endpoint),
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
                // A timeline holds no streams of these owners: their values are drawn by code that knows the path.
                OwnerKind::Fates | OwnerKind::Plan | OwnerKind::Search => {}
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;

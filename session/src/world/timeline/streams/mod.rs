//! Streams of random numbers of a timeline. They restart when the timeline begins, and at each fork: there the timeline
//! becomes a child, i.e. it continues as a new branch with other random numbers.
//!
//! **Invariant.** After a restart, every random value follows the new lineage, which is the key derived from the seed
//! and the forks. The `match` below does not compile if it lacks an [`OwnerKind`].

use everett_streams::{Lineage, Owner, OwnerKind, Streams};

use super::Timeline;

impl Timeline {
    /// Returns the lineage of the timeline, from its seed and its forks. Before the timeline begins, the seed is 0.
    pub(super) fn lineage(&self) -> Lineage {
        self.course.path.lineage(self.course.begun.unwrap_or_default())
    }

    /// Restarts all streams of the timeline under `lineage`, when the timeline begins and when it becomes a child.
    pub(super) fn restart_streams(&mut self, lineage: &Lineage) {
        for owner in OwnerKind::ALL {
            match owner {
                OwnerKind::Node => {
                    self.world.nodes_mut().for_each(|node| node.machine_mut().restart_streams(lineage));
                }
                OwnerKind::Wire => self.world.wire().restart_streams(lineage),
                // An endpoint is Everett's own TCP/IP stack on the wire. None exists at a fork. Endpoints that
                // Everett creates later draw from these streams.
                OwnerKind::Endpoint => self.course.endpoint_streams = Streams::new(lineage, Owner::Endpoint),
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
                // These owners are parts of the explorer and the command `everett plan`. They have no streams in
                // a timeline.
                OwnerKind::Fates | OwnerKind::Plan | OwnerKind::Search => {}
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;

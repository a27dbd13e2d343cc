//! Copies of disks as a power loss would leave them. The timeline does not change.

use everett_streams::{Lineage, Owner, Seed, Streams};
use everett_vmm::disk::{Disk, LossMode, PowerLoss, PowerLossOptions};

use super::stream_number;
use crate::world::timeline::Timeline;

/// Choice of one of the outcomes that a power loss can have.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// Options of the power loss.
    pub options: PowerLossOptions,
    /// Seed of the draw. With `None`, the draw is that of the fault `power_loss` on this timeline at this instant.
    pub seed: Option<Seed>,
    /// Rule by which versions of sectors survive. With `None`, the rule is drawn, too, as the fault does.
    pub mode: Option<LossMode>,
}

impl Timeline {
    /// Returns a copy of disk number `disk` of a node as a power loss at this instant would leave it, and what the copy
    /// lost. Returns `None` if the node has no such disk. Also returns `None` if the timeline has not begun under a
    /// fault plan and `outcome` has no seed, because the fault would draw nothing then.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn disk_after_power_loss(
        &self,
        node: usize,
        disk: usize,
        outcome: &Outcome,
    ) -> Option<(Disk, PowerLoss)> {
        let mut streams = match outcome.seed {
            Some(seed) => Streams::new(&Lineage::new(seed), Owner::Faults),
            None => self.course.faults.as_ref()?.streams.clone(),
        };
        let Outcome { options, mode, .. } = *outcome;
        self.machine(node).after_power_loss(disk, &mut streams, stream_number(node), options, mode)
    }
}

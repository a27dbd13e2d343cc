//! A moment of the tree: a timeline at the end of a branch, from which other branches continue.

use everett_snapshot::{Image, PAGE, Pool};
use everett_vmm::machine::Moment;
use everett_vmm::world::WorldMoment;

use super::witness::Inherited;
use crate::timeline::{SessionState, Timeline};

/// Approximate size of a moment besides its pages, in bytes: sessions, devices, observer state.
const OVERHEAD_BYTES: u64 = 256 << 10;

/// A timeline at the end of a branch.
#[derive(Debug)]
pub struct BranchMoment {
    /// The world.
    pub world: WorldMoment,
    /// Session: everything else that decides how the timeline continues.
    pub session: SessionState,
    /// Observer state at this moment.
    pub memory: Inherited,
}

impl BranchMoment {
    /// Returns the current state of `timeline`, with its observer state.
    pub fn of(timeline: &mut Timeline, pool: &Pool, memory: Inherited) -> BranchMoment {
        let session = timeline.save();
        BranchMoment { world: timeline.world_mut().moment(pool), session, memory }
    }

    /// Returns the approximate number of bytes that are freed when this moment is dropped and `parent` is kept.
    #[must_use]
    pub fn bytes_beyond(&self, parent: &WorldMoment) -> u64 {
        let machines = self.world.machines.iter().zip(&parent.machines);
        let pages = machines.map(|(here, there)| pages_beyond(here, there)).fold(0, u64::saturating_add);
        pages.saturating_mul(PAGE as u64).saturating_add(OVERHEAD_BYTES)
    }
}

fn pages_beyond(here: &Moment, there: &Moment) -> u64 {
    let disks = here.disks().iter().zip(there.disks());
    let disks = disks.map(|(here, there)| differing(&here.blocks, &there.blocks));
    differing_images(here.memory(), there.memory()) + disks.sum::<u64>()
}

fn differing_images(here: &Image, there: &Image) -> u64 {
    if std::sync::Arc::ptr_eq(here.base(), there.base()) {
        differing(here.delta(), there.delta())
    } else {
        here.delta().len()
    }
}

fn differing(here: &everett_snapshot::Tree, there: &everett_snapshot::Tree) -> u64 {
    let mut pages = 0;
    here.diff(there, |_, mine, _| pages += u64::from(mine.is_some()));
    pages
}

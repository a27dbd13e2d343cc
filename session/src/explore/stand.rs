//! A moment of the tree: a timeline at the end of a branch, from which others go on.

use everett_snapshot::{Image, PAGE, Pool};
use everett_vmm::machine::Moment;
use everett_vmm::world::WorldMoment;

use super::witness::Memory;
use crate::timeline::{SessionState, Timeline};

/// What a moment takes besides its pages, roughly: sessions, devices, what was seen.
const OVERHEAD_BYTES: u64 = 256 << 10;

/// A timeline at the end of a branch.
#[derive(Debug)]
pub struct Stand {
    /// The world.
    pub world: WorldMoment,
    /// What decides how it goes on besides.
    pub session: SessionState,
    /// What was seen up to there.
    pub memory: Memory,
}

impl Stand {
    /// `timeline` as it is, after what was seen.
    pub fn of(timeline: &mut Timeline, pool: &Pool, memory: Memory) -> Stand {
        let session = timeline.save();
        Stand { world: timeline.world_mut().moment(pool), session, memory }
    }

    /// What is freed when it is dropped and `parent` is not, in bytes, roughly.
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

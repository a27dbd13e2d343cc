//! Effect of a loss of power on unflushed versions, and of a loss of power or a reset on requests in flight.
//!
//! A drive writes its cache back in any order. After a loss of power, a sector may therefore hold any of its versions
//! since the last covering flush: the durable one, each value that a completed write gave it, and the value of a
//! request in flight, which the drive may have begun. Any subset of the sectors of a request in flight may land, too.
//! A fair coin for each sector would be legal but useless: of many sectors, always about half would be lost. So each
//! loss of power first draws a [`LossMode`]. Each mode picks one of the sector's versions for each sector, so all
//! modes are legal; they differ in which versions go together. A loss of power that loses nothing is legal, too, but
//! finds no defects. Only one mode allows it, and that mode has a probability of 1 in [`ALL_KEPT_IN`]. In the other
//! modes at least one sector loses its newest version, if that is possible.
//!
//! - `sector_versions`: the version that each sector gets; `landing`: the sectors of a request in flight that land
//!
//! Not here: which requests are in flight (`virtio::blk`).

mod landing;
mod sector_versions;

use chacha20::rand_core::Rng;

use super::{Change, Disk, draw};
use landing::Landing;

/// Maximum bytes of all requests in flight that can land at a loss of power or a reset. Requests are counted in the
/// order of submission. A request that no longer fits does not land, which is legal.
pub const LANDING_BYTES_MAX: u64 = 64 << 20;

/// One loss of power in this many keeps all completed writes.
const ALL_KEPT_IN: u64 = 32;

/// Options of a loss of power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PowerLossOptions {
    /// True if sectors may be torn: up to a drawn byte they hold one version, from there on another. Even correct
    /// software may rely on whole sectors.
    pub tear_sectors: bool,
}

/// Rule by which a loss of power combines the versions of sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossMode {
    /// No unflushed write survives and no request in flight lands, as in a drive that had not written anything back
    /// yet.
    AllLost,
    /// All completed writes survive, as in a drive that had just written everything back. Each request in flight lands
    /// not at all, whole, up to a drawn sector, or in drawn sectors.
    AllKept,
    /// A prefix in write order survives, as in a drive that writes back in order; requests in flight come last. The cut
    /// is between two requests or, equally often, between any two sectors.
    Prefix,
    /// Each request survives whole or not at all, with drawn odds and independently of the others, as in a drive that
    /// writes back whole requests in any order. A sector holds the newest of its surviving requests.
    Requests,
    /// Each sector independently holds any of its versions: the newest with drawn odds, else any, all equally likely.
    Sectors,
}

impl LossMode {
    /// All modes.
    pub const ALL: [LossMode; 5] =
        [LossMode::AllKept, LossMode::AllLost, LossMode::Prefix, LossMode::Requests, LossMode::Sectors];

    /// Draws a mode: [`LossMode::AllKept`] with probability 1 in [`ALL_KEPT_IN`], else one of the others, all equally
    /// likely.
    fn draw(rng: &mut impl Rng) -> LossMode {
        let rest = LossMode::ALL.len() as u64 - 1;
        match draw::below(rng, ALL_KEPT_IN) {
            0 => LossMode::AllKept,
            _ => LossMode::ALL[1 + draw::below(rng, rest) as usize],
        }
    }
}

/// Effect of a loss of power on one disk. Counts are of logical sectors; versions are distinguished by content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// Mode that was drawn. `None` if no write was unflushed or in flight, so that nothing was drawn.
    pub mode: Option<LossMode>,
    /// Number of sectors with versions of completed writes that differ from the durable version.
    pub unflushed: u64,
    /// Number of these sectors that hold an older version than the newest completed one.
    pub lost_newest: u64,
    /// Number of these sectors that hold neither the newest completed version nor the durable one, but one in between.
    pub in_between: u64,
    /// Number of sectors that hold a part of one version and a part of another.
    pub torn: u64,
    /// Outcome of the requests in flight.
    pub in_flight: Aborted,
}

impl PowerLoss {
    /// True if the disk lost data of a write that had been reported to the guest as completed.
    #[must_use]
    pub fn lost_anything(&self) -> bool {
        self.lost_newest > 0 || self.torn > 0
    }
}

/// Outcome of writing requests that were in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Aborted {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests whose data is in all sectors that they write.
    pub landed: u64,
    /// Number of requests whose data is in some of their sectors: they landed in part, or a later one landed over them.
    pub in_part: u64,
}

impl Aborted {
    /// Counts a request that landed in `landed` of its `sectors` sectors.
    fn count(&mut self, landed: u64, sectors: u64) {
        self.requests += 1;
        self.landed += u64::from(landed == sectors);
        self.in_part += u64::from(0 < landed && landed < sectors);
    }
}

impl Disk {
    /// Applies a loss of power while these requests are in flight, in the order of submission.
    /// Afterwards the cache is empty and the content is durable. Faults remain.
    pub(crate) fn power_loss(
        &mut self,
        rng: &mut impl Rng,
        options: PowerLossOptions,
        in_flight: &[Vec<Change>],
    ) -> PowerLoss {
        self.power_loss_in(rng, options, in_flight, LossMode::draw)
    }

    /// Does the same as [`Disk::power_loss`], in the mode that `mode` draws.
    pub(super) fn power_loss_in<R: Rng>(
        &mut self,
        rng: &mut R,
        options: PowerLossOptions,
        in_flight: &[Vec<Change>],
        mode: impl FnOnce(&mut R) -> LossMode,
    ) -> PowerLoss {
        let first_in_flight = self.completed();
        // Each request in flight adds a version. These destage nothing, because any of these requests may not land.
        for changes in in_flight {
            let write = self.cache.number();
            changes.iter().for_each(|change| self.change(write, change, false));
        }
        let records: Vec<_> = self.cache.records().cloned().collect();
        self.cache.clear();
        let mut loss = PowerLoss::default();
        if !records.is_empty() {
            let mode = mode(rng);
            loss.mode = Some(mode);
            let versions = sector_versions::Versions::new(&records, first_in_flight, self.sector.bytes());
            versions.decide(&mut self.content, mode, options, rng, &mut loss);
        }
        // A request that only discards unwritten blocks changes nothing, so it counts as landed in any case.
        let nothing_to_do = in_flight.len() as u64 - loss.in_flight.requests;
        (0..nothing_to_do).for_each(|_| loss.in_flight.count(0, 0));
        loss
    }

    /// Aborts these requests, which are in flight when the machine is reset.
    /// Each one lands not at all, whole, up to a drawn sector, or in drawn sectors. The drive keeps its cache, in which
    /// they are the newest versions.
    pub(crate) fn abort(&mut self, rng: &mut impl Rng, in_flight: &[Vec<Change>]) -> Aborted {
        let mut aborted = Aborted::default();
        let size = self.sector.bytes();
        for changes in in_flight {
            let sectors = changes.iter().map(|change| change.bytes() / size).sum();
            let landing = Landing::draw(rng, sectors);
            let write = self.cache.number();
            let (mut number, mut landed) = (0, 0);
            let mut each = landing.sectors(rng);
            for change in changes {
                for at in (0..change.bytes()).step_by(size as usize) {
                    if each(number) {
                        self.change(write, &change.part(at, size), true);
                        landed += 1;
                    }
                    number += 1;
                }
            }
            aborted.count(landed, sectors);
        }
        aborted
    }
}

impl Change {
    /// Returns the change of `len` bytes from `at` on.
    fn part(&self, at: u64, len: u64) -> Change {
        match self {
            Change::Write { offset, content } => {
                let content = content[at as usize..(at + len) as usize].to_vec();
                Change::Write { offset: offset + at, content }
            }
            Change::Zero { offset, takes_room, .. } => {
                Change::Zero { offset: offset + at, len, takes_room: *takes_room }
            }
        }
    }
}

//! Chooses what a disk holds after a power loss, and which requests in flight it executes at a power loss or a reset.
//!
//! A drive writes its cache back in any order. After a power loss, a sector may therefore hold the durable version, the
//! content of any completed write that no flush has made durable yet, or the content of a request in flight. The drive
//! may have written any subset of the sectors of a request in flight; these sectors *land*.
//!
//! A fair coin for each sector would be legal but useless: if there are many sectors, always about half would be lost.
//! So each power loss first draws a [`LossMode`]. Every mode gives each sector one of that sector's versions, so all
//! modes are legal. They differ in which versions occur together.
//!
//! A power loss that loses nothing is legal, too, but finds no defects. Only [`LossMode::AllKept`] allows it, and this
//! mode is drawn with a probability of 1 in [`ALL_KEPT_IN`]. In the other modes at least one sector loses its newest
//! completed version, if that is possible.
//!
//! - `sector_versions`: chooses the version of each sector; `landing`: chooses which sectors of a request in flight
//!   land
//!
//! Elsewhere: which requests are in flight (`virtio::blk`).

mod landing;
mod sector_versions;

use chacha20::rand_core::Rng;

use super::{Change, Disk, draw};
use landing::Landing;

/// Maximum total size, in bytes, of the requests in flight that can land at a power loss or a reset. The requests are
/// added up in the order of submission. A request beyond the bound does not land, which is legal.
pub const LANDING_BYTES_MAX: u64 = 64 << 20;

/// One in this many power losses keeps all completed writes.
const ALL_KEPT_IN: u64 = 32;

/// Options of a power loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PowerLossOptions {
    /// True if sectors may be torn. A torn sector holds one version up to a random byte, and another version after it.
    /// Even correct software may rely on whole sectors.
    pub tear_sectors: bool,
}

/// Rule by which a power loss chooses and combines the versions of sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossMode {
    /// No unflushed write survives and no request in flight lands, as in a drive that has not written anything back
    /// yet.
    AllLost,
    /// All completed writes survive, as in a drive that has just written everything back. Each request in flight lands
    /// not at all, completely, up to a random sector, or in random sectors.
    AllKept,
    /// A prefix of the writes survives, as in a drive that writes back in order. Requests in flight come last. The cut
    /// is between two requests or, equally often, between any two sectors.
    Prefix,
    /// Each request survives completely or not at all, independently of other requests, as in a drive that writes back
    /// whole requests in any order. The probability of survival is random, and the same for all requests. A sector
    /// holds the newest surviving version.
    Requests,
    /// Each sector independently holds its newest version with a random probability, which is the same for all sectors.
    /// Otherwise it holds any version with equal probability.
    Sectors,
}

impl LossMode {
    /// All modes, [`LossMode::AllKept`] first.
    pub const ALL: [LossMode; 5] =
        [LossMode::AllKept, LossMode::AllLost, LossMode::Prefix, LossMode::Requests, LossMode::Sectors];

    /// Draws [`LossMode::AllKept`] with probability 1 in [`ALL_KEPT_IN`], otherwise one of the other modes with equal
    /// probability.
    fn draw(rng: &mut impl Rng) -> LossMode {
        let rest = LossMode::ALL.len() as u64 - 1;
        match draw::below(rng, ALL_KEPT_IN) {
            0 => LossMode::AllKept,
            _ => LossMode::ALL[1 + draw::below(rng, rest) as usize],
        }
    }
}

/// Effect of a power loss on one disk. All counts are in logical sectors. Versions with equal content count as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// Mode that was drawn. `None` if no write was unflushed or in flight; nothing was drawn then.
    pub mode: Option<LossMode>,
    /// Number of sectors in which at least one completed version differs from the durable one.
    pub unflushed: u64,
    /// Number of [`unflushed`](Self::unflushed) sectors that lost their newest completed version and hold an older one.
    pub lost_newest: u64,
    /// Number of [`unflushed`](Self::unflushed) sectors that hold a version between the durable one and the newest
    /// completed one.
    pub in_between: u64,
    /// Number of torn sectors, which hold parts of two versions.
    pub torn: u64,
    /// Fate of the requests in flight.
    pub in_flight: Aborted,
}

impl PowerLoss {
    /// True if a sector lost the contents of its newest completed write, or is torn.
    #[must_use]
    pub fn lost_anything(&self) -> bool {
        self.lost_newest > 0 || self.torn > 0
    }
}

/// Fate of requests that were in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Aborted {
    /// Number of requests that were in flight.
    pub requests: u64,
    /// Number of requests whose data is in all of their sectors.
    pub landed: u64,
    /// Number of requests whose data is in some of their sectors, because they landed in part or a later request
    /// overwrote them.
    pub in_part: u64,
}

impl Aborted {
    /// Counts a request whose data is in `landed` of its `sectors` sectors.
    fn count(&mut self, landed: u64, sectors: u64) {
        self.requests += 1;
        self.landed += u64::from(landed == sectors);
        self.in_part += u64::from(0 < landed && landed < sectors);
    }
}

impl Disk {
    /// Applies a power loss. `in_flight` has the changes of each request in flight, in the order of submission.
    /// Afterwards the cache is empty and the content is durable. Disk faults remain active.
    pub(crate) fn power_loss(
        &mut self,
        rng: &mut impl Rng,
        options: PowerLossOptions,
        in_flight: &[Vec<Change>],
    ) -> PowerLoss {
        self.power_loss_in(rng, options, in_flight, LossMode::draw)
    }

    /// Does the same as [`Disk::power_loss`], but the function `mode` chooses the mode.
    pub(crate) fn power_loss_in<R: Rng>(
        &mut self,
        rng: &mut R,
        options: PowerLossOptions,
        in_flight: &[Vec<Change>],
        mode: impl FnOnce(&mut R) -> LossMode,
    ) -> PowerLoss {
        let first_in_flight = self.completed();
        // Each request in flight adds a version, even if the cache then exceeds its maximum size. The cache could only
        // shrink by making its oldest versions durable. A request that may not land must not cause that.
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
        // A request that only discards unwritten blocks changes nothing, so it always counts as landed.
        let nothing_to_do = in_flight.len() as u64 - loss.in_flight.requests;
        (0..nothing_to_do).for_each(|_| loss.in_flight.count(0, 0));
        loss
    }

    /// Aborts requests that are in flight when the machine is reset. Each request lands not at all, completely, up to a
    /// random sector, or in random sectors. The drive keeps its cache. The landed sectors become the newest versions in
    /// it.
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
    /// Returns the change restricted to `len` bytes from `at` on.
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

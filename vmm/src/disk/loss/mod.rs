//! What becomes of unflushed versions when power goes, and of requests in flight then or at a reset.
//!
//! A drive writes its cache back in any order. When power goes, a sector may therefore hold any of its versions since the
//! last covering flush: the durable one, each value that a completed write gave it, and the value of a request that was in
//! flight, which the drive may have begun. Which sectors of a request in flight land is open, too. Fair coins for each
//! sector would be legal, and useless: of many sectors nearly half are lost then, always. So each loss draws a [`LossMode`]
//! first. Each mode picks for each sector one of its versions, so all of them are legal; they differ in what goes together.
//! A loss that loses nothing is legal, too, and finds nothing: that is what one mode in [`ALL_KEPT_IN`] is for, and in the
//! others at least one sector is not what was written last, where there is one that need not be.
//!
//! - `fate`: which version each sector gets; `landing`: which sectors of a request in flight land
//!
//! Not here: which requests are in flight (`virtio::blk`).

mod fate;
mod landing;

use rand_chacha::rand_core::Rng;

use super::{Change, Disk, draw};
use landing::Landing;

/// The most bytes of all requests in flight that land when power goes or the machine is reset. A request that does not fit
/// any more, in the order of submission, lands nowhere, which it may.
pub const LANDING_BYTES_MAX: u64 = 64 << 20;

/// One loss of power in so many keeps all that was written.
const ALL_KEPT_IN: u64 = 32;

/// How power is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PowerLossOptions {
    /// Sectors may be torn inside: up to a drawn byte they hold one version, from there on another. Correct software relies
    /// on whole sectors.
    pub tear_sectors: bool,
}

/// What goes together in a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossMode {
    /// Nothing that was unflushed survives, nothing in flight lands: a drive that had written back nothing yet.
    AllLost,
    /// All that completed survives; each request in flight lands not at all, whole, up to a drawn sector, or in drawn
    /// sectors: a drive that had just caught up.
    AllKept,
    /// A prefix in write order survives, with requests in flight last: a drive that writes back in order. Cut between two
    /// requests or, as often, between any two sectors.
    Prefix,
    /// Each request survives whole or not at all, with drawn odds, whatever came before or after it. A sector holds the
    /// newest of those that survive: a drive that writes back whole requests in any order.
    Requests,
    /// Each sector holds any of its versions, whatever others do: the newest with drawn odds, else an even draw.
    Sectors,
}

impl LossMode {
    /// All of them.
    pub const ALL: [LossMode; 5] =
        [LossMode::AllKept, LossMode::AllLost, LossMode::Prefix, LossMode::Requests, LossMode::Sectors];

    /// [`LossMode::AllKept`] once in [`ALL_KEPT_IN`], and each of the others as often as any other.
    fn draw(rng: &mut impl Rng) -> LossMode {
        let rest = LossMode::ALL.len() as u64 - 1;
        match draw::below(rng, ALL_KEPT_IN) {
            0 => LossMode::AllKept,
            _ => LossMode::ALL[1 + draw::below(rng, rest) as usize],
        }
    }
}

/// What a loss of power did to one disk. Counts are of logical sectors; versions are told apart by content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// What was drawn. `None`: nothing was unflushed or in flight, and nothing was drawn.
    pub mode: Option<LossMode>,
    /// Sectors with versions of completed writes that differ from what was durable.
    pub unflushed: u64,
    /// Of these, those that hold an older version than the newest that completed.
    pub lost_newest: u64,
    /// Of these, those that hold neither the newest version that completed nor the durable one, but one in between.
    pub in_between: u64,
    /// Sectors that hold a part of one version and a part of another.
    pub torn: u64,
    /// What became of requests in flight.
    pub in_flight: Aborted,
}

impl PowerLoss {
    /// Whether anything is gone that a guest had been told was written.
    #[must_use]
    pub fn lost_anything(&self) -> bool {
        self.lost_newest > 0 || self.torn > 0
    }
}

/// What became of requests that write and were in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Aborted {
    /// How many there were.
    pub requests: u64,
    /// How many are found in all sectors that they write.
    pub landed: u64,
    /// How many are found in some of them: they landed in part, or another one landed over them.
    pub in_part: u64,
}

impl Aborted {
    /// One landed in so many of so many sectors.
    fn count(&mut self, landed: u64, sectors: u64) {
        self.requests += 1;
        self.landed += u64::from(landed == sectors);
        self.in_part += u64::from(0 < landed && landed < sectors);
    }
}

impl Disk {
    /// Power is lost while these requests are in flight, in the order of submission. Afterwards the cache is empty, and what
    /// reads see is durable. Faults stay.
    pub(crate) fn power_loss(
        &mut self,
        rng: &mut impl Rng,
        options: PowerLossOptions,
        in_flight: &[Vec<Change>],
    ) -> PowerLoss {
        self.power_loss_in(rng, options, in_flight, LossMode::draw)
    }

    /// The same in a mode that is drawn in another way.
    pub(super) fn power_loss_in<R: Rng>(
        &mut self,
        rng: &mut R,
        options: PowerLossOptions,
        in_flight: &[Vec<Change>],
        mode: impl FnOnce(&mut R) -> LossMode,
    ) -> PowerLoss {
        let first_in_flight = self.completed();
        // One more version each. Nothing is destaged by it, since any of them may have come to nothing.
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
            let versions = fate::Versions::new(&records, first_in_flight, self.sector.bytes());
            versions.decide(&mut self.content, mode, options, rng, &mut loss);
        }
        // What discards what was never written is there, whatever became of it.
        let nothing_to_do = in_flight.len() as u64 - loss.in_flight.requests;
        (0..nothing_to_do).for_each(|_| loss.in_flight.count(0, 0));
        loss
    }

    /// The machine around the drive is reset while these requests are in flight. They are aborted, each after it landed not
    /// at all, whole, up to a drawn sector, or in drawn sectors. The drive keeps its cache, where they are the newest
    /// versions.
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
    /// `len` bytes of it, from `at` on.
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

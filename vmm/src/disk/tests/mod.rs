//! Tests of disks against simple models, which keep lists of all writes and flushes.

mod cache;
mod content;
mod faults;
mod image;
mod model;
mod space;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;

use super::*;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Returns a write of whole sectors. Each value fills one sector.
pub(crate) fn fill(disk: &Disk, first: u64, values: &[u8]) -> Change {
    let size = disk.sector_size().bytes();
    let content = values.iter().flat_map(|&value| vec![value; size as usize]).collect();
    Change::Write { offset: first * size, content }
}

fn zeroes(disk: &Disk, first: u64, sectors: u64, takes_room: bool) -> Change {
    let size = disk.sector_size().bytes();
    Change::Zero { offset: first * size, len: sectors * size, takes_room }
}

/// Returns the value that fills each sector, or `None` for a sector with more than one value.
pub(crate) fn values(disk: &Disk) -> Vec<Option<u8>> {
    let size = disk.sector_size().bytes();
    let value = |sector: u64| {
        let mut buf = vec![0; size as usize];
        disk.read(sector * size, &mut buf);
        // Comparing whole slices is fast even in tests without optimisation.
        (buf[1..] == buf[..buf.len() - 1]).then_some(buf[0])
    };
    (0..disk.len() / size).map(value).collect()
}

/// Applies a power loss in this mode.
fn lose(disk: &mut Disk, mode: LossMode, seed: u64, in_flight: &[Vec<Change>]) -> PowerLoss {
    disk.power_loss_in(&mut rng(seed), PowerLossOptions::default(), in_flight, |_| mode)
}

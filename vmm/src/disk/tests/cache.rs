//! Tests of a disk's volatile write cache: its content, and how long it keeps the older contents (*versions*) of
//! sectors, to which a power loss may revert them.

use everett_snapshot::Pool;

use super::*;

fn durable(disk: &Disk) -> Vec<Option<u8>> {
    let mut disk = disk.clone();
    lose(&mut disk, LossMode::AllLost, 0, &[]);
    values(&disk)
}

#[test]
fn a_flush_covers_what_had_completed_when_it_was_submitted() {
    let mut disk = Disk::zeroed(8 * SECTOR).unwrap();
    disk.complete(&[fill(&disk, 0, &[1, 1, 1])]);
    let first = disk.completed();
    disk.complete(&[fill(&disk, 1, &[2, 2])]);
    let second = disk.completed();
    disk.complete(&[fill(&disk, 2, &[3, 3])]);
    assert_eq!(durable(&disk)[..4], [Some(0); 4]);
    disk.flush(first);
    assert_eq!(durable(&disk)[..4], [Some(1), Some(1), Some(1), Some(0)]);
    // The later flush completes first. The earlier flush must not undo it.
    disk.flush(second);
    disk.flush(first);
    assert_eq!(durable(&disk)[..4], [Some(1), Some(2), Some(2), Some(0)]);
    assert_eq!(values(&disk)[..4], [Some(1), Some(2), Some(3), Some(3)]);
    disk.flush(disk.completed());
    assert_eq!(disk.cached_bytes(), 0);
    let loss = disk.power_loss(&mut rng(0), PowerLossOptions::default(), &[]);
    assert_eq!(loss, PowerLoss::default());
}

/// A write of the same bytes is a version of its own. It may survive a power loss that the older write does not
/// survive.
#[test]
fn a_write_of_equal_bytes_is_a_version() {
    let mut disk = Disk::zeroed(16 * SECTOR).unwrap();
    disk.complete(&[fill(&disk, 0, &[1; 2])]);
    disk.complete(&[fill(&disk, 1, &[1; 8])]);
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut disk = disk.clone();
        let loss = lose(&mut disk, LossMode::Requests, seed, &[]);
        let values = values(&disk);
        assert!(values[1..9].iter().all(|value| *value == values[8]) || values[..2] == [Some(1); 2]);
        assert_eq!(loss.lost_anything(), values[..9] != [Some(1); 9]);
        seen.insert((values[0], values[1], values[8]));
    }
    // In the fourth combination both requests would survive. But a power loss in mode `Requests` always loses something
    // if it can.
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_loss_of_power_without_volatile_writes_draws_nothing() {
    use chacha20::rand_core::Rng;
    let mut disk = Disk::zeroed(1 << 20).unwrap();
    disk.write(0, &[1; 4096]);
    let (mut used, mut fresh) = (rng(5), rng(5));
    // A discard of unwritten blocks takes no random number, either.
    let discard = vec![zeroes(&disk, 8, 8, false)];
    let loss = disk.power_loss(&mut used, PowerLossOptions::default(), &[discard]);
    assert_eq!((loss.mode, loss.lost_anything()), (None, false));
    assert_eq!(loss.in_flight, Aborted { requests: 1, landed: 1, in_part: 0 });
    assert_eq!(used.next_u64(), fresh.next_u64());
}

/// If the cache is full, the oldest versions become durable. The cache drops one *record* (the sectors that one
/// write changed in one block) at a time.
#[test]
fn the_oldest_versions_are_destaged() {
    let blocks = CACHE_BYTES_MAX / BLOCK;
    let mut disk = Disk::zeroed(2 * CACHE_BYTES_MAX).unwrap();
    // Block 0 is written twice. Its second version is newer than the version of block 1.
    disk.complete(&[fill(&disk, 0, &[100; 8])]);
    disk.complete(&[fill(&disk, 8, &[101; 8])]);
    disk.complete(&[fill(&disk, 0, &[102; 8])]);
    for block in 2..blocks - 1 {
        disk.complete(&[fill(&disk, 8 * block, &[103; 8])]);
    }
    assert_eq!(disk.cached_bytes(), CACHE_BYTES_MAX, "the cache is full");
    assert_eq!(durable(&disk)[..24], [Some(0); 24]);
    let sector = |disk: &Disk, number: u64| durable(disk)[number as usize];
    // One more sector is too much for the cache. The oldest record then becomes durable as a whole: all eight sectors
    // of block 0.
    disk.complete(&[fill(&disk, 8 * blocks, &[104])]);
    assert_eq!(disk.cached_bytes(), CACHE_BYTES_MAX - BLOCK + SECTOR);
    assert_eq!((sector(&disk, 0), sector(&disk, 7), sector(&disk, 8)), (Some(100), Some(100), Some(0)));
    disk.complete(&[fill(&disk, 8 * blocks + 8, &[104; 8])]);
    assert_eq!((sector(&disk, 0), sector(&disk, 8)), (Some(100), Some(101)));
    disk.complete(&[fill(&disk, 8 * blocks + 16, &[104; 8])]);
    assert_eq!((sector(&disk, 0), sector(&disk, 16)), (Some(102), Some(0)));
    // This request is larger than the whole cache, so its own first blocks become durable.
    disk.complete(&[fill(&disk, 8, &vec![105; 8 * blocks as usize + 8])]);
    assert_eq!(disk.cached_bytes(), CACHE_BYTES_MAX);
    assert_eq!((sector(&disk, 15), sector(&disk, 16)), (Some(105), Some(103)));
    // Versions of zeroes count with their full size, too.
    disk.complete(&[zeroes(&disk, 0, 16 * blocks, true)]);
    assert!(disk.cached_bytes() <= CACHE_BYTES_MAX);
}

/// A disk that is restored from a file behaves like the original: it destages the same versions and has the same
/// digests.
#[test]
fn a_full_cache_survives_storage() {
    let mut disk = Disk::zeroed(2 * CACHE_BYTES_MAX).unwrap();
    for block in 0..CACHE_BYTES_MAX / BLOCK {
        disk.complete(&[fill(&disk, 8 * (block / 2), &[(block % 251) as u8; 8])]);
    }
    let parts = disk.moment(&Pool::default()).to_parts();
    let mut other = Disk::zeroed(2 * CACHE_BYTES_MAX).unwrap();
    other.restore(&DiskMoment::from_parts(&parts).unwrap());
    assert_eq!(other.digest(), disk.digest());
    for disk in [&mut disk, &mut other] {
        disk.complete(&[fill(disk, 3, &[7; 4000])]);
    }
    assert_eq!((other.digest(), other.cached_bytes()), (disk.digest(), disk.cached_bytes()));
    assert_eq!(durable(&other), durable(&disk));
}

/// Disks with equal content but different durable versions have different digests.
#[test]
fn the_digest_covers_volatile_versions() {
    let digest = |first: u8, flush: bool, size| {
        let mut disk = Disk::zeroed(1 << 20).unwrap().with_sectors(size).unwrap();
        disk.complete(&[fill(&disk, 8, &[first; 8])]);
        disk.complete(&[fill(&disk, 8, &[9; 8])]);
        if flush {
            disk.flush(1);
        }
        (values(&disk), disk.digest())
    };
    let sizes = [SectorSize::Bytes512, SectorSize::Bytes4096];
    let all = sizes.map(|size| [digest(1, false, size), digest(2, false, size), digest(2, true, size)]);
    let digests: BTreeSet<Digest> = all.iter().flatten().map(|(_, digest)| *digest).collect();
    assert_eq!(digests.len(), 6);
    assert!(all.iter().all(|of_size| of_size.iter().all(|(values, _)| *values == of_size[0].0)));
}

/// Moments share the cache with the disk until the disk's cache changes.
#[test]
fn moments_share_the_cache() {
    let mut disk = Disk::zeroed(1 << 20).unwrap();
    for round in 0..1000u32 {
        disk.complete(&[fill(&disk, u64::from(round % 2000), &[round as u8 | 1])]);
    }
    let pool = Pool::default();
    let (a, b) = (disk.moment(&pool), disk.moment(&pool));
    assert!(a.shares_cache_with(&b));
    disk.complete(&[fill(&disk, 5, &[77])]);
    assert!(!a.shares_cache_with(&disk.moment(&pool)));
    disk.restore(&a);
    assert!(a.shares_cache_with(&disk.moment(&pool)));
}

//! Tests of disk faults: their frequency, their duration, and the requests to which they apply.

use everett_fault::{DiskFault, Distribution};
use everett_streams::{Lineage, Owner, Seed};

use super::*;

fn error(requests: Requests, ppm: u32) -> DiskFault {
    DiskFault::Error { requests, ppm }
}

fn streams() -> Streams {
    Streams::new(&Lineage::new(Seed::new(1)), Owner::Node("n"))
}

#[test]
fn errors_have_the_configured_rate() {
    for (ppm, least, most) in
        [(0, 0, 0), (1_000, 60, 140), (250_000, 24_450, 25_550), (1_000_000, 100_000, 100_000)]
    {
        let mut disk = Disk::zeroed(4096).unwrap();
        disk.apply(3, error(Requests::Write, ppm)).unwrap();
        let mut streams = streams();
        let failed = (0..100_000).filter(|_| disk.fails(Requests::Write, 0, &mut streams)).count();
        // The bounds are four standard deviations from the mean.
        assert!((least..=most).contains(&failed), "{ppm} ppm: {failed}");
    }
}

#[test]
fn faults_affect_only_their_kind_of_requests_until_they_end() {
    let mut disk = Disk::zeroed(4096).unwrap();
    let mut streams = streams();
    let fresh = streams.clone();
    disk.apply(1, error(Requests::Read, 1_000_000)).unwrap();
    disk.apply(2, DiskFault::Full).unwrap();
    assert!(!disk.fails(Requests::Write, 0, &mut streams) && !disk.fails(Requests::Flush, 0, &mut streams));
    assert_eq!(disk.extra_ns(0, &mut streams), 0);
    assert_eq!(streams, fresh, "a request without faults draws nothing");
    assert!(disk.fails(Requests::Read, 0, &mut streams));
    assert!(disk.heal(1) && !disk.heal(1));
    assert!(!disk.fails(Requests::Read, 0, &mut streams));
    for kind in [Requests::Read, Requests::Write, Requests::Flush] {
        disk.apply(7, error(Requests::All, 1_000_000)).unwrap();
        assert!(disk.fails(kind, 0, &mut streams));
        disk.heal_all();
        assert!(!disk.fails(kind, 0, &mut streams) && disk.faults().is_empty());
    }
}

#[test]
fn latencies_are_drawn_and_add_up() {
    let mut disk = Disk::zeroed(4096).unwrap();
    let mut streams = streams();
    disk.apply(1, DiskFault::Latency { extra: Distribution::Constant(5_000) }).unwrap();
    disk.apply(2, DiskFault::Latency { extra: Distribution::Uniform(0, 999) }).unwrap();
    let drawn: Vec<u64> = (0..10_000).map(|_| disk.extra_ns(0, &mut streams)).collect();
    assert!(drawn.iter().all(|ns| (5_000..6_000).contains(ns)));
    let mean = drawn.iter().sum::<u64>() / 10_000;
    assert!((5_488..=5_511).contains(&mean), "four standard deviations: {mean}");
    disk.apply(1, DiskFault::Latency { extra: Distribution::Constant(0) }).unwrap();
    assert!(disk.extra_ns(0, &mut streams) < 1000, "a fault replaces the one with the same name");
}

#[test]
fn invalid_faults_are_refused() {
    let mut disk = Disk::zeroed(4096).unwrap();
    assert_eq!(disk.apply(1, error(Requests::All, 1_000_001)), Err(DiskFaultError::Ppm(1_000_001)));
    let latency = DiskFault::Latency { extra: Distribution::Uniform(2, 1) };
    assert!(matches!(disk.apply(1, latency), Err(DiskFaultError::Latency(_))));
    for id in 0..FAULTS_MAX as u64 {
        disk.apply(id, DiskFault::Full).unwrap();
    }
    assert_eq!(disk.apply(1000, DiskFault::Full), Err(DiskFaultError::TooMany));
    disk.apply(0, error(Requests::Read, 1)).unwrap();
    assert_eq!(disk.faults().len(), FAULTS_MAX);
}

#[test]
fn a_full_disk_has_room_only_in_allocated_blocks() {
    let mut content = vec![0; 8 * BLOCK as usize];
    content[2 * BLOCK as usize + 5] = 1;
    let mut disk = Disk::from_bytes(content.into()).unwrap();
    disk.complete(&[fill(&disk, 0, &[0])]);
    disk.apply(1, DiskFault::Full).unwrap();
    let room = |disk: &Disk, first, sectors| disk.has_room(&[fill(disk, first, &vec![1; sectors])]);
    assert!(room(&disk, 0, 1) && room(&disk, 7, 1), "the block was written, with zeroes");
    assert!(room(&disk, 16, 8), "the base has content in this block");
    assert!(!room(&disk, 8, 1) && !room(&disk, 7, 2) && !room(&disk, 15, 2));
    assert!(!disk.has_room(&[zeroes(&disk, 8, 8, true)]) && disk.has_room(&[zeroes(&disk, 8, 8, false)]));
    assert!(
        !disk.has_room(&[fill(&disk, 0, &[1]), fill(&disk, 24, &[1])]),
        "all blocks of a request need room"
    );
    disk.heal(1);
    assert!(room(&disk, 8, 8));
    disk.complete(&[fill(&disk, 8, &[1])]);
    lose(&mut disk, LossMode::AllLost, 0, &[]);
    disk.apply(1, DiskFault::Full).unwrap();
    assert!(room(&disk, 8, 8), "an allocated block stays allocated");
}

/// Bits flip only in written blocks. A bit flips in each version of its block, i.e. in the durable version and in the
/// unflushed versions.
#[test]
fn bit_rot_is_immediate_and_durable() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut disk = Disk::from_bytes(vec![3; 16 * BLOCK as usize].into()).unwrap();
        disk.complete(&[fill(&disk, 8, &[0xf0; 8])]);
        disk.flush(1);
        disk.complete(&[fill(&disk, 10, &[0x0f; 30])]);
        let before = disk.clone();
        let flipped = disk.rot(3, &mut rng(seed));
        assert!((1..=3).contains(&flipped.len()) && flipped.is_sorted());
        // After each kind of power loss, the disk differs from a disk without rot only in the flipped bits.
        for mode in [LossMode::AllLost, LossMode::AllKept, LossMode::Sectors] {
            let (mut with, mut without) = (disk.clone(), before.clone());
            assert_eq!(lose(&mut with, mode, seed, &[]).mode, lose(&mut without, mode, seed, &[]).mode);
            let [mut a, mut b] = [const { [0; 16 * BLOCK as usize] }; 2];
            with.read(0, &mut a);
            without.read(0, &mut b);
            for bit in &flipped {
                b[bit.offset as usize] ^= 1 << bit.bit;
                seen.insert(bit.offset / BLOCK);
            }
            assert!(a == b, "{mode:?}");
        }
        assert_ne!(disk.digest(), before.clone().digest());
    }
    assert_eq!(seen, BTreeSet::from([1, 2, 3, 4]), "bits flip only in written blocks");
    let mut untouched = Disk::from_bytes(vec![3; 8192].into()).unwrap();
    assert_eq!(untouched.rot(u32::MAX, &mut rng(0)), []);
    let mut small = Disk::zeroed(SECTOR).unwrap();
    small.write(0, &[1; 512]);
    let flipped = small.rot(u32::MAX, &mut rng(0));
    assert_eq!(flipped.len(), 4096, "all bits");
}

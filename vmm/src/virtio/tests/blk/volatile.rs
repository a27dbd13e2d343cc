//! Tests of the block device's flushes, power losses, resets and faults, from the driver's side.

use std::collections::{BTreeMap, BTreeSet};

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use everett_fault::{DiskFault, Distribution, Requests};
use proptest::prelude::*;

use super::{SECTORS, request, rig};
use crate::disk::{Aborted, Disk, LossMode, PowerLoss, PowerLossOptions, SectorSize};
use crate::virtio::Device;
use crate::virtio::blk::{Blk, Latency};
use crate::virtio::testing::{Rig, streams};

const FLUSH: u64 = 1 << 9;
const WRITE_NS: u64 = 15_500;
const FLUSH_NS: u64 = 100_000;

/// Simulates a power loss on copies of the devices, with a seed for which the loss draws `mode`. Returns the effect of
/// the loss, and the first byte of each of the first 64 sectors after the loss. A loss draws no mode (`None`) only if
/// the disk has no unflushed write and no request in flight.
fn after_loss(rig: &Rig, mode: Option<LossMode>) -> (PowerLoss, Vec<u8>) {
    for seed in 0.. {
        let Device::Blk(mut blk) = rig.transport.device().clone() else { panic!("no disk") };
        let (mut disk, mut events) = (rig.disks[0].clone(), rig.events.clone());
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let loss = blk.power_loss(&mut disk, &rig.ram, &mut events, PowerLossOptions::default(), &mut rng);
        if loss.mode == mode {
            assert!(events.is_empty(), "no request completes after the loss");
            return (loss, sectors(&disk));
        }
    }
    unreachable!()
}

fn sectors(disk: &Disk) -> Vec<u8> {
    let mut content = vec![0; 64 * 512];
    disk.read(0, &mut content);
    content.chunks(512).map(|sector| sector[0]).collect()
}

/// Submits a write of sectors that are filled with a value, or a flush if `sectors` is 0. Returns the address of the
/// request's status byte.
fn submit(rig: &mut Rig, slot: u16, sector: u64, sectors: u32, value: u8) -> u64 {
    let kind: u32 = if sectors == 0 { 4 } else { 1 };
    let header = rig.buffer(&[&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat());
    let status = rig.buffer(&[0xee]);
    let mut parts = vec![(header, 16, false)];
    if sectors > 0 {
        let data = rig.buffer(&vec![value; 512 * sectors as usize]);
        parts.push((data, 512 * sectors, false));
    }
    parts.push((status, 1, true));
    rig.chain(0, 3 * slot, &parts);
    status
}

#[test]
fn a_flush_covers_what_had_completed_when_it_was_submitted() {
    let mut rig = rig(false);
    submit(&mut rig, 0, 1, 1, 101);
    rig.advance(WRITE_NS);
    submit(&mut rig, 1, 2, 1, 102);
    submit(&mut rig, 2, 0, 0, 0);
    let submitted = rig.now;
    rig.advance(submitted + WRITE_NS);
    submit(&mut rig, 3, 1, 1, 103);
    rig.advance(submitted + FLUSH_NS - 1);
    assert_eq!(rig.used(0), [(0, 1), (3, 1), (9, 1)]);
    assert_eq!(after_loss(&rig, Some(LossMode::AllLost)).1[..3], [0, 1, 2], "the flush has not completed");
    rig.advance(submitted + FLUSH_NS);
    assert_eq!(rig.used(0), [(6, 1)]);
    assert_eq!(after_loss(&rig, Some(LossMode::AllLost)).1[..3], [0, 101, 2]);
    assert_eq!(after_loss(&rig, Some(LossMode::AllKept)).1[..3], [0, 103, 102]);
    assert_eq!(request(&mut rig, 4, 0, (0, 0, false)), (0, 1));
    assert_eq!(after_loss(&rig, None), (PowerLoss::default(), sectors(&rig.disks[0])));
}

#[test]
fn without_the_flush_feature_all_writes_are_durable() {
    let mut rig = rig(false);
    let mut other = {
        let disk = rig.disks[0].clone();
        let blk = Blk::new(0, &disk, "d", false, Latency::default()).unwrap();
        Rig::new(Device::Blk(blk), vec![disk])
    };
    other.declined |= FLUSH;
    other.start(1, 128);
    for (rig, mode, expected) in [(&mut rig, Some(LossMode::AllLost), 3), (&mut other, None, 9)] {
        submit(rig, 0, 3, 1, 9);
        assert!(
            after_loss(rig, Some(LossMode::AllKept)).0.in_flight.requests == 1,
            "a request in flight is volatile"
        );
        rig.advance(WRITE_NS);
        assert_eq!(after_loss(rig, mode).1[3], expected);
    }
    // A driver that declines the flush feature takes over from one that accepted it.
    rig.set(virtio_bindings::virtio_mmio::VIRTIO_MMIO_STATUS, 0);
    rig.declined |= FLUSH;
    rig.start(1, 128);
    assert_eq!(after_loss(&rig, Some(LossMode::AllLost)).1[3], 3, "the drive keeps its cache");
    submit(&mut rig, 0, 4, 1, 9);
    rig.advance(rig.now + WRITE_NS);
    assert_eq!(after_loss(&rig, None).1[3..5], [9, 9]);
}

#[test]
fn discards_and_zeroes_are_volatile() {
    for kind in [11, 13] {
        let mut rig = rig(false);
        let range = [&5u64.to_le_bytes()[..], &3u32.to_le_bytes(), &0u32.to_le_bytes()].concat();
        let table = rig.buffer(&range);
        assert_eq!(request(&mut rig, kind, 0, (table, 16, false)).0, 0);
        assert_eq!(after_loss(&rig, Some(LossMode::AllKept)).1[4..9], [4, 0, 0, 0, 8]);
        assert_eq!(after_loss(&rig, Some(LossMode::AllLost)).1[4..9], [4, 5, 6, 7, 8]);
    }
}

#[test]
fn sectors_of_4096_bytes_take_aligned_requests() {
    let disk = Disk::zeroed(1 << 20).unwrap().with_sectors(SectorSize::Bytes4096).unwrap();
    let blk = Blk::new(0, &disk, "d", false, Latency::default()).unwrap();
    let mut rig = Rig::running(Device::Blk(blk), vec![disk], 1, 128);
    let config = virtio_bindings::virtio_mmio::VIRTIO_MMIO_CONFIG;
    assert_eq!((rig.get(config), rig.get(config + 20)), (2048, 4096), "capacity counts sectors of 512");
    let at = rig.buffer(&[7; 16384]);
    for (kind, writable) in [(0, true), (1, false)] {
        for (sector, bytes, status) in [(8, 4096, 0), (16, 8192, 0), (4, 4096, 1), (8, 512, 1), (8, 4608, 1)]
        {
            assert_eq!(
                request(&mut rig, kind, sector, (at, bytes, writable)).0,
                status,
                "{kind} {sector} {bytes}"
            );
        }
    }
    for (sector, sectors, status) in [(8u64, 8u32, 0), (8, 4, 1), (4, 8, 1)] {
        let range = [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &0u32.to_le_bytes()].concat();
        let table = rig.buffer(&range);
        assert_eq!(request(&mut rig, 13, 0, (table, 16, false)).0, status);
    }
}

fn error(requests: Requests) -> DiskFault {
    DiskFault::Error { requests, ppm: 1_000_000 }
}

#[test]
fn failed_requests_have_no_effect() {
    let mut rig = rig(false);
    let at = rig.buffer(&[0x55; 512]);
    assert_eq!(request(&mut rig, 1, 1, (at, 512, false)), (0, 1));
    rig.disks[0].apply(1, error(Requests::Flush)).unwrap();
    assert_eq!(request(&mut rig, 4, 0, (0, 0, false)), (1, 1));
    assert_eq!(after_loss(&rig, Some(LossMode::AllLost)).1[1], 1, "a flush that failed covers nothing");
    rig.disks[0].apply(1, error(Requests::Write)).unwrap();
    let before = sectors(&rig.disks[0]);
    let range = rig.buffer(&[0; 16]);
    assert_eq!(request(&mut rig, 1, 2, (at, 512, false)), (1, 1));
    assert_eq!(request(&mut rig, 11, 0, (range, 16, false)), (1, 1));
    assert_eq!(sectors(&rig.disks[0]), before);
    assert_eq!(request(&mut rig, 0, 1, (at, 512, true)), (0, 513));
    rig.disks[0].apply(1, error(Requests::Read)).unwrap();
    let at = rig.buffer(&[0x66; 512]);
    assert_eq!(request(&mut rig, 0, 1, (at, 512, true)), (1, 1));
    assert_eq!(rig.read(at, 512), [0x66; 512]);
    assert_eq!(request(&mut rig, 8, 0, (at, 20, true)), (0, 21), "GET_ID does not access the medium");
    rig.disks[0].heal_all();
    assert_eq!(request(&mut rig, 4, 0, (0, 0, false)), (0, 1));
    assert_eq!(after_loss(&rig, None).1[1], 0x55);
}

#[test]
fn a_full_disk_fails_requests_that_need_room() {
    let disk = Disk::zeroed(1 << 20).unwrap();
    let blk = Blk::new(0, &disk, "d", false, Latency::default()).unwrap();
    let mut rig = Rig::running(Device::Blk(blk), vec![disk], 1, 128);
    let at = rig.buffer(&[1; 4096]);
    assert_eq!(request(&mut rig, 1, 0, (at, 512, false)).0, 0);
    rig.disks[0].apply(1, DiskFault::Full).unwrap();
    assert_eq!(request(&mut rig, 1, 7, (at, 512, false)).0, 0, "this block was written");
    assert_eq!(request(&mut rig, 1, 7, (at, 1024, false)).0, 1, "the next block was not written");
    submit(&mut rig, 9, 8, 1, 9);
    let (loss, found) = after_loss(&rig, Some(LossMode::AllKept));
    assert_eq!(
        (loss.in_flight.requests, found[8]),
        (0, 0),
        "a request without room does not land at a power loss"
    );
    for (kind, flags, status) in [(11, 0u32, 0), (13, 1, 0), (13, 0, 1)] {
        let range = [&8u64.to_le_bytes()[..], &8u32.to_le_bytes(), &flags.to_le_bytes()].concat();
        let table = rig.buffer(&range);
        rig.advance(rig.now + 1_000_000);
        rig.used(0);
        assert_eq!(request(&mut rig, kind, 0, (table, 16, false)).0, status, "{kind} {flags}");
    }
}

#[test]
fn latency_adds_and_draws_only_while_it_lasts() {
    let mut rig = rig(false);
    let done = |rig: &mut Rig, sectors: u32| {
        let start = rig.now;
        submit(rig, 0, 0, sectors, 1);
        let at = rig.events.next_vtime().unwrap() - start;
        rig.advance(start + at);
        assert_eq!(rig.used(0).len(), 1);
        at
    };
    assert_eq!((done(&mut rig, 1), done(&mut rig, 0)), (WRITE_NS, FLUSH_NS));
    assert_eq!(rig.streams, streams(), "nothing was drawn");
    rig.disks[0].apply(1, DiskFault::Latency { extra: Distribution::Constant(7_000) }).unwrap();
    assert_eq!((done(&mut rig, 1), done(&mut rig, 0)), (WRITE_NS + 7_000, FLUSH_NS + 7_000));
    rig.disks[0].heal(1);
    assert_eq!(done(&mut rig, 1), WRITE_NS);
}

#[test]
fn errors_have_the_configured_rate() {
    let mut rig = rig(false);
    rig.disks[0].apply(1, DiskFault::Error { requests: Requests::Write, ppm: 200_000 }).unwrap();
    let mut failed = 0;
    for _ in 0..500 {
        let status = submit(&mut rig, 0, 0, 1, 1);
        rig.advance(rig.now + WRITE_NS);
        assert_eq!(rig.used(0).len(), 1);
        failed += i32::from(rig.read(status, 1) == [1]);
    }
    // The bounds are four standard deviations from the expected 100.
    assert!((65..=135).contains(&failed), "{failed} of 500");
}

#[test]
fn a_driver_that_resets_the_device_loses_nothing_and_draws_nothing() {
    let mut rig = rig(false);
    submit(&mut rig, 0, 1, 1, 101);
    rig.advance(WRITE_NS);
    submit(&mut rig, 1, 2, 1, 102);
    rig.set(virtio_bindings::virtio_mmio::VIRTIO_MMIO_STATUS, 0);
    assert_eq!(sectors(&rig.disks[0])[..3], [0, 101, 2]);
    assert_eq!(after_loss(&rig, Some(LossMode::AllLost)).1[..3], [0, 1, 2]);
    assert_eq!(rig.streams, streams());
}

/// Many requests in flight write the same large buffer. The number of bytes that can reach the disk is bounded.
#[test]
fn the_bytes_that_land_are_bounded() {
    let disk = Disk::zeroed(1 << 30).unwrap();
    let blk = Blk::new(0, &disk, "d", false, Latency::default()).unwrap();
    let mut rig = Rig::running(Device::Blk(blk), vec![disk], 1, 128);
    let data = rig.buffer(&[3; 12 << 20]);
    for slot in 0..30u64 {
        let header = rig.buffer(&[&[1, 0, 0, 0, 0, 0, 0, 0][..], &(slot << 15).to_le_bytes()].concat());
        let parts = [(header, 16, false), (data, 12 << 20, false), (header + 64, 1, true)];
        rig.chain(0, 3 * slot as u16, &parts);
    }
    let (loss, _) = after_loss(&rig, Some(LossMode::AllKept));
    assert_eq!(loss.in_flight.requests, 5, "five requests of 12 MiB fit into 64 MiB");
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64, u32, u8),
    Flush,
    Wait(u64),
    PowerLoss(u64),
    Reset(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..40, 1u32..20, any::<u8>()).prop_map(|(sector, sectors, value)| Step::Write(sector, sectors, value)),
        2 => Just(Step::Flush),
        6 => (0u64..60_000).prop_map(Step::Wait),
        1 => any::<u64>().prop_map(Step::PowerLoss),
        1 => any::<u64>().prop_map(Step::Reset),
    ];
    proptest::collection::vec(step, 1..60)
}

/// The driver's record of the sector versions that it must expect after a power loss.
#[derive(Default)]
struct Driver {
    /// Versions that each sector may hold after a power loss, oldest first.
    versions: BTreeMap<u64, Vec<u8>>,
    /// Submitted writes, by chain head: first sector, number of sectors, value.
    writes: BTreeMap<u32, (u64, u32, u8)>,
    /// Submitted flushes, by chain head: the number of versions that each sector had at the submission.
    flushes: BTreeMap<u32, BTreeMap<u64, usize>>,
    /// Number of versions of each sector that were dropped because a later version is durable.
    forgotten: BTreeMap<u64, usize>,
}

impl Driver {
    fn completed(&mut self, head: u32) {
        if let Some((sector, sectors, value)) = self.writes.remove(&head) {
            for sector in sector..sector + u64::from(sectors) {
                self.versions.entry(sector).or_insert_with(|| vec![sector as u8]).push(value);
            }
        }
        for (sector, count) in self.flushes.remove(&head).unwrap_or_default() {
            // The flush made the last of these versions durable, so earlier versions are dropped.
            let forgotten = self.forgotten.entry(sector).or_default();
            let newly = (count - 1).saturating_sub(*forgotten);
            self.versions.get_mut(&sector).unwrap().drain(..newly);
            *forgotten += newly;
        }
    }
    fn flush(&mut self, head: u32) {
        let count = |(&sector, versions): (&u64, &Vec<u8>)| {
            (sector, versions.len() + self.forgotten.get(&sector).copied().unwrap_or(0))
        };
        self.flushes.insert(head, self.versions.iter().map(count).collect());
    }
    fn legal(&self, in_flight: bool) -> Vec<BTreeSet<u8>> {
        let versions = |sector: u64| match self.versions.get(&sector) {
            Some(versions) => versions.iter().copied().collect(),
            None => [sector as u8].into(),
        };
        let mut legal: Vec<BTreeSet<u8>> = (0..64).map(versions).collect();
        for &(sector, sectors, value) in self.writes.values().filter(|_| in_flight) {
            for sector in sector..sector + u64::from(sectors) {
                legal[sector as usize].insert(value);
            }
        }
        legal
    }
    /// Restarts the driver, which then knows only the content of the disk.
    fn restart(&mut self, disk: &[u8]) {
        *self = Driver::default();
        self.versions = (0..).zip(disk.iter().map(|&value| vec![value])).collect();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Even if requests overlap in time, the guarantees to the driver hold after any power loss.
    #[test]
    fn drivers_can_rely_on_flushes(steps in steps()) {
        let mut rig = rig(false);
        let mut driver = Driver::default();
        let mut heads = (0..40u16).cycle();
        for step in steps {
            let slot = heads.find(|slot| {
                let head = 3 * u32::from(*slot);
                !driver.writes.contains_key(&head) && !driver.flushes.contains_key(&head)
            });
            let slot = slot.unwrap();
            let free = driver.writes.len() + driver.flushes.len() < 39;
            match step {
                Step::Write(sector, sectors, value) if free => {
                    submit(&mut rig, slot, sector, sectors, value);
                    driver.writes.insert(3 * u32::from(slot), (sector, sectors, value));
                }
                Step::Flush if free => {
                    submit(&mut rig, slot, 0, 0, 0);
                    driver.flush(3 * u32::from(slot));
                }
                Step::Write(..) | Step::Flush => {}
                Step::Wait(ns) => {
                    rig.advance(rig.now + ns);
                    for (head, _) in rig.used(0) {
                        driver.completed(head);
                    }
                }
                Step::PowerLoss(seed) | Step::Reset(seed) => {
                    let reset = matches!(step, Step::Reset(_));
                    let mut rng = ChaCha20Rng::seed_from_u64(seed);
                    let options = PowerLossOptions::default();
                    let in_flight = driver.writes.len() as u64;
                    let Device::Blk(blk) = rig.transport.device_mut() else { panic!("no disk") };
                    let newest = sectors(&rig.disks[0]);
                    let disk = &mut rig.disks[0];
                    let aborted: Aborted = if reset {
                        blk.abort(disk, &rig.ram, &mut rig.events, &mut rng)
                    } else {
                        blk.power_loss(disk, &rig.ram, &mut rig.events, options, &mut rng).in_flight
                    };
                    prop_assert_eq!(aborted.requests, in_flight);
                    prop_assert!(rig.events.is_empty());
                    let found = sectors(&rig.disks[0]);
                    let legal = driver.legal(true);
                    for sector in 0..64usize {
                        prop_assert!(legal[sector].contains(&found[sector]), "{sector}: {}", found[sector]);
                        if reset && found[sector] != newest[sector] {
                            let landed = driver.writes.values().any(|&(at, sectors, value)| {
                                (at..at + u64::from(sectors)).contains(&(sector as u64)) && value == found[sector]
                            });
                            prop_assert!(landed, "a reset of the drive loses no completed write");
                        }
                    }
                    if reset {
                        // A reset leaves the writes in the drive's cache volatile. This flush makes them durable,
                        // because the restarted driver expects that the disk keeps its present content.
                        rig.disks[0].flush(u64::MAX);
                    }
                    prop_assert_eq!(rig.disks[0].cached_bytes(), 0);
                    driver.restart(&found);
                    rig.set(virtio_bindings::virtio_mmio::VIRTIO_MMIO_STATUS, 0);
                    rig.start(1, 128);
                }
            }
        }
        prop_assert!(rig.disks[0].len() == SECTORS * 512);
    }
}

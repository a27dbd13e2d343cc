//! Tests of machines with disks: moments in the middle of writes, power loss, and the next machine on the same disks.

use everett_fault::{DiskFault, Distribution, Requests};
use everett_snapshot::Pool;
use everett_streams::{Lineage, Owner, Seed};
use proptest::prelude::*;
use virtio_bindings::virtio_mmio as reg;
use vm_memory::{Bytes, GuestAddress};

use super::*;
use crate::digest::Digest;
use crate::disk::tests::{fill, values};
use crate::disk::{BLOCK, CACHE_BYTES_MAX, PowerLossOptions, SECTOR, SectorSize};
use crate::layout::{VIRTIO, VIRTIO_STRIDE};
use crate::machine::fake::{Op, Script};
use crate::machine::{DiskConfig, Machine, MachineConfig, Moment, MomentError, STATE_VERSION, Until};
use crate::virtio::blk::Latency;

/// Base address of the disk's registers. The console and the entropy source have the slots before it.
const SLOT: u64 = VIRTIO + 2 * VIRTIO_STRIDE;
/// Address of the rings of the disk's queue.
const RINGS: u64 = 0x100_8000;
/// Address of the requests. Each has 64 KiB for its header, status and data.
const REQUESTS: u64 = 0x180_0000;
/// Length of a round, i.e. of the time between two notifications by the guest, in instructions. At 1 GHz it is the same
/// number of nanoseconds.
const ROUND: u64 = 5_000;

/// Returns the script of a guest's disk driver, which sets the device up and then notifies it repeatedly. The test
/// fills the ring.
fn script() -> Script {
    let mut main: Vec<Op> = [
        (reg::VIRTIO_MMIO_STATUS, 3),
        (reg::VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0),
        (reg::VIRTIO_MMIO_DRIVER_FEATURES, 1 << 9),
        (reg::VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1),
        (reg::VIRTIO_MMIO_DRIVER_FEATURES, 1),
        (reg::VIRTIO_MMIO_STATUS, 11),
        (reg::VIRTIO_MMIO_QUEUE_SEL, 0),
        (reg::VIRTIO_MMIO_QUEUE_NUM, 128),
        (reg::VIRTIO_MMIO_QUEUE_DESC_LOW, RINGS as u32),
        (reg::VIRTIO_MMIO_QUEUE_AVAIL_LOW, RINGS as u32 + 0x1000),
        (reg::VIRTIO_MMIO_QUEUE_USED_LOW, RINGS as u32 + 0x2000),
        (reg::VIRTIO_MMIO_QUEUE_READY, 1),
        (reg::VIRTIO_MMIO_STATUS, 15),
    ]
    .map(|(register, value)| Op::Store(SLOT + u64::from(register), value))
    .to_vec();
    let top = main.len() as u64;
    main.extend([
        Op::Work(ROUND - 2),
        Op::Store(SLOT + u64::from(reg::VIRTIO_MMIO_QUEUE_NOTIFY), 0),
        Op::Jump(top),
    ]);
    Script::new(&main, &[])
}

fn config(disk: Disk) -> DiskConfig {
    DiskConfig { disk, serial: "data".into(), read_only: false, latency: Latency::default() }
}

fn machine(disk: Disk) -> Machine {
    script().machine_with(|c: &mut MachineConfig| c.disks = vec![config(disk)])
}

/// Makes request number `number` available. A request writes one value to a run of sectors, or flushes.
fn submit(machine: &Machine, number: u16, request: (u64, u32, u8)) {
    let memory = machine.ram().memory();
    let at = REQUESTS + 0x1_0000 * u64::from(number % 40);
    let (sector, sectors, value) = request;
    let kind: u32 = if sectors == 0 { 4 } else { 1 };
    memory.write_obj(kind, GuestAddress(at)).unwrap();
    memory.write_obj(sector, GuestAddress(at + 8)).unwrap();
    memory.write_slice(&vec![value; 512 * sectors as usize], GuestAddress(at + 0x1000)).unwrap();
    let mut parts = vec![(at, 16, 0)];
    if sectors > 0 {
        parts.push((at + 0x1000, 512 * sectors, 0));
    }
    parts.push((at + 0x20, 1, 2));
    let head = 3 * (number % 40);
    for (i, &(addr, len, flags)) in parts.iter().enumerate() {
        let (index, last) = (u64::from(head) + i as u64, i + 1 == parts.len());
        let descriptor = GuestAddress(RINGS + 16 * index);
        memory.write_obj::<u64>(addr, descriptor).unwrap();
        memory.write_obj::<u32>(len, GuestAddress(descriptor.0 + 8)).unwrap();
        memory.write_obj::<u16>(flags | u16::from(!last), GuestAddress(descriptor.0 + 12)).unwrap();
        memory.write_obj::<u16>(index as u16 + 1, GuestAddress(descriptor.0 + 14)).unwrap();
    }
    memory.write_obj(head, GuestAddress(RINGS + 0x1004 + 2 * u64::from(number % 128))).unwrap();
    memory.write_obj(number + 1, GuestAddress(RINGS + 0x1002)).unwrap();
}

/// Returns the number of completed requests, modulo 2^16.
fn used(machine: &Machine) -> u16 {
    machine.ram().memory().read_obj(GuestAddress(RINGS + 0x2002)).unwrap()
}

/// Runs round number `round`. `plan` lists one request for each round, which becomes available at the start of the
/// round.
fn round(machine: &mut Machine, plan: &[(u64, u32, u8)], round: usize) -> Digest {
    submit(machine, round as u16, plan[round]);
    machine.run(&Until::vtime((round as u64 + 1) * ROUND));
    machine.digest()
}

fn plan() -> impl Strategy<Value = Vec<(u64, u32, u8)>> {
    let request = (0u64..60, prop_oneof![1 => Just(0u32), 5 => 1u32..40], any::<u8>());
    proptest::collection::vec(request, 4..38)
}

fn streams(seed: u64) -> Streams {
    Streams::new(&Lineage::new(Seed::new(seed)), Owner::Faults)
}

fn data_disk() -> Disk {
    Disk::zeroed(100 * SECTOR).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// A machine that is restored in the middle of writes and flushes, with disk faults, continues as the original did.
    #[test]
    fn moments_in_the_middle_of_writes(plan in plan(), at: prop::sample::Index, ppm in prop_oneof![Just(0u32), 1u32..500_000]) {
        let at = at.index(plan.len());
        let pool = Pool::default();
        let mut first = machine(data_disk());
        first.disk_mut(0).unwrap().apply(1, DiskFault::Error { requests: Requests::All, ppm }).unwrap();
        let extra = Distribution::Uniform(0, 30_000);
        first.disk_mut(0).unwrap().apply(2, DiskFault::Latency { extra }).unwrap();
        let mut moment = None;
        let mut expected = Vec::new();
        for i in 0..plan.len() {
            if i == at {
                moment = Some(first.moment(&pool));
            }
            expected.push(round(&mut first, &plan, i));
        }
        let moment = moment.unwrap();
        prop_assert_eq!(moment.disks()[0].cached_bytes() % SECTOR, 0);
        let parts: Vec<DiskParts> = moment.disks().iter().map(DiskMoment::to_parts).collect();
        let stored = Moment::from_parts(STATE_VERSION, moment.state().into(), moment.memory().clone(), &parts).unwrap();
        let mut other = machine(data_disk());
        for (moment, machine) in [(&moment, &mut first), (&stored, &mut other)] {
            machine.restore(moment).unwrap();
            let again: Vec<Digest> = (at..plan.len()).map(|i| round(machine, &plan, i)).collect();
            prop_assert_eq!(&again, &expected[at..]);
        }
        // A power loss depends only on the disks and the random stream.
        let losses = [&mut first, &mut other].map(|machine| {
            let loss = machine.power_loss(&mut streams(7), 0, PowerLossOptions::default());
            (loss, machine.digest())
        });
        prop_assert_eq!(&losses[0], &losses[1]);
    }

    /// After a power loss or a reset, another machine gets the disks with the data that survived. A new machine and a
    /// restored machine then continue alike.
    #[test]
    fn disks_outlive_machines(plan in plan(), seed: u64, reset: bool) {
        let mut machine = machine(data_disk());
        let start = machine.moment(&Pool::default());
        for i in 0..plan.len() {
            round(&mut machine, &plan, i);
        }
        let in_flight = machine.state().virtio.iter().map(|transport| match transport.device() {
            crate::virtio::Device::Blk(blk) => blk.in_flight(),
            _ => 0,
        });
        prop_assert_eq!(in_flight.sum::<usize>(), plan.len() - usize::from(used(&machine)));
        let (newest, cached) = (values(&machine.disks()[0]), machine.disks()[0].cached_bytes());
        if reset {
            machine.reset_disks(&mut streams(seed), 0);
            prop_assert!(machine.disks()[0].cached_bytes() >= cached, "the drive has power");
        } else {
            let loss = machine.power_loss(&mut streams(seed), 0, PowerLossOptions::default());
            prop_assert_eq!(machine.disks()[0].cached_bytes(), 0);
            if !loss[0].lost_anything() && loss[0].in_flight.requests == 0 {
                prop_assert_eq!(&values(&machine.disks()[0]), &newest);
            }
        }
        // No request completes after the power loss or the reset.
        let done = used(&machine);
        machine.run(&Until::vtime(machine.vtime() + 1_000_000));
        prop_assert_eq!(used(&machine), done);
        let disks = machine.disks().to_vec();

        let mut cold = self::machine(disks[0].clone());
        machine.restore(&start).unwrap();
        prop_assert!(values(&machine.disks()[0]).iter().all(|value| *value == Some(0)));
        machine.put_disks(disks.clone()).unwrap();
        prop_assert_eq!(values(&machine.disks()[0]), values(&disks[0]));
        prop_assert_eq!(machine.digest(), cold.digest());
        for i in 0..plan.len() {
            prop_assert_eq!(round(&mut machine, &plan, i), round(&mut cold, &plan, i));
        }
    }
}

#[test]
fn disks_of_another_make_are_refused() {
    let moment = machine(data_disk()).moment(&Pool::default());
    let content = |value| Disk::from_bytes(vec![value; 100 * 512].into()).unwrap();
    let large = Disk::zeroed(BLOCK * 100).unwrap();
    let larger = large.clone().with_sectors(SectorSize::Bytes4096).unwrap();
    for (moment, disk, expected) in [
        (moment.clone(), Disk::zeroed(99 * SECTOR).unwrap(), "bytes of a disk: 51200 there, 50688 here"),
        (moment, content(0), "base of a disk"),
        (machine(content(1)).moment(&Pool::default()), content(2), "base of a disk"),
        (machine(large).moment(&Pool::default()), larger, "bytes of a disk's sector: 512 there, 4096 here"),
    ] {
        let mut other = machine(disk);
        let before = other.digest();
        let error = other.restore(&moment).unwrap_err();
        assert!(
            matches!(error, MomentError::Other { .. }) && error.to_string().contains(expected),
            "{error}"
        );
        let error = other.put_disks(vec![Disk::zeroed(SECTOR).unwrap()]).unwrap_err().to_string();
        assert!(error.starts_with("bytes of a disk: 512 given"), "{error}");
        let error = other.put_disks(Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "disks: 0 given, 1 in the machine");
        assert_eq!(other.digest(), before, "nothing has changed");
    }
}

/// Everett does not hash the base (the original content) of a read-only disk. It distinguishes bases only by digests
/// that the test gives.
#[test]
fn a_large_root_is_not_hashed() {
    let folder = tempfile::tempdir().unwrap();
    let root = |name: &str, content: u8, digest: Option<[u8; 32]>| {
        let path = folder.path().join(name);
        std::fs::write(&path, [content; 512]).unwrap();
        DiskConfig { read_only: true, ..config(Disk::open(&path, digest).unwrap()) }
    };
    let machine = |root| script().machine_with(|c: &mut MachineConfig| c.disks = vec![root]);
    let moment = machine(root("a", 1, None)).moment(&Pool::default());
    assert_eq!(moment.disks()[0].make.base, None);
    machine(root("b", 2, None)).restore(&moment).unwrap();
    let moment = machine(root("a", 1, Some([5; 32]))).moment(&Pool::default());
    machine(root("a", 1, Some([5; 32]))).restore(&moment).unwrap();
    let error = machine(root("b", 2, Some([6; 32]))).restore(&moment).unwrap_err().to_string();
    assert!(error.contains("base of a disk: 0505050505050505 there, 0606060606060606 here"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// A manipulated stored disk is rejected, or works and can be part of a moment like any other disk.
    #[test]
    fn hostile_disks_are_harmless(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        length in prop_oneof![3 => Just(0isize), 1 => -2000isize..2000],
    ) {
        let mut disk = data_disk();
        for i in 0..9 {
            disk.complete(&[fill(&disk, 9 * i, &[i as u8; 12])]);
        }
        disk.apply(1, DiskFault::Latency { extra: Distribution::Quantiles(vec![(0, 5), (1_000_000, 9)]) }).unwrap();
        let mut machine = machine(disk);
        let moment = machine.moment(&Pool::default());
        let mut parts = moment.disks()[0].to_parts();
        let len = parts.state.len();
        for (index, value) in changes {
            // Half of the changes hit the header at the front.
            let index = index.index(len);
            let index = if value % 2 == 0 { index } else { index % 160 };
            parts.state[index] = value;
        }
        parts.state.resize(len.saturating_add_signed(length), 1);
        let made = Moment::from_parts(STATE_VERSION, moment.state().into(), moment.memory().clone(), &[parts]);
        if let Ok(made) = made && machine.restore(&made).is_ok() {
            prop_assert!(machine.disks()[0].cached_bytes() <= CACHE_BYTES_MAX);
            for i in 0..20 {
                round(&mut machine, &[(3, 20, 7); 20], i);
            }
            machine.power_loss(&mut streams(1), 0, PowerLossOptions { tear_sectors: true });
            let (digest, again) = (machine.digest(), machine.moment(&Pool::default()));
            prop_assert!(machine.restore(&again).is_ok());
            prop_assert_eq!(machine.digest(), digest);
        }
    }
}

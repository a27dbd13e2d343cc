//! Tests with hostile drivers. Whatever they do, the result is an error status or DEVICE_NEEDS_RESET.

use proptest::prelude::*;
use virtio_bindings::virtio_mmio as reg;

use crate::disk::Disk;
use crate::virtio::Device;
use crate::virtio::blk::{Blk, Latency};
use crate::virtio::console::Console;
use crate::virtio::net::{Net, Wire};
use crate::virtio::rng::Rng;
use crate::virtio::testing::{NEXT, Rig, WRITE};

fn device(kind: u8) -> (Device, Vec<Disk>, u16) {
    match kind {
        0 => {
            let disk = Disk::zeroed(1 << 20).unwrap();
            let blk = Blk::new(0, &disk, "disk", false, Latency::default()).unwrap();
            (Device::Blk(blk), vec![disk], 1)
        }
        1 => (Device::Net(Net::new([2; 6], Wire::Attached)), Vec::new(), 2),
        2 => (Device::Rng(Rng::default()), Vec::new(), 1),
        _ => (Device::Console(Console::default()), Vec::new(), 14),
    }
}

fn rig(kind: u8) -> Rig {
    let (device, disks, queues) = device(kind);
    Rig::running(device, disks, queues, 16)
}

/// For each device: the argument of `device` that creates it, and the number of a queue on which it takes requests.
const QUEUES: [(u8, u16); 4] = [(0, 0), (1, 1), (2, 0), (3, 3)];

#[test]
fn chains_that_do_not_end_need_a_reset() {
    for (kind, queue) in QUEUES {
        let flags = if kind == 2 { WRITE } else { 0 };
        // The chain loops, or refers to a descriptor beyond the table.
        for next in [0, 16, u16::MAX] {
            let mut rig = rig(kind);
            let at = rig.buffer(&[0; 64]);
            rig.descriptor(queue, 0, (at, 16, NEXT | flags, next));
            rig.submit(queue, 0);
            assert!(rig.needs_reset(), "device {kind}, next {next}");
            assert_eq!(rig.interrupt() & 2, 2);
            assert_eq!(rig.notes().len(), 1);
            // The device does nothing more until the driver resets it.
            rig.submit(queue, 0);
            assert!(rig.notes().is_empty());
            rig.set(reg::VIRTIO_MMIO_STATUS, 0);
            assert!(!rig.needs_reset());
        }
    }
}

#[test]
fn buffers_outside_memory_need_a_reset() {
    for (kind, queue) in QUEUES {
        for (addr, len) in [(32 << 20, 1), (u64::MAX, 1), (0x1000, u32::MAX), (u64::MAX - 10, 100)] {
            let mut rig = rig(kind);
            rig.descriptor(queue, 0, (addr, len, if kind == 2 { WRITE } else { 0 }, 0));
            rig.submit(queue, 0);
            assert!(rig.needs_reset(), "device {kind}: {len} bytes at {addr:#x}");
        }
    }
}

#[test]
fn indices_out_of_range_need_a_reset() {
    for (kind, queue) in QUEUES {
        let mut rig = rig(kind);
        rig.submit(queue, 16);
        assert!(rig.needs_reset(), "a head beyond the table, device {kind}");
        let mut rig = self::rig(kind);
        let memory = rig.ram.memory();
        let available = vm_memory::GuestAddress(Rig::rings(queue) + 0x8002);
        vm_memory::Bytes::write_obj(memory, 17u16, available).unwrap();
        rig.set(reg::VIRTIO_MMIO_QUEUE_NOTIFY, queue.into());
        assert!(rig.needs_reset(), "more available than entries, device {kind}");
    }
}

#[test]
fn requests_without_their_parts_need_a_reset() {
    let mut rig = rig(0);
    let at = rig.buffer(&[0; 64]);
    rig.chain(0, 0, &[(at, 16, false)]);
    assert!(rig.needs_reset(), "no status byte");
    let mut rig = self::rig(0);
    rig.chain(0, 0, &[(at, 15, false), (at, 1, true)]);
    assert!(rig.needs_reset(), "no complete header");
    let mut rig = self::rig(0);
    rig.chain(0, 0, &[(at, 1, true), (at, 16, false)]);
    assert!(rig.needs_reset(), "readable after writable");
    let mut rig = self::rig(2);
    rig.chain(0, 0, &[(at, 16, false)]);
    assert!(rig.needs_reset(), "nothing to write to");
}

/// A guest submits a request again before it completes. When more requests are in flight than the queue has entries,
/// the device needs a reset.
#[test]
fn resubmitted_requests_are_bounded() {
    let mut rig = rig(0);
    let at = rig.buffer(&[0; 64]);
    rig.chain(0, 0, &[(at, 16, false), (at + 32, 1, true)]);
    for _ in 0..200 {
        rig.submit(0, 0);
    }
    assert!(rig.needs_reset());
    assert!(rig.events.len() <= 128);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No access to a register causes a panic, whatever its width, before, during or after the set-up of the device.
    /// The device's state can be stored and read back afterwards.
    #[test]
    fn any_register_access_is_harmless(
        kind in 0u8..4,
        running in any::<bool>(),
        accesses in proptest::collection::vec((0u64..0x220, any::<u32>(), 0u8..4, 0u8..9), 0..200),
    ) {
        let (device, disks, queues) = device(kind);
        let mut rig = if running { Rig::running(device, disks, queues, 16) } else { Rig::new(device, disks) };
        for (offset, value, how, size) in accesses {
            let value = if how & 1 == 0 { value } else { value & 0x1f };
            if how == 3 {
                rig.transport.read(offset, size);
            } else {
                let aligned = how != 2;
                let (offset, size) = if aligned { (offset & !3, 4) } else { (offset, size) };
                rig.access(offset, size, value.into());
            }
            rig.advance(rig.now + u64::from(value & 0xffff));
            rig.transport.line();
        }
        let stored = postcard::to_stdvec(&rig.transport).unwrap();
        prop_assert_eq!(postcard::from_bytes::<crate::virtio::mmio::Transport>(&stored).unwrap(), rig.transport);
    }

    /// No content of the rings, tables and buffers causes a panic. The driver can reset the device afterwards.
    #[test]
    fn any_queue_content_is_harmless(
        kind in 0u8..4,
        queue in 0u16..14,
        descriptors in proptest::collection::vec(
            (prop_oneof![0u64..0x200_0000, any::<u64>()], prop_oneof![0u32..5000, any::<u32>()], 0u16..8, 0u16..18), 16
        ),
        heads in proptest::collection::vec(0u16..18, 1..40),
        noise in proptest::collection::vec(any::<u8>(), 256),
    ) {
        let (_, _, queues) = device(kind);
        let queue = queue % queues;
        let mut rig = rig(kind);
        let at = rig.buffer(&noise);
        for (i, (addr, len, flags, next)) in descriptors.into_iter().enumerate() {
            // Half of the descriptors point to the random bytes, so that requests have content.
            let addr = if i % 2 == 0 { at + (addr % 200) } else { addr };
            rig.descriptor(queue, i as u16, (addr, len, flags, next));
        }
        for head in heads {
            rig.submit(queue, head);
            rig.advance(rig.now + 30_000);
            rig.interrupt();
            prop_assert!(rig.events.len() <= 128);
        }
        rig.set(reg::VIRTIO_MMIO_STATUS, 0);
        prop_assert_eq!(rig.get(reg::VIRTIO_MMIO_STATUS), 0);
        prop_assert!(rig.notes().len() <= 1, "a device breaks once");
    }
}

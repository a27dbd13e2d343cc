use everett_streams::Purpose;
use virtio_bindings::virtio_mmio as reg;

use crate::virtio::Device;
use crate::virtio::rng::Rng;
use crate::virtio::testing::{Rig, streams};

fn rng() -> Device {
    Device::Rng(Rng::default())
}

#[test]
fn the_transport_identifies_its_device() {
    let mut rig = Rig::new(rng(), Vec::new());
    assert_eq!(rig.get(reg::VIRTIO_MMIO_MAGIC_VALUE), 0x7472_6976);
    assert_eq!(rig.get(reg::VIRTIO_MMIO_VERSION), 2);
    assert_eq!(rig.get(reg::VIRTIO_MMIO_DEVICE_ID), 4);
    assert_eq!(rig.get(reg::VIRTIO_MMIO_QUEUE_NUM_MAX), 64);
    rig.set(reg::VIRTIO_MMIO_QUEUE_SEL, 1);
    assert_eq!(rig.get(reg::VIRTIO_MMIO_QUEUE_NUM_MAX), 0, "there is no queue 1");
    assert_eq!(rig.transport.read(0, 1), 0, "registers are doublewords");
    assert_eq!(rig.get(reg::VIRTIO_MMIO_SHM_LEN_LOW), u32::MAX);
}

#[test]
fn features_must_be_known_and_modern() {
    let ok = |low: u32, high: u32| {
        let mut rig = Rig::new(rng(), Vec::new());
        rig.set(reg::VIRTIO_MMIO_STATUS, 3);
        for (select, value) in [(0, low), (1, high)] {
            rig.set(reg::VIRTIO_MMIO_DRIVER_FEATURES_SEL, select);
            rig.set(reg::VIRTIO_MMIO_DRIVER_FEATURES, value);
        }
        rig.set(reg::VIRTIO_MMIO_STATUS, 11);
        // If the device has refused FEATURES_OK, it refuses DRIVER_OK, too.
        rig.set(reg::VIRTIO_MMIO_STATUS, 15);
        rig.get(reg::VIRTIO_MMIO_STATUS) == 15
    };
    assert!(ok(0, 1));
    assert!(ok(1 << 28 | 1 << 29, 1));
    assert!(!ok(0, 0), "VERSION_1 is required");
    assert!(!ok(1, 1), "an unknown feature");
    assert!(!ok(0, 3), "an unknown feature");
}

#[test]
fn a_queue_outside_memory_needs_a_reset() {
    for base in [32 << 20, (32 << 20) - 0x9000, u64::MAX - 0xffff] {
        let mut rig = Rig::running(rng(), Vec::new(), 1, 8);
        rig.set(reg::VIRTIO_MMIO_QUEUE_READY, 0);
        rig.set_queue(0, base);
        assert!(rig.needs_reset(), "{base:#x}");
        assert_eq!(rig.get(reg::VIRTIO_MMIO_QUEUE_READY), 0);
        assert_eq!(rig.interrupt(), 2);
        assert_eq!(rig.notes().len(), 1);
        rig.set(reg::VIRTIO_MMIO_STATUS, 0);
        assert_eq!(rig.get(reg::VIRTIO_MMIO_STATUS), 0);
        rig.start(1, 8);
        assert!(!rig.needs_reset());
    }
}

#[test]
fn rng_gives_the_streams_bytes() {
    let mut rig = Rig::running(rng(), Vec::new(), 1, 8);
    let (a, b) = (rig.buffer(&[0; 100]), rig.buffer(&[0; 100]));
    rig.chain(0, 0, &[(a, 64, true), (b, 36, true)]);
    assert_eq!(rig.used(0), [(0, 100)]);
    assert_eq!(rig.interrupt(), 1);
    assert!(!rig.transport.line());
    let mut expected = [0; 100];
    streams().fill(Purpose::Entropy, &mut expected);
    assert_eq!([rig.read(a, 64), rig.read(b, 36)].concat(), expected);
    // A request for 8 MiB gets an answer of bounded length.
    let huge = rig.buffer(&[0; 8192]);
    rig.chain(0, 2, &[(huge, 8 << 20, true)]);
    assert_eq!(rig.used(0), [(2, 4096)]);
}

#[test]
fn state_survives_storage_with_queues() {
    let mut rig = Rig::running(rng(), Vec::new(), 1, 8);
    let a = rig.buffer(&[0; 8]);
    rig.chain(0, 0, &[(a, 8, true)]);
    let stored = postcard::to_stdvec(&rig.transport).unwrap();
    rig.transport = postcard::from_bytes(&stored).unwrap();
    rig.chain(0, 1, &[(a, 8, true)]);
    assert_eq!(rig.used(0), [(0, 8), (1, 8)]);
}

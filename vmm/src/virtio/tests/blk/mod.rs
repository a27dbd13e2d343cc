mod volatile;

use proptest::prelude::*;

use crate::disk::Disk;
use crate::virtio::Device;
use crate::virtio::blk::{Blk, Latency};
use crate::virtio::testing::{INDIRECT, Rig, WRITE};

const SECTORS: u64 = 2048;

fn rig(read_only: bool) -> Rig {
    let content: Vec<u8> = (0..SECTORS * 512).map(|i| (i / 512) as u8).collect();
    let disk = Disk::from_bytes(content.into()).unwrap();
    let blk = Blk::new(0, &disk, "everett-root", read_only, Latency::default()).unwrap();
    Rig::running(Device::Blk(blk), vec![disk], 1, 128)
}

/// Submits a request with this data segment and lets it complete. Returns its status and the used length.
fn request(rig: &mut Rig, kind: u32, sector: u64, data: (u64, u32, bool)) -> (u8, u32) {
    let mut header = kind.to_le_bytes().to_vec();
    header.extend([0; 4]);
    header.extend(sector.to_le_bytes());
    let header = rig.buffer(&header);
    let status = rig.buffer(&[0xee]);
    let mut parts = vec![(header, 16, false)];
    if data.1 > 0 {
        parts.push(data);
    }
    parts.push((status, 1, true));
    rig.chain(0, 0, &parts);
    rig.advance(rig.now + 1_000_000_000);
    let used = rig.used(0);
    assert_eq!(used.len(), 1, "{:?}", rig.notes());
    (rig.read(status, 1)[0], used[0].1)
}

#[test]
fn reads_writes_and_identifies() {
    let mut rig = rig(false);
    let at = rig.buffer(&[0; 1024]);
    assert_eq!(request(&mut rig, 0, 7, (at, 1024, true)), (0, 1025));
    assert_eq!(rig.read(at, 1024), [vec![7; 512], vec![8; 512]].concat());
    let content = rig.buffer(&[0xab; 512]);
    assert_eq!(request(&mut rig, 1, 8, (content, 512, false)), (0, 1));
    assert_eq!(request(&mut rig, 0, 8, (at, 512, true)), (0, 513));
    assert_eq!(rig.read(at, 512), vec![0xab; 512]);
    assert_eq!(request(&mut rig, 4, 0, (0, 0, false)), (0, 1), "flush");
    assert_eq!(request(&mut rig, 8, 0, (at, 20, true)), (0, 21));
    assert_eq!(&rig.read(at, 20), b"everett-root\0\0\0\0\0\0\0\0");
    assert_eq!(request(&mut rig, 99, 0, (0, 0, false)).0, 2, "unsupported");
}

#[test]
fn a_request_out_of_bounds_is_an_io_error() {
    let mut rig = rig(false);
    let at = rig.buffer(&[0x55; 4096]);
    for (kind, writable) in [(0, true), (1, false)] {
        for sector in [SECTORS, SECTORS - 1, u64::MAX, u64::MAX / 512] {
            assert_eq!(request(&mut rig, kind, sector, (at, 1024, writable)), (1, 1), "{kind} {sector}");
        }
        assert_eq!(request(&mut rig, kind, 0, (at, 511, writable)), (1, 1), "not whole sectors");
    }
    assert_eq!(rig.read(at, 4096), vec![0x55; 4096]);
    assert!(rig.disks[0].written_blocks().is_empty());
}

#[test]
fn a_read_only_disk_stays_as_it_is() {
    let mut rig = rig(true);
    let at = rig.buffer(&[1; 512]);
    assert_eq!(request(&mut rig, 1, 0, (at, 512, false)), (1, 1));
    let range = rig.buffer(&[0; 16]);
    assert_eq!(request(&mut rig, 11, 0, (range, 16, false)), (1, 1));
    assert!(rig.disks[0].written_blocks().is_empty());
}

#[test]
fn discard_and_write_zeroes_leave_zeroes() {
    for kind in [11, 13] {
        let mut rig = rig(false);
        let range = |sector: u64, sectors: u32, flags: u32| {
            [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
        };
        let table = rig.buffer(&[range(3, 20, 0), range(100, 1, 0)].concat());
        assert_eq!(request(&mut rig, kind, 0, (table, 32, false)), (0, 1));
        for (sector, expected) in [(2, 2), (3, 0), (22, 0), (23, 23), (99, 99), (100, 0), (101, 101)] {
            let mut buf = [9; 512];
            rig.disks[0].read(sector * 512, &mut buf);
            assert_eq!(buf, [expected; 512], "{sector}");
        }
        for (bad, status) in [(range(SECTORS, 1, 0), 1), (range(u64::MAX, 1, 0), 1), (range(0, 1, 2), 2)] {
            let table = rig.buffer(&bad);
            assert_eq!(request(&mut rig, kind, 0, (table, 16, false)).0, status);
        }
        let table = rig.buffer(&[0; 4096]);
        assert_eq!(request(&mut rig, kind, 0, (table, 15, false)).0, 1);
        assert_eq!(request(&mut rig, kind, 0, (table, 16 * 5, false)).0, 1, "too many ranges");
    }
}

#[test]
fn requests_take_their_time_and_keep_their_order() {
    let mut rig = rig(false);
    let header = rig.buffer(&[0; 16]);
    let flush = rig.buffer(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let (data, status) = (rig.buffer(&[0; 1024]), rig.buffer(&[0; 3]));
    rig.chain(0, 0, &[(flush, 16, false), (status, 1, true)]);
    rig.chain(0, 10, &[(header, 16, false), (data, 1024, true), (status + 1, 1, true)]);
    rig.chain(0, 20, &[(header, 16, false), (data, 1024, true), (status + 2, 1, true)]);
    rig.advance(20_499);
    assert_eq!(rig.used(0), []);
    rig.advance(20_500);
    assert_eq!(rig.used(0), [(10, 1025), (20, 1025)]);
    rig.advance(100_000);
    assert_eq!(rig.used(0), [(0, 1)]);
}

#[test]
fn a_reset_forgets_requests_in_flight() {
    let mut rig = rig(false);
    let header = rig.buffer(&[0; 16]);
    let status = rig.buffer(&[0xee]);
    rig.chain(0, 0, &[(header, 16, false), (status, 1, true)]);
    assert_eq!(rig.events.len(), 1);
    let stored = postcard::to_stdvec(&rig.transport).unwrap();
    rig.transport = postcard::from_bytes(&stored).unwrap();
    rig.set(virtio_bindings::virtio_mmio::VIRTIO_MMIO_STATUS, 0);
    assert!(rig.events.is_empty());
    rig.advance(1_000_000);
    assert_eq!(rig.read(status, 1), [0xee]);
}

#[test]
fn an_indirect_table_works_unless_it_is_nested() {
    let mut rig = rig(false);
    let header = rig.buffer(&[0; 16]);
    let (data, status) = (rig.buffer(&[0; 512]), rig.buffer(&[0xee]));
    let table = rig.buffer(&[0; 64]);
    rig.raw_descriptor(table, (header, 16, 1, 1));
    rig.raw_descriptor(table + 16, (data, 512, 1 | WRITE, 2));
    rig.raw_descriptor(table + 32, (status, 1, WRITE, 0));
    rig.descriptor(0, 5, (table, 48, INDIRECT, 0));
    rig.submit(0, 5);
    rig.advance(1_000_000);
    assert_eq!((rig.used(0), rig.read(status, 1)), (vec![(5, 513)], vec![0]));
    // The device must refuse an indirect table within an indirect table.
    rig.raw_descriptor(table, (table, 48, INDIRECT, 0));
    rig.submit(0, 5);
    assert!(rig.needs_reset());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Reads and writes of any shape have the same results as on an array.
    #[test]
    fn equals_an_array(steps in proptest::collection::vec((0u64..SECTORS, 1u32..20, any::<u8>(), any::<bool>()), 1..30)) {
        let mut rig = rig(false);
        let mut oracle: Vec<u8> = (0..SECTORS * 512).map(|i| (i / 512) as u8).collect();
        for (sector, sectors, value, write) in steps {
            let len = sectors * 512;
            let inside = sector + u64::from(sectors) <= SECTORS;
            let at = rig.buffer(&vec![value; len as usize]);
            let (status, _) = request(&mut rig, u32::from(write), sector, (at, len, !write));
            prop_assert_eq!(status == 0, inside);
            let range = (sector * 512) as usize..(sector * 512) as usize + len as usize;
            if !inside {
                continue;
            }
            if write { oracle[range].fill(value) } else { prop_assert_eq!(&rig.read(at, len as usize), &oracle[range]); }
        }
    }
}

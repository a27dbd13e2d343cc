use crate::virtio::Device;
use crate::virtio::net::{BACKLOG_FRAMES_MAX, FRAME_BYTES_MAX, FRAMES_PER_MS_MAX, Net, Wire};
use crate::virtio::testing::Rig;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn rig(wire: Wire) -> Rig {
    Rig::running(Device::Net(Net::new(MAC, wire)), Vec::new(), 2, 128)
}

fn deliver(rig: &mut Rig, at: u64, frame: Vec<u8>) -> bool {
    rig.with(|transport, cx| match transport.device_mut() {
        Device::Net(card) => card.deliver(at, frame, cx),
        other => panic!("{other:?}"),
    })
}

fn dropped(rig: &Rig) -> u64 {
    match rig.transport.device() {
        Device::Net(card) => card.dropped(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_driver_finds_its_address_and_a_link() {
    let rig = rig(Wire::Attached);
    assert_eq!(rig.transport.read(0x100, 4).to_le_bytes()[..4], MAC[..4]);
    assert_eq!(rig.transport.read(0x106, 2), 1, "the link is up");
    assert_eq!(rig.transport.read(0x10a, 2), 1500);
}

#[test]
fn frames_go_out_without_their_header() {
    let mut rig = rig(Wire::Attached);
    rig.now = 77;
    let packet = rig.buffer(&[vec![0; 12], (0..60).collect()].concat());
    rig.chain(1, 0, &[(packet, 12, false), (packet + 12, 60, false)]);
    let frames = rig.output.take_frames();
    assert_eq!((frames[0].vtime, frames[0].slot), (77, 3));
    assert_eq!(frames[0].bytes, (0..60).collect::<Vec<u8>>());
    assert_eq!(rig.used(1), [(0, 0)]);
    for len in [12, 20, 12 + FRAME_BYTES_MAX as u32 + 1] {
        let packet = rig.buffer(&vec![0; len as usize]);
        rig.chain(1, 0, &[(packet, len, false)]);
    }
    assert_eq!((rig.output.take_frames().len(), rig.used(1).len(), dropped(&rig)), (0, 3, 3));
}

#[test]
fn the_frames_that_a_card_sends_per_millisecond_are_bounded() {
    const MS: u64 = 1_000_000;
    let mut rig = rig(Wire::Attached);
    let packet = rig.buffer(&[0; 72]);
    for ms in [3, 4, 9] {
        let mut sent = 0;
        for i in 0..u64::from(FRAMES_PER_MS_MAX) + 100 {
            rig.now = ms * MS + 50 * i;
            rig.chain(1, 0, &[(packet, 72, false)]);
            if i % 1_000 == 0 {
                sent += rig.output.take_frames().len();
            }
        }
        sent += rig.output.take_frames().len();
        assert_eq!(sent, FRAMES_PER_MS_MAX as usize);
    }
    assert_eq!(dropped(&rig), 300);
}

#[test]
fn an_unplugged_card_swallows_frames() {
    let mut rig = rig(Wire::Unplugged);
    let packet = rig.buffer(&[0; 72]);
    rig.chain(1, 0, &[(packet, 72, false)]);
    assert_eq!((rig.output.take_frames().len(), rig.used(1).len()), (0, 1));
}

#[test]
fn frames_arrive_at_their_vtime() {
    let mut rig = rig(Wire::Attached);
    let buffer = rig.buffer(&[0xff; 2048]);
    rig.chain(0, 0, &[(buffer, 2048, true)]);
    assert!(deliver(&mut rig, 500, vec![1; 60]));
    assert!(deliver(&mut rig, 400, vec![2; 64]));
    assert!(!deliver(&mut rig, 400, vec![2; FRAME_BYTES_MAX + 1]));
    rig.advance(399);
    assert_eq!(rig.used(0), []);
    rig.advance(600);
    assert_eq!(rig.used(0), [(0, 76)]);
    assert_eq!(rig.read(buffer, 12), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(rig.read(buffer + 12, 64), [2; 64]);
    // The frame for vtime 500 had waited for a buffer.
    rig.chain(0, 1, &[(buffer, 2048, true)]);
    assert_eq!(rig.used(0), [(1, 72)]);
}

#[test]
fn the_backlog_is_bounded_and_frames_for_short_buffers_are_dropped() {
    let mut rig = rig(Wire::Attached);
    for at in 0..BACKLOG_FRAMES_MAX as u64 + 9 {
        deliver(&mut rig, at, vec![0; 60]);
    }
    rig.advance(10_000);
    assert_eq!(dropped(&rig), 9);
    let buffer = rig.buffer(&[0; 64]);
    rig.chain(0, 0, &[(buffer, 64, true)]);
    assert_eq!((rig.used(0), dropped(&rig)), (vec![(0, 0)], 10));
}

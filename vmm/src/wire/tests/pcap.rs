//! Tests of captures, which another implementation reads back.

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;
use crate::virtio::net::FRAME_BYTES_MAX;
use crate::wire::pcapng::{Outcomes, PcapNg};

/// Start of the world: 2026-01-01, in seconds since 1970.
const EPOCH_S: u64 = 1_767_225_600;

fn read(bytes: &[u8]) -> Vec<EnhancedPacketBlock<'static>> {
    let mut reader = PcapNgReader::new(bytes).unwrap();
    let mut packets = vec![];
    let mut names = vec![];
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(block) => {
                assert!(block.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                names.extend(block.options.iter().filter_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(block) => packets.push(block.into_owned()),
            Block::InterfaceStatistics(block) => {
                assert_eq!(block.options, [InterfaceStatisticsOption::Comment("the end".into())]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["n0", "n1"]);
    packets
}

#[test]
fn captures_are_read_back() {
    let mut wire = wire(2, Distribution::Constant(200_000));
    let mut capture = PcapNg::new(vec![], wire.ports(), EPOCH_S).unwrap();
    let bytes = frame(mac(1), mac(0), 61, 77);
    let mut send = |wire: &mut Wire, at, bytes: &[u8]| {
        let number = wire.send(0, at, bytes.to_vec());
        capture.sent(0, at, number, bytes, &Outcomes::new(&wire.take_steps())).unwrap();
    };
    send(&mut wire, 5, &bytes);
    wire.apply(1, &NetworkFault::Loss { links: Links::all(), ppm: 1_000_000 }, 6).unwrap();
    send(&mut wire, 7, &bytes);
    send(&mut wire, 8, &vec![0xaa; FRAME_BYTES_MAX + 2]);
    wire.heal(1, 9);
    for delivery in drain(&mut wire, 300_000) {
        capture.delivered(&delivery, &Outcomes::default()).unwrap();
    }
    let number = wire.send(0, 400_000, bytes.clone());
    capture.sent(0, 400_000, number, &bytes, &Outcomes::default()).unwrap();
    wire.detach(1, 400_001);
    assert_eq!(drain(&mut wire, S), []);
    for step in wire
        .take_steps()
        .iter()
        .filter(|step| step.kind == (FrameStepKind::Drop { why: DropReason::Detached }))
    {
        capture.lost(step).unwrap();
    }
    assert!(capture.sent(2, 0, 0, &bytes, &Outcomes::default()).is_err());

    let packets = read(&capture.finish().unwrap());
    let seen: Vec<(u32, u64, usize, u32)> = packets
        .iter()
        .map(|packet| {
            let at = packet.timestamp.as_nanos() as u64 - EPOCH_S * S;
            (packet.interface_id, at, packet.data.len(), packet.original_len)
        })
        .collect();
    let expected = [
        (0, 5, 61, 61),
        (0, 7, 61, 61),
        (0, 8, FRAME_BYTES_MAX + 2, FRAME_BYTES_MAX as u32 + 2),
        (1, 200_006, 61, 61),
        (0, 400_000, 61, 61),
        (1, 600_001, 0, 61),
    ];
    assert_eq!(seen, expected);
    assert!(packets[0].data == bytes && packets[3].data == bytes);
    let (inbound, outbound) = (EnhancedPacketOption::Flags(1), EnhancedPacketOption::Flags(2));
    let comment = |text: &'static str| EnhancedPacketOption::Comment(text.into());
    let options: Vec<_> = packets.into_iter().map(|packet| packet.options).collect();
    let expected = [
        vec![outbound.clone()],
        vec![outbound.clone(), comment("frame 1 to n1 lost: loss: EtherType 0x88b5")],
        vec![outbound.clone(), comment("frame 2 lost: length: EtherType 0xaaaa")],
        vec![inbound.clone()],
        vec![outbound],
        vec![inbound, comment("frame 3 to n1 lost: detached: EtherType 0x88b5")],
    ];
    assert_eq!(options, expected);
}

/// An extra copy, a late arrival and flipped bits are comments on the packet that arrives, after the comments of the
/// caller.
#[test]
fn comments_say_what_faults_did_to_arrivals() {
    let wire = wire(2, Distribution::Constant(200_000));
    let bytes = frame(mac(1), mac(0), 61, 77);
    let step = |frame, kind, flipped| FrameStep {
        kind,
        vtime: 300_000_000 + frame,
        sent_at: 100_000_000,
        from: 0,
        to: Some(1),
        frame,
        len: 61,
        flipped,
        summary: Summary::of(&bytes),
    };
    let kinds = [FrameStepKind::Deliver, FrameStepKind::Duplicate, FrameStepKind::Timeout];
    let steps: Vec<FrameStep> = (0..).zip(kinds).map(|(frame, kind)| step(frame, kind, frame == 2)).collect();
    let outcomes = Outcomes::new(&steps);
    let mut capture = PcapNg::new(vec![], wire.ports(), EPOCH_S).unwrap();
    for frame in 0..3 {
        let delivery = Delivery { at: 300_000_000 + frame, port: 1, frame, bytes: bytes.clone() };
        if frame == 1 {
            capture.comment("fault #0 begins".to_owned());
        }
        capture.delivered(&delivery, &outcomes).unwrap();
    }
    capture.comment("the end".to_owned());
    let packets = read(&capture.finish().unwrap());
    let comments = |packet: &EnhancedPacketBlock<'_>| -> Vec<String> {
        let comment = |option: &EnhancedPacketOption<'_>| match option {
            EnhancedPacketOption::Comment(text) => Some(text.to_string()),
            _ => None,
        };
        packet.options.iter().filter_map(comment).collect()
    };
    let expected = [
        &[][..],
        &["fault #0 begins", "frame 1 duplicated: an extra copy"],
        &[
            "frame 2 delayed: it arrives 200000 us after it was sent",
            "frame 2 corrupted: a fault flipped bits of it",
        ],
    ];
    assert_eq!(packets.iter().map(comments).collect::<Vec<_>>(), expected);
}

/// The error of a full disk is returned.
#[test]
fn errors_of_the_writer_are_returned() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = PcapNg::new(Full, &[], EPOCH_S).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

//! Tests of captures, which another implementation reads back.

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;
use crate::virtio::net::FRAME_BYTES_MAX;
use crate::wire::pcapng::PcapNg;

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
        capture.sent(0, at, number, bytes, &wire.take_steps()).unwrap();
    };
    send(&mut wire, 5, &bytes);
    wire.apply(1, &NetworkFault::Loss { links: Links::all(), ppm: 1_000_000 }, 6).unwrap();
    send(&mut wire, 7, &bytes);
    send(&mut wire, 8, &vec![0xaa; FRAME_BYTES_MAX + 2]);
    wire.heal(1, 9);
    for delivery in drain(&mut wire, 300_000) {
        capture.delivered(&delivery).unwrap();
    }
    let number = wire.send(0, 400_000, bytes.clone());
    capture.sent(0, 400_000, number, &bytes, &[]).unwrap();
    wire.detach(1, 400_001);
    assert_eq!(drain(&mut wire, S), []);
    for step in wire
        .take_steps()
        .iter()
        .filter(|step| step.kind == (FrameStepKind::Drop { why: DropReason::Detached }))
    {
        capture.lost(step).unwrap();
    }
    assert!(capture.sent(2, 0, 0, &bytes, &[]).is_err());

    let packets = read(&capture.into_inner());
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
        (0, 8, FRAME_BYTES_MAX, FRAME_BYTES_MAX as u32 + 2),
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
        vec![outbound.clone(), comment("frame 1 to port 1 lost: Loss: EtherType 0x88b5")],
        vec![outbound.clone(), comment("frame 2 lost: Length: EtherType 0xaaaa")],
        vec![inbound.clone()],
        vec![outbound],
        vec![inbound, comment("frame 3 to port 1 lost: Detached: EtherType 0x88b5")],
    ];
    assert_eq!(options, expected);
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

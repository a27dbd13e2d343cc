//! Summaries of frames, compared with the reading of another implementation.

use etherparse::{
    ArpHardwareId, ArpOperation, ArpPacket, ArpPacketSlice, EtherType, IpNumber, LaxNetSlice,
    LaxSlicedPacket, PacketBuilder, TransportSlice,
};
use proptest::prelude::*;

use super::*;
use crate::wire::summary::Payload;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    /// Any damaged frame has the summary of its readable parts.
    #[test]
    fn damaged_frames_are_read_like_another_implementation_reads_them(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), value()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        more in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let frames = frames();
        let mut bytes = which.get(&frames).clone();
        for (place, value) in &damage {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        match cut {
            Some(cut) => bytes.truncate(cut.index(bytes.len() + 1)),
            None => bytes.extend(more),
        }
        // The other implementation reads the content of MACsec frames, which `Summary` does not.
        prop_assume!(!bytes.windows(2).any(|pair| pair == [0x88, 0xe5]));
        let summary = Summary::of(&bytes);
        prop_assert_eq!(summary, of_etherparse(&bytes), "{:02x?}", bytes);
        prop_assert!(!summary.to_string().is_empty());
    }
}

/// Returns any byte, and more often one that means something in a header.
fn value() -> impl Strategy<Value = u8> {
    const MEANINGFUL: [u8; 23] =
        [0, 1, 2, 4, 5, 6, 8, 13, 14, 17, 43, 44, 51, 58, 60, 0x45, 0x46, 0x60, 0x81, 0x86, 0x88, 0xa8, 0xdd];
    prop_oneof![any::<u8>(), prop::sample::select(&MEANINGFUL[..])]
}

/// Returns frames of all kinds that have summaries, among them frames with tags and extension headers.
fn frames() -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = samples().into_iter().map(|(bytes, _)| bytes).collect();
    let (to, from) = (mac(1), mac(0));
    let mut tagged = vec![];
    let builder =
        PacketBuilder::ethernet2(from, to).double_vlan(1.try_into().unwrap(), 2.try_into().unwrap());
    builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2).write(&mut tagged, b"tagged").unwrap();
    frames.push(tagged);
    // Hop-by-hop options, a routing header, a fragment header, an authentication header, destination options, and TCP.
    let headers: [&[u8]; 6] = [
        &[43, 0, 1, 4, 0, 0, 0, 0],
        &[44, 0, 0, 0, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 7],
        &[60, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2],
        &[6, 0, 1, 4, 0, 0, 0, 0],
        &[0, 80, 4, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 0, 0, 0, 0, 0, 0, b'd', b'a', b't', b'a'],
    ];
    let payload = headers.concat();
    let mut extended = [&to[..], &from, &[0x86, 0xdd, 0x60, 0, 0, 0, 0, payload.len() as u8, 0, 64]].concat();
    extended.extend([[0xfd; 16], [0xfe; 16]].concat());
    extended.extend(payload);
    frames.push(extended);
    // IPv4 with an option, an authentication header and an ICMP request for a timestamp.
    let mut ipv4 = [&to[..], &from, &[8, 0, 0x46, 0, 0, 56, 0, 0, 0, 0, 64, 51, 0, 0]].concat();
    ipv4.extend([10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    ipv4.extend([13, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]);
    frames.push(ipv4);
    frames
}

#[test]
fn summaries_show_the_content() {
    for (bytes, text) in samples() {
        assert_eq!(Summary::of(&bytes).to_string(), text);
    }
    let (tcp, _) = &samples()[1];
    let Summary::Ip { payload: Payload::Tcp { flags, .. }, .. } = Summary::of(tcp) else { panic!() };
    assert_eq!(flags, 0x12, "SYN and ACK");
}

/// Returns frames with their summaries.
fn samples() -> Vec<(Vec<u8>, &'static str)> {
    let (to, from) = (mac(1), mac(0));
    let arp = |operation| {
        let packet = ArpPacket::new(
            ArpHardwareId::ETHERNET,
            EtherType::IPV4,
            operation,
            &from,
            &[10, 0, 0, 1],
            &[0; 6],
            &[10, 0, 0, 2],
        );
        let mut bytes = vec![];
        PacketBuilder::ethernet2(from, to).arp(packet.unwrap()).write(&mut bytes).unwrap();
        bytes
    };
    let ipv4 = || PacketBuilder::ethernet2(from, to).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    let v6 = |last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let ipv6 = || PacketBuilder::ethernet2(from, to).ipv6(v6(1), v6(2), 64);
    let mut tcp = vec![];
    ipv4().tcp(1024, 80, 7, 500).syn().ack(9).write(&mut tcp, b"hello").unwrap();
    let mut udp = vec![];
    ipv6().udp(53, 5353).write(&mut udp, b"abc").unwrap();
    let mut echo = vec![];
    ipv4().icmpv4_echo_request(1, 1).write(&mut echo, b"").unwrap();
    let mut fragment = tcp.clone();
    // Fragment offset of 8 bytes.
    fragment[21] = 1;
    let tagged = [&to[..], &from, &[0x81, 0, 0, 5, 0x88, 0xb5, 1]].concat();
    vec![
        (arp(ArpOperation::REQUEST), "ARP who-has 10.0.0.2 tell 10.0.0.1"),
        (tcp, "TCP 10.0.0.1.1024 > 10.0.0.2.80 [SYN,ACK] seq 7 ack 9 len 5"),
        (udp, "UDP fd00::1.53 > fd00::2.5353 len 3"),
        (echo, "ICMP 10.0.0.1 > 10.0.0.2 echo-request"),
        (fragment, "IP 10.0.0.1 > 10.0.0.2 fragment"),
        (arp(ArpOperation::REPLY), "ARP 10.0.0.1 is-at 02:00:00:00:00:00"),
        (arp(ArpOperation(7)), "ARP operation 7 from 10.0.0.1 about 10.0.0.2"),
        (frame(to, from, 60, 0), "EtherType 0x88b5"),
        (tagged, "EtherType 0x88b5"),
        (vec![1, 2, 3], "EtherType 0x0000"),
    ]
}

/// Returns the summary of a frame as the crate `etherparse` reads it.
fn of_etherparse(frame: &[u8]) -> Summary {
    let Ok(packet) = LaxSlicedPacket::from_ethernet(frame) else {
        return Summary::Other { ether_type: 0 };
    };
    match &packet.net {
        Some(LaxNetSlice::Arp(packet)) => arp(packet),
        Some(LaxNetSlice::Ipv4(ip)) => Summary::Ip {
            from: ip.header().source_addr().into(),
            to: ip.header().destination_addr().into(),
            payload: payload(&packet),
        },
        Some(LaxNetSlice::Ipv6(ip)) => Summary::Ip {
            from: ip.header().source_addr().into(),
            to: ip.header().destination_addr().into(),
            payload: payload(&packet),
        },
        None => Summary::Other { ether_type: packet.ether_payload().map_or(0, |rest| rest.ether_type.0) },
    }
}

fn arp(packet: &ArpPacketSlice<'_>) -> Summary {
    let parts = (|| {
        Some(Summary::Arp {
            operation: packet.operation().0,
            sender_mac: packet.sender_hw_addr().try_into().ok()?,
            sender: <[u8; 4]>::try_from(packet.sender_protocol_addr()).ok()?.into(),
            target: <[u8; 4]>::try_from(packet.target_protocol_addr()).ok()?.into(),
        })
    })();
    parts.unwrap_or(Summary::Other { ether_type: EtherType::ARP.0 })
}

fn payload(packet: &LaxSlicedPacket<'_>) -> Payload {
    let short = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => Payload::Tcp {
            from_port: tcp.source_port(),
            to_port: tcp.destination_port(),
            flags: tcp.slice()[13],
            seq: tcp.sequence_number(),
            ack: tcp.acknowledgment_number(),
            len: short(tcp.payload()),
        },
        Some(TransportSlice::Udp(udp)) => Payload::Udp {
            from_port: udp.source_port(),
            to_port: udp.destination_port(),
            len: short(udp.payload()),
        },
        Some(TransportSlice::Icmpv4(icmp)) => {
            Payload::Icmp { v6: false, kind: icmp.type_u8(), code: icmp.code_u8() }
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            Payload::Icmp { v6: true, kind: icmp.type_u8(), code: icmp.code_u8() }
        }
        Some(TransportSlice::Igmp(_)) => Payload::Other { protocol: IpNumber::IGMP.0 },
        None => match packet.net.as_ref().and_then(LaxNetSlice::ip_payload_ref) {
            Some(rest) if rest.fragmented => Payload::Fragment,
            Some(rest) => Payload::Other { protocol: rest.ip_number.0 },
            None => Payload::Other { protocol: 0 },
        },
    }
}

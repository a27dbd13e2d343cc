//! Frames and stored wires with arbitrary bytes.

use proptest::prelude::*;

use super::plan::{Faults, act, plan, plan_wire};
use super::*;
use crate::wire::summary::Payload;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A damaged stored wire is refused, or is restored to a wire that works.
    #[test]
    fn a_damaged_wire_is_refused_or_works(
        before in plan(Faults::Any), after in plan(Faults::Any),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut wire = plan_wire();
        for (number, (at, action)) in before.iter().enumerate() {
            act(&mut wire, *at, number, action);
        }
        let mut bytes = postcard::to_stdvec(&wire).unwrap();
        for (place, value) in &damage {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(mut wire) = postcard::from_bytes::<Wire>(&bytes) {
            let start = wire.vtime() + S;
            for (number, (at, action)) in after.iter().enumerate() {
                act(&mut wire, start + at, number, action);
                let next = wire.next_delivery();
                prop_assert!(wire.pop_due(start + at).is_none() || next.is_some());
            }
            wire.close_log(1 << 63);
            drain(&mut wire, 1 << 63);
        } else {
            prop_assert!(!damage.is_empty() || cut.is_some());
        }
    }

    #[test]
    fn any_frame_goes_in(frames in prop::collection::vec((0..4u8, prop::collection::vec(any::<u8>(), 0..1600)), 1..20)) {
        let mut wire = wire(4, Distribution::Constant(1_000));
        for (i, (port, bytes)) in frames.iter().enumerate() {
            wire.send(*port, i as u64 * MS, bytes.clone());
        }
        drain(&mut wire, S);
        for step in wire.take_steps() {
            prop_assert!(!step.summary.to_string().is_empty());
        }
    }

    /// Any damaged frame has a summary of its readable parts.
    #[test]
    fn any_frame_has_a_summary(
        which in 0..5usize, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), cut: prop::sample::Index,
    ) {
        let mut bytes = samples()[which].0.clone();
        for (place, value) in &damage {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        prop_assert!(!Summary::of(&bytes).to_string().is_empty());
    }
}

/// Returns frames with their summaries.
fn samples() -> Vec<(Vec<u8>, &'static str)> {
    use etherparse::{ArpHardwareId, ArpOperation, ArpPacket, EtherType, PacketBuilder};
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

#[test]
fn summaries_show_the_content() {
    for (bytes, text) in samples() {
        assert_eq!(Summary::of(&bytes).to_string(), text);
    }
    let (tcp, _) = &samples()[1];
    let Summary::Ip { payload: Payload::Tcp { flags, .. }, .. } = Summary::of(tcp) else { panic!() };
    assert_eq!(flags, 0x12, "SYN and ACK");
}

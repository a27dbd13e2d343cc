//! Compares the switch with a naive model.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const PORTS: u8 = 4;

/// Draws the address of one of six cards, a group address (broadcast or multicast), or zero. The choices are few, so that
/// frames share addresses. Any card can send from any port, so cards move.
fn address() -> impl Strategy<Value = [u8; 6]> {
    prop_oneof![
        8 => (0..6u8).prop_map(mac),
        1 => Just(BROADCAST),
        1 => Just([1, 0, 0x5e, 0, 0, 1]),
        1 => Just([0; 6]),
    ]
}

proptest! {
    /// A switch sends a frame to the port where its destination was last seen as a source. It floods the frame if there
    /// is no such port, the port has lost power since, or the destination is a group.
    #[test]
    fn a_switch_goes_by_where_addresses_were_last_seen(
        frames in prop::collection::vec((0..PORTS, address(), address(), prop::option::weighted(0.1, 0..PORTS)), 1..60)
    ) {
        let mut wire = wire(PORTS, Distribution::Constant(1_000));
        // (port, source) of all frames so far.
        let mut seen: Vec<(u8, [u8; 6])> = vec![];
        let mut at = 0;
        for (number, &(port, destination, source, flap)) in frames.iter().enumerate() {
            at += MS;
            if let Some(flap) = flap {
                wire.detach(flap, at);
                wire.attach(flap, at);
                let last = |mac: [u8; 6]| seen.iter().rev().find(|(_, source)| *source == mac).map(|(port, _)| *port);
                let gone: BTreeSet<[u8; 6]> =
                    seen.iter().map(|(_, mac)| *mac).filter(|&mac| last(mac) == Some(flap)).collect();
                seen.retain(|(_, mac)| !gone.contains(mac));
            }
            wire.send(port, at, frame(destination, source, 60, number as u32));
            if source[0] & 1 == 0 && source != [0; 6] {
                seen.push((port, source));
            }
            let known = if destination[0] & 1 == 0 {
                seen.iter().rev().find(|(_, source)| *source == destination).map(|(port, _)| *port)
            } else {
                None
            };
            let expected: BTreeSet<u8> = match known {
                Some(to) => [to].into_iter().filter(|&to| to != port).collect(),
                None => (0..PORTS).filter(|&to| to != port).collect(),
            };
            let got = drain(&mut wire, at + MS / 2);
            prop_assert!(got.iter().all(|delivery| tag(&delivery.bytes) == number as u32));
            let ports: Vec<u8> = got.iter().map(|delivery| delivery.port).collect();
            prop_assert_eq!(ports, expected.into_iter().collect::<Vec<_>>(), "frame {}", number);
        }
    }
}

#[test]
fn a_frame_to_the_port_of_its_sender_goes_nowhere() {
    check_taught(
        wire(3, Distribution::Constant(1_000)),
        "0 n1 sends 0 to n1 as n9
         0 > 0 is lost: Own
         0 next is none, 0 frames on the way",
    );
}

/// The switch learns at most [`MACS_PER_PORT_MAX`] addresses from one port, so one node cannot fill the switch's table.
#[test]
fn frames_to_unlearned_addresses_are_flooded() {
    let mut wire = wire(3, Distribution::Constant(1_000));
    let start = teach(&mut wire);
    let other = |i: u8| [2, 9, 9, 9, 9, i];
    for i in 0..=MACS_PER_PORT_MAX as u8 {
        wire.send(0, start, frame(mac(1), other(i), 60, 0));
    }
    drain(&mut wire, start + MS);
    let copies = |wire: &mut Wire, at: u64, to: [u8; 6]| {
        wire.send(2, at, frame(to, mac(2), 60, 0));
        drain(wire, at + MS).len()
    };
    // The switch already knew the address of the card at port 0. So it learned one address fewer than the maximum from
    // the frames above.
    assert_eq!(copies(&mut wire, start + MS, other(MACS_PER_PORT_MAX as u8 - 2)), 1);
    assert_eq!(copies(&mut wire, start + 2 * MS, other(MACS_PER_PORT_MAX as u8 - 1)), 2);
    assert_eq!(copies(&mut wire, start + 3 * MS, mac(1)), 1);
    // An address moves from port 1 to port 0, which is full. The switch then forgets it, also at port 1.
    wire.send(0, start + 4 * MS, frame(mac(2), mac(1), 60, 0));
    drain(&mut wire, start + 5 * MS);
    assert_eq!(copies(&mut wire, start + 5 * MS, mac(1)), 2);
    assert_eq!(stored(&wire), wire);
}

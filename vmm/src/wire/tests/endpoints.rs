//! Tests of endpoints (Everett's own TCP/IP stacks on the wire) that talk to each other, across wires of all kinds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use everett_streams::{BootSeed, Seed};
use proptest::prelude::*;

use super::*;
use crate::wire::endpoint::{
    Endpoint, EndpointConfig, EndpointDraws, EndpointError, HEARD_BYTES_MAX, INBOX_FRAMES_MAX,
    PAYLOAD_BYTES_MAX, Pong, SOCKETS_MAX, SocketError, SocketId, TcpState,
};

fn ipv4(port: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, port + 1)
}

fn ipv6(port: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(port) + 1)
}

fn draws(seed: u64) -> EndpointDraws {
    EndpointDraws::draw(&mut Streams::new(&Lineage::new(Seed::new(seed)), Owner::Endpoint))
}

fn endpoint_config(port: u8) -> EndpointConfig {
    EndpointConfig {
        port,
        node: PortConfig { name: format!("n{port}"), mac: mac(port) },
        ipv4: Some((ipv4(port), 24)),
        ipv6: Some((ipv6(port), 64)),
    }
}

/// A wire with an endpoint at each port (n0 at port 0, n1 at port 1), and the present vtime.
struct World {
    wire: Wire,
    ends: Vec<Endpoint>,
    now: u64,
    /// True if endpoints are also polled at times at which nothing is due.
    restless: bool,
    /// Deliveries so far.
    deliveries: Vec<Delivery>,
}

impl World {
    fn new(wire: Wire) -> World {
        let ends = (0..wire.ports().len() as u8)
            .map(|port| Endpoint::new(&endpoint_config(port), draws(3)).unwrap());
        World { ends: ends.collect(), wire, now: 0, restless: false, deliveries: vec![] }
    }

    /// Advances to the next vtime at which something happens, or to `until`. Returns false at `until`.
    fn step(&mut self, until: u64) -> bool {
        let polls = self.ends.iter_mut().filter_map(Endpoint::next_poll);
        let next = polls.chain(self.wire.next_delivery()).min().filter(|&next| next <= until);
        let now = next.unwrap_or(until);
        if self.restless {
            let between = self.now + (now - self.now) / 3;
            self.poll(between);
        }
        self.now = now;
        while let Some(delivery) = self.wire.pop_due(now) {
            self.deliveries.push(delivery.clone());
            self.ends[usize::from(delivery.port)].frame_input(delivery.at, delivery.bytes);
        }
        self.poll(now);
        next.is_some()
    }

    fn poll(&mut self, now: u64) {
        for end in &mut self.ends {
            let port = end.port();
            end.poll(now, &mut |at, frame| _ = self.wire.send(port, at, frame));
        }
    }

    /// Runs until `done` returns true, or to the vtime `until`. Returns true if `done` returned true.
    fn run(&mut self, until: u64, mut done: impl FnMut(&mut [Endpoint]) -> bool) -> bool {
        loop {
            if done(&mut self.ends) {
                return true;
            }
            if !self.step(until) {
                return false;
            }
        }
    }
}

fn pattern(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761).rotate_left(8) as u8 ^ salt).collect()
}

/// Exchanges data over TCP: n0 sends `there` to n1, n1 sends `back`, and both finish. Returns the data that each
/// received.
fn exchange(world: &mut World, to: IpAddr, there: &[u8], back: &[u8], until: u64) -> [Vec<u8>; 2] {
    let server = world.ends[1].tcp_listen(80).unwrap();
    let client = world.ends[0].tcp_connect(SocketAddr::new(to, 80)).unwrap();
    let mut unsent = [there, back];
    let mut finished = [false; 2];
    let mut closed = [false; 2];
    let mut got = [vec![], vec![]];
    world.run(until, |ends| {
        for (i, id) in [(0, client), (1, server)] {
            if !unsent[i].is_empty() {
                let taken = ends[i].tcp_send(id, unsent[i]).unwrap();
                unsent[i] = &unsent[i][taken..];
            } else if !finished[i] {
                ends[i].tcp_finish(id).unwrap();
                finished[i] = true;
            }
            match ends[i].tcp_receive(id) {
                Ok(bytes) => got[i].extend(bytes),
                Err(error) => {
                    assert_eq!(error, SocketError::Closed);
                    closed[i] = true;
                }
            }
        }
        closed == [true; 2] && finished == [true; 2]
    });
    assert_eq!((finished, closed), ([true; 2], [true; 2]), "at {} ns", world.now);
    for (end, id) in world.ends.iter_mut().zip([client, server]) {
        assert!(!end.is_idle());
        end.release(id).unwrap();
    }
    world.run(world.now + S, |ends| ends.iter().all(Endpoint::is_idle));
    assert!(world.ends.iter().all(Endpoint::is_idle));
    got
}

fn bad_wire() -> Wire {
    let mut config = config(2, Distribution::Uniform(100_000, 400_000));
    config.link.bits_per_s = 100_000_000;
    let mut wire = Wire::new(config, BootSeed::new(11)).unwrap();
    let (links, ppm) = (Links::all, 20_000);
    for (id, fault) in [
        NetworkFault::Loss { links: links(), ppm },
        NetworkFault::Duplicate { links: links(), ppm },
        NetworkFault::Reorder { links: links(), ppm, hold: Distribution::Uniform(0, 2 * MS) },
        NetworkFault::Corrupt { links: links(), ppm },
        NetworkFault::Latency { links: links(), extra: Distribution::Uniform(0, MS) },
    ]
    .iter()
    .enumerate()
    {
        wire.apply(id as u64, fault, 0).unwrap();
    }
    wire
}

#[test]
fn tcp_gets_every_byte_across_a_bad_wire() {
    for to in [IpAddr::from(ipv4(1)), IpAddr::from(ipv6(1))] {
        let mut world = World::new(bad_wire());
        let (there, back) = (pattern(400_000, 1), pattern(150_000, 2));
        let got = exchange(&mut world, to, &there, &back, 600 * S);
        assert!(got[1] == there && got[0] == back);
        let steps = world.wire.take_steps();
        assert!(
            drops(&steps, DropReason::Loss) > 3
                && steps.iter().any(|step| step.kind == FrameStepKind::Duplicate)
        );
        assert!(steps.iter().any(|step| step.flipped));
    }
}

/// The times and the number of polls change nothing.
#[test]
fn when_endpoints_are_polled_does_not_matter() {
    let run = |restless| {
        let mut world = World::new(bad_wire());
        world.restless = restless;
        exchange(&mut world, ipv4(1).into(), &pattern(50_000, 1), &pattern(9_000, 2), 600 * S);
        world.deliveries
    };
    let calm = run(false);
    assert!(calm.len() > 50);
    assert!(run(true) == calm);
}

/// Lets n0 send data to n1, which sends it back, and makes n0 read each millisecond. If `made_again`, replaces n0 at
/// intervals by a new endpoint that processes the frames recorded for n0. Returns the data that n0 received, and n0.
fn conversation(made_again: bool) -> (Vec<u8>, Endpoint) {
    let to = SocketAddr::new(ipv4(1).into(), 80);
    let mut world = World::new(bad_wire());
    let look = |end: &mut Endpoint, id, number| {
        if number % 5 == 0 && end.tcp_state(id) == Ok(TcpState::Open) {
            end.tcp_send(id, &pattern(700, number as u8)).unwrap();
        }
        end.tcp_receive(id).unwrap()
    };
    let server = world.ends[1].tcp_listen(80).unwrap();
    let client = world.ends[0].tcp_connect(to).unwrap();
    let mut got = vec![];
    for number in 1..500 {
        world.run(number * MS - 1, |_| false);
        got.extend(look(&mut world.ends[0], client, number));
        let back = world.ends[1].tcp_receive(server).unwrap();
        world.ends[1].tcp_send(server, &back).unwrap();
        world.run(number * MS + number * 1_999, |_| false);
        if made_again && number % 7 == 3 {
            // A frame has arrived that n0 has not processed yet.
            world.ends[0].frame_input(world.now + 9, vec![0xff; 60]);
            let heard = world.ends[0].heard();
            assert!(heard.is_sound(world.now + 9) && !heard.is_sound(world.now - 1));
            let mut again = Endpoint::new(&endpoint_config(0), draws(3)).unwrap();
            assert_eq!(again.tcp_connect(to), Ok(client));
            for number in 1..=number {
                again.hear_again(&heard, number * MS);
                look(&mut again, client, number);
            }
            again.hear_again(&heard, u64::MAX);
            let there = &mut world.ends[0];
            assert_eq!((again.digest(), again.next_poll()), (there.digest(), there.next_poll()));
            assert_eq!(again.heard(), there.heard());
            *there = again;
        } else if number % 7 == 3 {
            world.ends[0].frame_input(world.now + 9, vec![0xff; 60]);
        }
    }
    (got, world.ends.swap_remove(0))
}

#[test]
fn a_rebuilt_endpoint_behaves_like_the_original() {
    let (straight, one) = conversation(false);
    let (made_again, other) = conversation(true);
    assert!(straight.len() > 20_000, "{}", straight.len());
    assert_eq!((straight, one.digest()), (made_again, other.digest()));
}

#[test]
fn the_memory_for_received_frames_is_bounded() {
    let mut end = Endpoint::new(&endpoint_config(0), draws(3)).unwrap();
    let frame = frame([0xff; 6], mac(1), 1500, 1);
    let mut heard = 0;
    while end.frame_input(heard, frame.clone()) {
        end.poll(heard, &mut |_, _| {});
        heard += 1;
    }
    assert!((40_000..HEARD_BYTES_MAX as u64 / 1500).contains(&heard), "{heard}");
}

#[test]
fn tcp_uses_the_bandwidth_of_a_good_wire() {
    let mut config = config(2, Distribution::Constant(100_000));
    config.link.bits_per_s = 100_000_000;
    config.link.queue_bytes = 200_000;
    let mut world = World::new(Wire::new(config, BootSeed::new(1)).unwrap());
    let there = pattern(5_000_000, 7);
    let got = exchange(&mut world, ipv4(1).into(), &there, b"ok", 10 * S);
    assert!(got[1] == there && got[0] == b"ok");
    assert!(world.deliveries.iter().all(|delivery| delivery.at < S), "5 MB at 100 Mbit/s take 0.4 s");
    assert_eq!(drops(&world.wire.take_steps(), DropReason::QueueFull), 0);
}

#[test]
fn datagrams_and_pings() {
    let mut world = World::new(wire(3, Distribution::Constant(100_000)));
    let (a, b) = (world.ends[0].udp_bind(1000).unwrap(), world.ends[1].udp_bind(53).unwrap());
    let pings = world.ends[2].ping_open().unwrap();
    for to in [IpAddr::from(ipv4(1)), IpAddr::from(ipv6(1))] {
        let long = pattern(PAYLOAD_BYTES_MAX, 3);
        world.ends[0].udp_send(a, SocketAddr::new(to, 53), &long).unwrap();
        world.ends[2].ping(pings, to, 7, b"are you there?").unwrap();
        let until = world.now + S;
        assert!(!world.run(until, |_| false));
        let (from, bytes) = world.ends[1].udp_receive(b).unwrap().unwrap();
        assert!(bytes == long && from.port() == 1000 && from.is_ipv4() == to.is_ipv4());
        assert_eq!(world.ends[1].udp_receive(b), Ok(None));
        let pong = Pong { from: to, sequence: 7, payload: b"are you there?".to_vec() };
        assert_eq!(world.ends[2].pong(pings), Ok(Some(pong)));
        assert_eq!(world.ends[2].pong(pings), Ok(None));
        world.ends[1].udp_send(b, from, b"yes").unwrap();
        let until = world.now + S;
        world.run(until, |_| false);
        assert_eq!(
            world.ends[0].udp_receive(a).unwrap().unwrap(),
            (SocketAddr::new(to, 53), b"yes".to_vec())
        );
    }
    for (end, id) in [(0, a), (1, b), (2, pings)] {
        world.ends[end].release(id).unwrap();
    }
    let until = world.now + S;
    world.run(until, |_| false);
    assert!(world.ends.iter_mut().all(|end| end.is_idle() && end.next_poll().is_none()));
}

/// An endpoint reaches the nodes that answer, even if it talks to other nodes that never answer.
#[test]
fn endpoints_ask_about_all_neighbors_at_once() {
    let mut world = World::new(wire(8, Distribution::Constant(100_000)));
    let connect = |end: &mut Endpoint, to: IpAddr| end.tcp_connect(SocketAddr::new(to, 80)).unwrap();
    for last in 100..104 {
        connect(&mut world.ends[0], ipv4(last).into());
        connect(&mut world.ends[0], ipv6(last).into());
    }
    let mut connections = vec![];
    for port in 1..8 {
        world.ends[usize::from(port)].tcp_listen(80).unwrap();
        let to = if port % 2 == 0 { ipv4(port).into() } else { ipv6(port).into() };
        connections.push(connect(&mut world.ends[0], to));
    }
    let made =
        |ends: &mut [Endpoint]| connections.iter().all(|&id| ends[0].tcp_state(id) == Ok(TcpState::Open));
    assert!(world.run(10 * MS, made), "two round trips");
}

#[test]
fn connections_without_a_node_without_a_listener_and_with_a_reset() {
    let mut world = World::new(wire(2, Distribution::Constant(100_000)));
    let refused = world.ends[0].tcp_connect(SocketAddr::new(ipv4(1).into(), 81)).unwrap();
    let nobody = world.ends[0].tcp_connect(SocketAddr::new(ipv4(9).into(), 80)).unwrap();
    let server = world.ends[1].tcp_listen(80).unwrap();
    let client = world.ends[0].tcp_connect(SocketAddr::new(ipv6(1).into(), 80)).unwrap();
    assert_eq!(world.ends[1].tcp_state(server), Ok(TcpState::Listening));
    assert_eq!(world.ends[0].tcp_send(client, b"too soon"), Ok(0));
    assert_eq!(world.ends[0].tcp_receive(client), Ok(vec![]));
    world.run(5 * S, |_| false);
    assert_eq!(world.ends[0].tcp_state(refused), Ok(TcpState::Closed));
    assert_eq!(world.ends[0].tcp_state(nobody), Ok(TcpState::Connecting));
    assert_eq!(world.ends[0].tcp_state(client), Ok(TcpState::Open));
    let peer = world.ends[1].tcp_peer(server).unwrap().unwrap();
    assert_eq!((peer.ip(), world.ends[1].tcp_state(server)), (ipv6(0).into(), Ok(TcpState::Open)));
    world.ends[0].release(nobody).unwrap();
    world.ends[0].release(client).unwrap();
    world.ends[0].release(refused).unwrap();
    world.run(6 * S, |_| false);
    assert!(world.ends[0].is_idle());
    assert_eq!(world.ends[1].tcp_state(server), Ok(TcpState::Closed), "the connection was reset");
    assert_eq!(world.ends[1].tcp_receive(server), Err(SocketError::Closed));
    assert_eq!(world.ends[1].tcp_send(server, b"x"), Err(SocketError::Closed));
}

#[test]
fn invalid_calls_are_refused() {
    let bad = |change: &dyn Fn(&mut EndpointConfig)| {
        let mut config = endpoint_config(0);
        change(&mut config);
        Endpoint::new(&config, draws(0)).err().unwrap()
    };
    assert_eq!(bad(&|config| config.node.mac = BROADCAST), EndpointError::Mac);
    let group = Ipv4Addr::new(224, 0, 0, 1);
    assert_eq!(bad(&|config| config.ipv4 = Some((group, 24))), EndpointError::Address(group.into(), 24));
    let none = Ipv6Addr::UNSPECIFIED;
    assert_eq!(bad(&|config| config.ipv6 = Some((none, 64))), EndpointError::Address(none.into(), 64));
    assert_eq!(bad(&|config| config.ipv4 = Some((ipv4(0), 33))), EndpointError::Address(ipv4(0).into(), 33));

    let mut end = Endpoint::new(&endpoint_config(0), draws(0)).unwrap();
    assert_eq!(end.tcp_listen(0), Err(SocketError::Port));
    assert_eq!(end.udp_bind(0), Err(SocketError::Port));
    let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 80);
    assert_eq!(end.tcp_connect(nowhere), Err(SocketError::Address(nowhere)));
    let elsewhere = SocketAddr::new(Ipv4Addr::new(10, 0, 1, 1).into(), 80);
    assert_eq!(end.tcp_connect(elsewhere), Err(SocketError::Address(elsewhere)));
    let all = SocketAddr::new(Ipv4Addr::new(10, 0, 0, 255).into(), 80);
    assert_eq!(end.tcp_connect(all), Err(SocketError::Address(all)));
    let udp = end.udp_bind(9).unwrap();
    assert_eq!(end.udp_send(udp, all, b""), Ok(()));
    assert_eq!(end.udp_send(udp, elsewhere, b""), Err(SocketError::Address(elsewhere)));
    assert_eq!(end.udp_send(udp, nowhere, b""), Err(SocketError::Address(nowhere)));
    let long = vec![0; PAYLOAD_BYTES_MAX + 1];
    let there = SocketAddr::new(ipv4(1).into(), 80);
    assert_eq!(end.udp_send(udp, there, &long), Err(SocketError::TooLong(long.len())));
    assert_eq!(end.tcp_send(udp, b""), Err(SocketError::NoSocket));
    assert_eq!(end.ping(udp, there.ip(), 0, b""), Err(SocketError::NoSocket));
    while end.udp_send(udp, there, &long[1..]).is_ok() {}
    assert_eq!(end.udp_send(udp, there, &long[1..]), Err(SocketError::Full));
    let ids: Vec<SocketId> = (1..SOCKETS_MAX).map(|_| end.tcp_listen(80).unwrap()).collect();
    assert_eq!(end.tcp_listen(80), Err(SocketError::TooMany));
    end.release(ids[0]).unwrap();
    assert_eq!(end.release(ids[0]), Err(SocketError::NoSocket));
    end.poll(1, &mut |_, _| {});
    assert!(end.tcp_listen(80).is_ok());
    for i in 0..INBOX_FRAMES_MAX + 1 {
        assert_eq!(end.frame_input(0, vec![]), i < INBOX_FRAMES_MAX);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An endpoint survives damaged frames of real traffic, with and without corrected checksums.
    ///
    /// The answers are not checked, because they depend on the damage. The test fails if the TCP/IP stack or the
    /// endpoint panics (overflow and bounds checks included), or does not return.
    #[test]
    fn endpoints_survive_whatever_nodes_send(
        damage in prop::collection::vec((0..400usize, prop::collection::vec((14..90usize, any::<u8>()), 1..5), any::<bool>()), 1..400),
    ) {
        let mut world = World::new(wire(2, Distribution::Constant(50_000)));
        let mut victim = World::new(wire(2, Distribution::Constant(50_000)));
        let (server, client) = (victim.ends[1].tcp_listen(80).unwrap(), SocketAddr::new(ipv4(0).into(), 1));
        let udp = victim.ends[1].udp_bind(53).unwrap();
        exchange(&mut world, ipv4(1).into(), &pattern(20_000, 1), &pattern(3_000, 2), S);
        exchange(&mut world, ipv6(1).into(), &pattern(2_000, 1), &pattern(3_000, 2), 200 * S);
        datagram(&mut world);
        let frames: Vec<Vec<u8>> = world.deliveries.iter().filter(|d| d.port == 1).map(|d| d.bytes.clone()).collect();
        for (which, changes, right) in damage {
            let mut bytes = frames[which % frames.len()].clone();
            for (place, value) in changes {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = value;
                }
            }
            if right {
                fix(&mut bytes);
            }
            victim.wire.send(0, victim.now, bytes);
            victim.now += 10_000;
            let until = victim.now;
            victim.run(until, |_| false);
            // Received data is read, whatever it is.
            let _ = victim.ends[1].tcp_receive(server);
            let _ = victim.ends[1].udp_receive(udp);
            let _ = victim.ends[1].udp_send(udp, client, b"?");
        }
    }
}

fn datagram(world: &mut World) {
    let udp = world.ends[0].udp_bind(1).unwrap();
    let pings = world.ends[0].ping_open().unwrap();
    for to in [IpAddr::from(ipv4(1)), IpAddr::from(ipv6(1))] {
        world.ends[0].udp_send(udp, SocketAddr::new(to, 53), b"question").unwrap();
        world.ends[0].ping(pings, to, 1, b"ping").unwrap();
        let until = world.now + 3 * S;
        world.run(until, |_| false);
    }
}

/// Corrects the checksums of a damaged frame whose headers can still be read.
fn fix(bytes: &mut [u8]) {
    use smoltcp::wire::{
        EthernetFrame, EthernetProtocol, Icmpv4Packet, Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6Packet,
        TcpPacket, UdpPacket,
    };
    let mut frame = EthernetFrame::new_unchecked(bytes);
    let ether_type = frame.ethertype();
    let (protocol, addresses, payload): (IpProtocol, (IpAddr, IpAddr), &mut [u8]) = match ether_type {
        EthernetProtocol::Ipv4 if Ipv4Packet::new_checked(&*frame.payload_mut()).is_ok() => {
            let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
            packet.fill_checksum();
            let of = (packet.next_header(), (packet.src_addr().into(), packet.dst_addr().into()));
            let (start, end) = (usize::from(packet.header_len()), usize::from(packet.total_len()));
            (of.0, of.1, &mut packet.into_inner()[start..end])
        }
        EthernetProtocol::Ipv6 if Ipv6Packet::new_checked(&*frame.payload_mut()).is_ok() => {
            let packet = Ipv6Packet::new_unchecked(frame.payload_mut());
            let of = (packet.next_header(), (packet.src_addr().into(), packet.dst_addr().into()));
            let end = packet.total_len();
            (of.0, of.1, &mut packet.into_inner()[40..end])
        }
        _ => return,
    };
    let (from, to) = (addresses.0.into(), addresses.1.into());
    match protocol {
        IpProtocol::Tcp if TcpPacket::new_checked(&*payload).is_ok() => {
            TcpPacket::new_unchecked(payload).fill_checksum(&from, &to);
        }
        IpProtocol::Udp if UdpPacket::new_checked(&*payload).is_ok() => {
            UdpPacket::new_unchecked(payload).fill_checksum(&from, &to);
        }
        IpProtocol::Icmp if Icmpv4Packet::new_checked(&*payload).is_ok() => {
            Icmpv4Packet::new_unchecked(payload).fill_checksum();
        }
        IpProtocol::Icmpv6 if Icmpv6Packet::new_checked(&*payload).is_ok() => {
            if let (IpAddr::V6(from), IpAddr::V6(to)) = addresses {
                Icmpv6Packet::new_unchecked(payload).fill_checksum(&from, &to);
            }
        }
        _ => (),
    }
}

/// Returns the local port and the sequence number of the first SYN of an endpoint with the random values `draws`.
fn syn(draws: EndpointDraws) -> (u16, u32) {
    let mut world = World::new(wire(2, Distribution::Constant(100_000)));
    world.ends[0] = Endpoint::new(&endpoint_config(0), draws).unwrap();
    world.ends[0].tcp_connect(SocketAddr::new(ipv4(1).into(), 80)).unwrap();
    world.run(S, |_| false);
    // IPv4 without options, TCP.
    let is_tcp =
        |frame: &&Delivery| frame.port == 1 && frame.bytes[12..15] == [8, 0, 0x45] && frame.bytes[23] == 6;
    let frame = &world.deliveries.iter().find(is_tcp).unwrap().bytes;
    (
        u16::from_be_bytes([frame[34], frame[35]]),
        u32::from_be_bytes([frame[38], frame[39], frame[40], frame[41]]),
    )
}

#[test]
fn draws_decide_the_first_port_and_sequence_numbers() {
    assert_eq!(syn(draws(1)), syn(draws(1)));
    let (one, other) = (syn(draws(1)), syn(draws(2)));
    assert!(one.0 != other.0 && one.1 != other.1, "{one:?} {other:?}");
    // Successive endpoints of one timeline differ, too.
    let mut streams = Streams::new(&Lineage::new(Seed::new(1)), Owner::Endpoint);
    let [first, second] = [(); 2].map(|()| EndpointDraws::draw(&mut streams));
    assert_ne!(syn(first), syn(second));
}

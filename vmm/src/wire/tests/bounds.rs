//! Bounds of the wire: frames beyond a bound are dropped and logged.

use everett_fault::PartitionMode;
use everett_fault::limits::NETWORK_FAULTS_MAX;
use everett_streams::BootSeed;

use super::config::Topology;
use super::*;
use crate::virtio::net::FRAME_BYTES_MAX;

#[test]
fn frames_and_bytes_on_their_way_are_bounded() {
    for (len, most) in [(60, FRAMES_MAX), (FRAME_BYTES_MAX, BYTES_MAX as usize / FRAME_BYTES_MAX)] {
        // Frames on their way, and frames held by a fault.
        for fault in [
            NetworkFault::Latency { links: Links::all(), extra: Distribution::Constant(S) },
            NetworkFault::Partition { links: Links::all(), mode: PartitionMode::Hold },
        ] {
            let mut wire = wire(2, Distribution::Constant(1_000));
            wire.apply(1, &fault, 0).unwrap();
            for i in 0..most + 10 {
                wire.send(0, i as u64 * 20, frame(mac(1), mac(0), len, i as u32));
            }
            assert_eq!(drops(&wire.take_steps(), DropReason::Bound), 10);
            assert_eq!(wire.frames_on_way(), most);
            assert_eq!(stored(&wire), wire);
            wire.heal_all(S);
            assert_eq!(drain(&mut wire, 3 * S).len(), most);
            // Afterwards the wire has room again.
            wire.send(0, 4 * S, frame(mac(1), mac(0), len, 0));
            assert_eq!(drain(&mut wire, 5 * S).len(), 1);
        }
    }
}

#[test]
fn duplicates_are_bounded() {
    let mut wire = wire(2, Distribution::Constant(10 * MS));
    for id in 0..NETWORK_FAULTS_MAX as u64 {
        wire.apply(id, &NetworkFault::Duplicate { links: Links::all(), ppm: 1_000_000 }, 0).unwrap();
    }
    for i in 0..1_000 {
        wire.send(0, i, frame(mac(1), mac(0), 60, 0));
    }
    assert_eq!(wire.frames_on_way(), FRAMES_MAX);
    assert_eq!(drain(&mut wire, S).len(), FRAMES_MAX);
    // The log does not record the loss of an extra copy, i.e. of a duplicate that a fault made.
    let steps = wire.take_steps();
    assert_eq!(drops(&steps, DropReason::Bound), 1_000 - FRAMES_MAX.div_ceil(NETWORK_FAULTS_MAX + 1));
}

#[test]
fn frames_have_a_length() {
    let mut wire = wire(2, Distribution::Constant(1_000));
    let long = frame(mac(1), mac(0), FRAME_BYTES_MAX + 1, 0);
    for bytes in [vec![], vec![0xff; HEADER_BYTES - 1], long.clone(), vec![0; 1 << 20]] {
        wire.send(0, 0, bytes);
    }
    assert_eq!(drops(&wire.take_steps(), DropReason::Length), 4);
    wire.send(0, 0, vec![0xff; HEADER_BYTES]);
    wire.send(0, 0, long[..FRAME_BYTES_MAX].to_vec());
    assert_eq!(drain(&mut wire, S).len(), 2);
}

#[test]
fn invalid_configurations_are_refused() {
    let good = config(2, Distribution::Constant(LATENCY_NS_MIN));
    assert!(Wire::new(good.clone(), BootSeed::new(0)).is_ok());
    let why = |change: &dyn Fn(&mut WireConfig)| {
        let mut config = good.clone();
        change(&mut config);
        Topology::try_from(config).unwrap_err()
    };
    let name = |name: &'static str| move |config: &mut WireConfig| config.ports[1].name = name.into();
    let link = |from: &str, to: &str, both_ways| LinkOverride {
        from: from.into(),
        to: to.into(),
        both_ways,
        link: LinkConfig::default(),
    };
    let close = Distribution::Uniform(LATENCY_NS_MIN - 1, S);
    let usual = || "the usual link".to_owned();
    let n = |i: u32| format!("n{i}");
    assert_eq!(why(&|c| *c = config(65, Distribution::Constant(S))), ConfigError::Ports(65));
    assert_eq!(why(&name("")), ConfigError::Name(String::new()));
    assert_eq!(why(&name("a b")), ConfigError::Name("a b".into()));
    assert_eq!(why(&name("n0")), ConfigError::NameTwice(n(0)));
    assert!(matches!(why(&|c| c.ports[0].name = "x".repeat(65)), ConfigError::Name(_)));
    assert_eq!(why(&|c| c.ports[1].mac = BROADCAST), ConfigError::Mac(n(1)));
    assert_eq!(why(&|c| c.ports[1].mac = [0; 6]), ConfigError::Mac(n(1)));
    assert_eq!(why(&|c| c.ports[1].mac = mac(0)), ConfigError::MacTwice(n(0), n(1)));
    assert_eq!(why(&|c| c.link.latency = close.clone()), ConfigError::TooClose(usual(), LATENCY_NS_MIN - 1));
    assert!(matches!(why(&|c| c.link.latency = Distribution::Uniform(9, 1)), ConfigError::Latency(..)));
    assert_eq!(why(&|c| c.link.bits_per_s = 1), ConfigError::Bandwidth(usual(), 1));
    assert_eq!(why(&|c| c.link.queue_bytes = 60), ConfigError::Queue(usual(), 60));
    assert_eq!(why(&|c| c.overrides.push(link("n0", "x", true))), ConfigError::UnknownNode("x".into()));
    assert_eq!(why(&|c| c.overrides.push(link("n0", "n0", true))), ConfigError::ToItself(n(0)));
    let twice = |c: &mut WireConfig| c.overrides = vec![link("n0", "n1", true), link("n1", "n0", false)];
    assert_eq!(why(&twice), ConfigError::LinkTwice(n(1), n(0)));
    // The two directions of one pair may be configured as two links.
    let mut config = good.clone();
    config.overrides = vec![link("n0", "n1", false), link("n1", "n0", false)];
    assert!(Wire::new(config, BootSeed::new(0)).is_ok());
}

/// Between deliveries, nodes run for at most the least latency of any link.
#[test]
fn the_lookahead_is_the_least_latency_of_any_link() {
    let mut config = config(3, Distribution::Constant(70_000));
    assert_eq!(Wire::new(config.clone(), BootSeed::new(0)).unwrap().lookahead_ns(), 70_000);
    let link = LinkConfig { latency: Distribution::Uniform(5_000, 90_000), ..LinkConfig::default() };
    config.overrides = vec![LinkOverride { from: "n0".into(), to: "n1".into(), both_ways: true, link }];
    assert_eq!(Wire::new(config, BootSeed::new(0)).unwrap().lookahead_ns(), 5_000);
}

/// A wire with the maximum number of ports, and one with none.
#[test]
fn wires_of_many_ports_and_of_none() {
    let mut wire = wire(PORTS_MAX as u8, Distribution::Constant(1_000));
    wire.apply(1, &NetworkFault::Clog { node: "n63".into() }, 0).unwrap();
    wire.send(63, 0, frame(BROADCAST, mac(63), 60, 1));
    wire.send(63, 0, frame(BROADCAST, mac(63), 60, 2));
    assert_eq!(stored(&wire), wire);
    wire.heal(1, 10);
    assert_eq!(drain(&mut wire, S).len(), 2 * (PORTS_MAX - 1));
    let mut none = super::wire(0, Distribution::Constant(1_000));
    assert_eq!((none.next_delivery(), none.pop_due(S)), (None, None));
    assert_eq!(stored(&none), none);
}

//! Queues, order, and exact arrival times of frames.

use everett_streams::BootSeed;
use proptest::prelude::*;

use super::*;

const LATENCY: u64 = 50_000;

/// Returns the arrivals after a queue and a latency, computed naively: departures are a list, and the bytes in the
/// queue are counted anew for each frame.
fn oracle(frames: &[(u64, usize)], bits_per_s: u64, queue_bytes: u64) -> Vec<Option<u64>> {
    let mut departed: Vec<(u64, u64)> = vec![];
    let mut arrivals = vec![];
    for &(at, len) in frames {
        let queued: u64 = departed.iter().filter(|(depart, _)| *depart > at).map(|(_, len)| len).sum();
        if queued + len as u64 > queue_bytes {
            arrivals.push(None);
            continue;
        }
        let free = departed.last().map_or(0, |(depart, _)| *depart).max(at);
        let depart = free + (len as u64 * 8 * 1_000_000_000).div_ceil(bits_per_s);
        departed.push((depart, len as u64));
        arrivals.push(Some(depart + LATENCY));
    }
    arrivals
}

proptest! {
    #[test]
    fn frames_arrive_when_the_oracle_says(
        gaps in prop::collection::vec((0u64..200_000, 18usize..=1518), 1..200),
        bits_per_s in prop::sample::select(vec![BITS_PER_S_MIN, 1_000_000, 100_000_000, 3_333_333_333, BITS_PER_S_MAX]),
        queue_bytes in QUEUE_BYTES_MIN..20_000,
        stop in any::<prop::sample::Index>(),
    ) {
        let mut config = config(2, Distribution::Constant(LATENCY));
        (config.link.bits_per_s, config.link.queue_bytes) = (bits_per_s, queue_bytes);
        let mut wire = Wire::new(config, BootSeed::new(1)).unwrap();
        let mut at = 0;
        let frames: Vec<(u64, usize)> = gaps.iter().map(|&(gap, len)| { at += gap; (at, len) }).collect();
        let stop = stop.index(frames.len());
        let mut got = vec![None; frames.len()];
        for (i, &(at, len)) in frames.iter().enumerate() {
            if i == stop {
                wire = stored(&wire);
            }
            wire.send(0, at, frame(mac(1), mac(0), len, i as u32));
        }
        for delivery in drain(&mut wire, u64::MAX) {
            got[tag(&delivery.bytes) as usize] = Some(delivery.at);
        }
        prop_assert_eq!(got, oracle(&frames, bits_per_s, queue_bytes.into()));
    }

    /// With any difference of latencies, frames of one direction stay in order, and none arrives too early.
    #[test]
    fn jitter_does_not_reorder(
        gaps in prop::collection::vec(0u64..100_000, 1..300), least in LATENCY_NS_MIN..10_000, more in 0u64..10 * MS,
        late in 0u64..10 * MS,
    ) {
        let mut wire = wire(2, Distribution::Uniform(least, least + more));
        prop_assert_eq!(wire.lookahead_ns(), least);
        let links = one_way("n0", "n1");
        wire.apply(1, &NetworkFault::Latency { links, extra: Distribution::Uniform(0, late) }, 0).unwrap();
        let mut at = 0;
        let mut times = vec![];
        for (i, gap) in gaps.iter().enumerate() {
            at += gap;
            times.push(at);
            wire.send(0, at, frame(mac(1), mac(0), 60, i as u32));
        }
        let deliveries = drain(&mut wire, u64::MAX);
        let order: Vec<usize> = deliveries.iter().map(|delivery| tag(&delivery.bytes) as usize).collect();
        prop_assert_eq!(order, (0..gaps.len()).collect::<Vec<_>>());
        prop_assert!(deliveries.iter().zip(&times).all(|(delivery, sent)| delivery.at >= sent + least));
        prop_assert!(deliveries.is_sorted_by_key(|delivery| delivery.at));
    }
}

/// Returns a configuration in which 1000 bytes take a millisecond (8 Mbit/s).
fn slow() -> WireConfig {
    let mut config = config(2, Distribution::Constant(LATENCY));
    config.link.bits_per_s = 8_000_000;
    config
}

#[test]
fn a_new_bandwidth_applies_to_waiting_frames() {
    let arrivals = |wire: &mut Wire| -> Vec<u64> {
        drain(wire, u64::MAX).iter().map(|delivery| delivery.at - LATENCY).collect()
    };
    let send = |wire: &mut Wire| {
        for i in 0..4 {
            wire.send(0, 0, frame(mac(1), mac(0), 1000, i));
        }
    };
    // The second frame is half sent. It leaves when it would have left without the fault; the others take ten times
    // as long.
    let mut wire = Wire::new(slow(), BootSeed::new(1)).unwrap();
    send(&mut wire);
    let fault = NetworkFault::Bandwidth { links: Links::all(), bits_per_s: 800_000 };
    wire.apply(1, &fault, 3 * MS / 2).unwrap();
    let mut healed = wire.clone();
    assert_eq!(arrivals(&mut wire), [MS, 2 * MS, 12 * MS, 22 * MS]);
    // The third frame is almost sent when the fault ends: its rest takes no longer than all of it would at the new
    // bandwidth.
    healed.heal(1, 5 * MS);
    // A frame that is sent later leaves after them.
    healed.send(0, 6 * MS, frame(mac(1), mac(0), 1000, 5));
    assert_eq!(arrivals(&mut healed), [MS, 2 * MS, 6 * MS, 7 * MS, 8 * MS]);
}

/// Frames that a fault delayed do not hold up frames that are sent after its end.
#[test]
fn delayed_frames_do_not_hold_up_later_ones() {
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    let extra = Distribution::Constant(S);
    wire.apply(1, &NetworkFault::Latency { links: Links::all(), extra }, 0).unwrap();
    stream(&mut wire, 0, 2, 10);
    wire.heal(1, 100);
    stream(&mut wire, 200, 2, 10);
    let late = |i: u64| S + LATENCY + 1 + i;
    let arrivals: Vec<u64> = drain(&mut wire, u64::MAX).iter().map(|delivery| delivery.at).collect();
    assert_eq!(arrivals, [201 + LATENCY, 211 + LATENCY, late(0), late(10)]);
}

/// A clog shorter than the latency: frames that would have arrived during it come before frames that were sent after
/// it.
#[test]
fn frames_held_at_a_clogged_node_arrive_before_later_ones() {
    let mut wire = wire(2, Distribution::Constant(50 * MS));
    wire.send(0, 0, frame(mac(1), mac(0), 60, 0));
    wire.send(0, 30 * MS, frame(mac(1), mac(0), 60, 1));
    wire.apply(1, &NetworkFault::Clog { node: "n1".into() }, 45 * MS).unwrap();
    wire.send(0, 55 * MS, frame(mac(1), mac(0), 60, 2));
    wire.heal(1, 65 * MS);
    wire.send(0, 66 * MS, frame(mac(1), mac(0), 60, 3));
    let got: Vec<(u32, u64)> = drain(&mut wire, u64::MAX).iter().map(|d| (tag(&d.bytes), d.at)).collect();
    assert_eq!(got, [(0, 115 * MS), (1, 115 * MS), (2, 115 * MS + 1), (3, 116 * MS + 1)]);
}

/// Each direction of each pair may have its own properties.
#[test]
fn links_may_differ() {
    let mut config = config(3, Distribution::Constant(LATENCY));
    let link = |ns| LinkConfig { latency: Distribution::Constant(ns), ..config.link.clone() };
    let other = |from: &str, to: &str, both_ways, ns| LinkOverride {
        from: from.into(),
        to: to.into(),
        both_ways,
        link: link(ns),
    };
    config.overrides = vec![other("n0", "n1", false, 2 * MS), other("n2", "n1", true, 3_000)];
    let mut wire = Wire::new(config, BootSeed::new(1)).unwrap();
    assert_eq!(wire.lookahead_ns(), 3_000);
    for port in 0..3 {
        wire.send(port, 0, frame(BROADCAST, mac(port), 60, port.into()));
    }
    let got: Vec<(u32, u8, u64)> =
        drain(&mut wire, u64::MAX).iter().map(|d| (tag(&d.bytes), d.port, d.at - 1)).collect();
    let expected =
        [(1, 2, 3_000), (2, 1, 3_000), (0, 2, LATENCY), (1, 0, LATENCY), (2, 0, LATENCY), (0, 1, 2 * MS)];
    assert_eq!(got, expected);
}

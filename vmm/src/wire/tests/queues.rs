//! Tests of queues, of the order of frames, and of exact arrival times.

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

    /// Frames of one direction stay in order, whatever their latencies are. Each takes at least the minimum latency.
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

/// A fault reduces the bandwidth to a tenth when frame 1 is half sent. Frame 1 leaves when it would have left without
/// the fault. Frames 2 and 3 take ten times as long. In the second run, the fault ends when 30 % of frame 2 are sent.
/// The rest of frame 2 then takes 1 ms, as long as a whole frame at the full bandwidth. Frame 5, which n0 sends later,
/// leaves last.
#[test]
fn a_new_bandwidth_applies_to_waiting_frames() {
    let begin = "
                 0         n0 sends 0 to n1, 1000 bytes
                 0         n0 sends 1 to n1, 1000 bytes
                 0         n0 sends 2 to n1, 1000 bytes
                 0         n0 sends 3 to n1, 1000 bytes
                 1ms+50us  > n1 gets 0
                 1ms+500us fault 1: bandwidth all 800000
                 2ms+50us  > n1 gets 1";
    check(
        Wire::new(slow(), BootSeed::new(1)).unwrap(),
        &format!(
            "{begin}
             12ms+50us > n1 gets 2
             22ms+50us > n1 gets 3"
        ),
    );
    check(
        Wire::new(slow(), BootSeed::new(1)).unwrap(),
        &format!(
            "{begin}
             5ms      fault 1 ends
             6ms      n0 sends 5 to n1, 1000 bytes
             6ms+50us > n1 gets 2
             7ms+50us > n1 gets 3
             8ms+50us > n1 gets 5"
        ),
    );
}

/// Frames that a fault delayed do not hold up frames that are sent after its end.
#[test]
fn delayed_frames_do_not_hold_up_later_ones() {
    check(
        wire(2, Distribution::Constant(LATENCY)),
        "0          fault 1: latency all 1s
         0          n0 sends 0 to n1
         10         n0 sends 1 to n1
         100        fault 1 ends
         200        n0 sends 2 to n1
         210        n0 sends 3 to n1
         50us+201   > n1 gets 2
         50us+211   > n1 gets 3
         1s+50us+1  > n1 gets 0 late
         1s+50us+11 > n1 gets 1 late",
    );
}

/// A frame with less additional latency arrives no earlier than the frame before it.
#[test]
fn delayed_frames_keep_their_order() {
    check(
        wire(2, Distribution::Constant(LATENCY)),
        "0         fault 1: latency all 1s
         0         n0 sends 0 to n1
         10        fault 1 ends
         10        fault 2: latency all 500ms
         20        n0 sends 1 to n1
         1s+50us+1 > n1 gets 0 late
         1s+50us+1 > n1 gets 1 late",
    );
}

/// A clog (a fault that holds a node's frames) is shorter than the latency. Frames that would have arrived during the
/// clog arrive before frames that were sent after it.
#[test]
fn frames_held_at_a_clogged_node_arrive_before_later_ones() {
    check(
        wire(2, Distribution::Constant(50 * MS)),
        "0       n0 sends 0 to n1
         30ms    n0 sends 1 to n1
         45ms    fault 1: clog n1
         55ms    n0 sends 2 to n1
         65ms    fault 1 ends
         66ms    n0 sends 3 to n1
         115ms   > n1 gets 0
         115ms   > n1 gets 1
         115ms+1 > n1 gets 2
         116ms+1 > n1 gets 3",
    );
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
    let wire = Wire::new(config, BootSeed::new(1)).unwrap();
    assert_eq!(wire.lookahead_ns(), 3_000);
    check(
        wire,
        "0      n0 sends 0 to all
         0      n1 sends 1 to all
         0      n2 sends 2 to all
         3us+1  > n2 gets 1
         3us+1  > n1 gets 2
         50us+1 > n2 gets 0
         50us+1 > n0 gets 1
         50us+1 > n0 gets 2
         2ms+1  > n1 gets 0",
    );
}

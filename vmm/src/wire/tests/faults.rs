//! Tests that each network fault has the effect that its parameters say.

use everett_fault::PPM;
use everett_fault::limits::NETWORK_FAULTS_MAX;
use everett_streams::BootSeed;

use super::*;

/// Number of frames that a test sends. It is so small that the log holds the outcomes of all frames and extra copies.
const FRAMES: u32 = 90_000;
/// Interval between frames, which exceeds any latency here, so that no frame waits for another.
const APART: u64 = 50 * MS;
const LATENCY: u64 = 200_000;
/// Time to send 100 bytes at the maximum bandwidth, rounded up, in nanoseconds.
const SENDING: u64 = 1;

/// Frame that arrived: its number, its latency in nanoseconds, and its content.
type Arrived = (u32, u64, Vec<u8>);

/// Sends a stream of frames to port 1 under these faults. Returns the arrivals and the log.
fn under(faults: &[NetworkFault]) -> (Vec<Arrived>, Vec<FrameStep>) {
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    for (id, fault) in faults.iter().enumerate() {
        wire.apply(id as u64, fault, 0).unwrap();
    }
    let times = stream(&mut wire, 0, FRAMES, APART);
    let deliveries = drain(&mut wire, u64::MAX);
    let arrived = deliveries.into_iter().map(|delivery| {
        let number = delivery.frame as usize;
        (number as u32, delivery.at - times[number], delivery.bytes)
    });
    (arrived.collect(), wire.take_steps())
}

/// True if a count of draws with this probability is within five standard deviations.
fn plausible(count: usize, of: u32, ppm: u32) -> bool {
    let (p, n) = (f64::from(ppm) / f64::from(PPM), f64::from(of));
    (count as f64 - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt()
}

#[test]
fn without_faults_every_frame_arrives_on_time() {
    let (arrived, _) = under(&[]);
    assert_eq!(arrived.len(), FRAMES as usize);
    assert!(
        arrived.iter().enumerate().all(|(i, (n, delay, _))| i as u32 == *n && *delay == LATENCY + SENDING)
    );
}

#[test]
fn loss_has_its_probability() {
    for ppm in [0, 100, 30_000, 500_000, PPM] {
        let (arrived, steps) = under(&[NetworkFault::Loss { links: Links::all(), ppm }]);
        let lost = FRAMES as usize - arrived.len();
        assert!(plausible(lost, FRAMES, ppm), "{lost} of {FRAMES} at {ppm} ppm");
        assert_eq!(drops(&steps, DropReason::Loss), lost);
    }
    // Two faults with a probability of 30 % together lose 51 % of all frames.
    let twice = NetworkFault::Loss { links: Links::all(), ppm: 300_000 };
    let (arrived, _) = under(&[twice.clone(), twice]);
    assert!(plausible(FRAMES as usize - arrived.len(), FRAMES, 510_000));
}

#[test]
fn duplication_has_its_probability_and_copies_arrive_after_the_original() {
    let ppm = 70_000;
    let (arrived, steps) = under(&[NetworkFault::Duplicate { links: Links::all(), ppm }]);
    let copies = arrived.len() - FRAMES as usize;
    assert!(plausible(copies, FRAMES, ppm), "{copies}");
    assert_eq!(steps.iter().filter(|step| step.kind == FrameStepKind::Duplicate).count(), copies);
    assert_eq!(steps.iter().filter(|step| step.kind == FrameStepKind::Deliver).count(), FRAMES as usize);
    for pair in arrived.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert_eq!(pair[0].2, pair[1].2);
        assert_eq!(pair[1].1 - pair[0].1, SENDING + LATENCY, "one more latency after the original");
    }
}

#[test]
fn a_later_frame_may_arrive_before_a_copy() {
    check(
        wire(2, Distribution::Constant(LATENCY)),
        "0       fault 1: duplicate all 1000000
         0       n0 sends 1 to n1
         100us   fault 1 ends
         100us   n0 sends 2 to n1
         200us+1 > n1 gets 1
         300us+1 > n1 gets 2
         400us+2 > n1 gets a copy of 1",
    );
}

#[test]
fn corruption_flips_one_bit_anywhere() {
    let ppm = 200_000;
    let (arrived, steps) = under(&[NetworkFault::Corrupt { links: Links::all(), ppm }]);
    let mut bits = vec![0u32; 800];
    let mut flipped = 0;
    for (number, _, bytes) in &arrived {
        let sent = frame(mac(1), mac(0), 100, *number);
        let differ: Vec<usize> =
            (0..800).filter(|bit| (sent[bit / 8] ^ bytes[bit / 8]) >> (bit % 8) & 1 != 0).collect();
        assert!(differ.len() <= 1);
        flipped += differ.len();
        differ.iter().for_each(|&bit| bits[bit] += 1);
    }
    assert_eq!(arrived.len(), FRAMES as usize);
    assert!(plausible(flipped, FRAMES, ppm), "{flipped}");
    assert_eq!(steps.iter().filter(|step| step.flipped).count(), flipped);
    // 22 flips are expected for each bit. Each has at least one, and none exceeds the expectation by six standard
    // deviations.
    assert!(bits.iter().all(|&count| (1..=50).contains(&count)), "{bits:?}");
}

#[test]
fn latency_follows_its_quantiles_and_latencies_add() {
    let tail = Distribution::Quantiles(vec![(0, 1_000), (500_000, MS), (990_000, 5 * MS), (PPM, 40 * MS)]);
    let faults = [
        NetworkFault::Latency { links: Links::all(), extra: tail.clone() },
        NetworkFault::Latency { links: Links::all(), extra: Distribution::Constant(3 * MS) },
    ];
    let (arrived, _) = under(&faults);
    let mut extra: Vec<u64> =
        arrived.iter().map(|(_, delay, _)| delay - LATENCY - SENDING - 3 * MS).collect();
    extra.sort_unstable();
    let off = |share: usize, expected: u64| extra[FRAMES as usize / 1000 * share].abs_diff(expected);
    assert!(extra[0] >= 1_000 && extra[extra.len() - 1] <= 40 * MS);
    assert!(off(250, MS / 2) < MS / 50, "{}", extra[22_500]);
    assert!(off(500, MS) < MS / 20, "{}", extra[45_000]);
    assert!(off(900, 4_265_306) < MS / 10, "{}", extra[81_000]);
    assert!(off(995, 22 * MS + MS / 2) < 3 * MS, "{}", extra[89_550]);
}

#[test]
fn reordering_has_its_probability() {
    // The interval between frames is a tenth of the hold (the delay of reordered frames). So later frames overtake each
    // held frame, and no other frame is overtaken.
    let (ppm, every) = (40_000, 10_000);
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    let hold = Distribution::Constant(10 * every);
    wire.apply(7, &NetworkFault::Reorder { links: Links::all(), ppm, hold }, 0).unwrap();
    let times = stream(&mut wire, 0, FRAMES, every);
    let deliveries = drain(&mut wire, u64::MAX);
    let held = |delivery: &Delivery| delivery.at - times[delivery.frame as usize] != LATENCY + SENDING;
    let overtaken = deliveries.iter().filter(|delivery| held(delivery)).count();
    assert!(plausible(overtaken, FRAMES, ppm), "{overtaken}");
    let in_time: Vec<u64> = deliveries.iter().filter(|delivery| !held(delivery)).map(|d| d.frame).collect();
    assert!(in_time.is_sorted());
    let mut most = 0;
    for delivery in &deliveries {
        if held(delivery) {
            assert_eq!(delivery.at - times[delivery.frame as usize], LATENCY + SENDING + 10 * every);
            assert!(delivery.frame < most, "overtaken");
        }
        most = most.max(delivery.frame);
    }
}

#[test]
fn bandwidth_bounds_throughput() {
    let mut config = config(2, Distribution::Constant(LATENCY));
    config.link.bits_per_s = 8_000_000;
    config.link.queue_bytes = 10_000;
    for (least, fault) in [(8_000_000, 20_000_000), (2_000_000, 2_000_000)] {
        let mut wire = Wire::new(config.clone(), BootSeed::new(1)).unwrap();
        wire.apply(3, &NetworkFault::Bandwidth { links: Links::all(), bits_per_s: 64_000_000 }, 0).unwrap();
        wire.apply(5, &NetworkFault::Bandwidth { links: Links::all(), bits_per_s: fault }, 0).unwrap();
        // 100 bytes each 20 us are 40 Mbit/s.
        stream(&mut wire, 0, 50_000, 20_000);
        let arrived = drain(&mut wire, S).len();
        // Frames that left the queue in the first second, minus the frames that were still on their way.
        let expected = least / 8 / 100 * (S - LATENCY) / S;
        assert!(arrived.abs_diff(expected as usize) <= 1, "{arrived} of {expected}");
        // The rest was in the queue or on its way.
        let rest = drain(&mut wire, u64::MAX).len();
        assert!(rest.abs_diff(100 + (least * LATENCY / S / 800) as usize) <= 1, "{rest}");
        assert_eq!(drops(&wire.take_steps(), DropReason::QueueFull), 50_000 - arrived - rest);
    }
}

/// A partition of one direction drops, holds or slows the frames of this direction. The other direction stays open.
#[test]
fn partitions_drop_hold_or_slow() {
    let nodes = || wire(2, Distribution::Constant(LATENCY));
    check(
        nodes(),
        "0          fault 1: partition n0>n1 drop
         0          n0 sends 0 to n1
         0          > 0 to n1 is lost: Partition
         0          n1 sends 10 to n0
         1          n0 sends 1 to n1
         1          > 1 to n1 is lost: Partition
         1          n1 sends 11 to n0
         2          n0 sends 2 to n1
         2          > 2 to n1 is lost: Partition
         2          n1 sends 12 to n0
         200us+1    > n0 gets 10
         200us+2    > n0 gets 11
         200us+3    > n0 gets 12
         5s         fault 1 ends
         5s         n0 sends 3 to n1
         5s+200us+1 > n1 gets 3",
    );
    check(
        nodes(),
        "0          fault 1: partition n0>n1 hold
         0          n0 sends 0 to n1
         0          n1 sends 10 to n0
         1          n0 sends 1 to n1
         1          n1 sends 11 to n0
         2          n0 sends 2 to n1
         2          n1 sends 12 to n0
         200us+1    > n0 gets 10
         200us+2    > n0 gets 11
         200us+3    > n0 gets 12
         5s         fault 1 ends
         5s         n0 sends 3 to n1
         5s+200us+1 > n1 gets 0 late
         5s+200us+2 > n1 gets 1 late
         5s+200us+3 > n1 gets 2 late
         5s+200us+4 > n1 gets 3",
    );
    check(
        nodes(),
        "0          fault 1: partition n0>n1 slow
         0          n0 sends 0 to n1
         0          n1 sends 10 to n0
         1          n0 sends 1 to n1
         1          n1 sends 11 to n0
         2          n0 sends 2 to n1
         2          n1 sends 12 to n0
         200us+1    > n0 gets 10
         200us+2    > n0 gets 11
         200us+3    > n0 gets 12
         1s+200us+1 > n1 gets 0 late
         1s+200us+2 > n1 gets 1 late
         1s+200us+3 > n1 gets 2 late
         5s         fault 1 ends
         5s         n0 sends 3 to n1
         5s+200us+1 > n1 gets 3",
    );
}

#[test]
fn one_partition_holds_and_others_slow() {
    let nodes = || wire(2, Distribution::Constant(LATENCY));
    check(
        nodes(),
        "0          fault 1: partition n0>n1 slow
         0          fault 2: partition n0>n1 slow
         0          n0 sends 0 to n1
         1s+200us+1 > n1 gets 0 late
         5s         fault 1 ends
         5s         fault 2 ends",
    );
    for (one, other) in [("hold", "slow"), ("slow", "hold")] {
        check(
            nodes(),
            &format!(
                "0          fault 1: partition n0>n1 {one}
                 0          fault 2: partition n0>n1 {other}
                 0          n0 sends 0 to n1
                 5s         fault 1 ends
                 5s         fault 2 ends
                 5s+200us+1 > n1 gets 0 late"
            ),
        );
    }
}

/// Frames to and from a clogged node wait. Frames that the node sent before the clog, and frames between other nodes,
/// arrive.
#[test]
fn a_clogged_node_neither_sends_nor_receives() {
    check_taught(
        wire(3, Distribution::Constant(LATENCY)),
        "0          n0 sends 1 to n1
         0          n1 sends 2 to n0
         10         fault 1: clog n1
         20         n0 sends 3 to n1
         20         n1 sends 4 to n0
         20         n2 sends 5 to n0
         20         next is 200us+1, 5 frames on the way
         200us+1    > n0 gets 2
         200us+21   > n0 gets 5
         1s         next is none, 3 frames on the way
         1s         fault 1 ends
         1s+200us   > n1 gets 1 late
         1s+200us+1 > n1 gets 3 late
         1s+200us+1 > n0 gets 4 late",
    );
}

/// A frame that several faults hold continues when the last of these faults ends. If a partition that drops frames is
/// active then, the frame is lost.
#[test]
fn a_frame_that_two_faults_hold_waits_for_both() {
    let begin = "
                 0  fault 1: partition all hold
                 0  fault 2: clog n0
                 5  n0 sends 1 to n1
                 10 fault 1 ends
                 15 fault 3: partition all hold
                 20 fault 2 ends
                 20 next is none, 1 frames on the way";
    let nodes = || wire(2, Distribution::Constant(LATENCY));
    check(
        nodes(),
        &format!(
            "{begin}
             30       fault 3 ends
             30       next is 200us+31, 1 frames on the way
             200us+31 > n1 gets 1"
        ),
    );
    check(
        nodes(),
        &format!(
            "{begin}
             25 fault 4: partition all drop
             30 fault 3 ends
             30 > 1 to n1 is lost: Partition
             30 next is none, 0 frames on the way"
        ),
    );
}

/// A partition also affects frames that were sent before it began and still wait in a slow queue.
#[test]
fn a_partition_stops_frames_that_are_in_the_queue() {
    let slow = || {
        let mut config = config(2, Distribution::Constant(LATENCY));
        config.link.bits_per_s = 8_000;
        Wire::new(config, BootSeed::new(1)).unwrap()
    };
    check(
        slow(),
        "0               n0 sends 0 to n1
         1               n0 sends 1 to n1
         2               n0 sends 2 to n1
         100ms+200us     > n1 gets 0
         150ms           fault 1: partition all hold
         10s             fault 1 ends
         10s+100ms+200us > n1 gets 1 late
         10s+200ms+200us > n1 gets 2 late",
    );
    check(
        slow(),
        "0           n0 sends 0 to n1
         1           n0 sends 1 to n1
         2           n0 sends 2 to n1
         100ms+200us > n1 gets 0
         150ms       fault 1: partition all drop
         150ms       > 1 to n1 is lost: Partition
         150ms       > 2 to n1 is lost: Partition
         10s         fault 1 ends",
    );
}

#[test]
fn invalid_network_faults_are_refused() {
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    let before = wire.clone();
    let loss = |links, ppm| NetworkFault::Loss { links, ppm };
    let all = Links::all;
    for (fault, error) in [
        (NetworkFault::Clog { node: "n2".into() }, FaultError::UnknownNode("n2".into())),
        (loss(one_way("n0", "x"), 1), FaultError::UnknownNode("x".into())),
        (loss(all(), PPM + 1), FaultError::Ppm(PPM + 1)),
        (NetworkFault::Duplicate { links: all(), ppm: u32::MAX }, FaultError::Ppm(u32::MAX)),
        (NetworkFault::Corrupt { links: all(), ppm: PPM + 1 }, FaultError::Ppm(PPM + 1)),
        (
            NetworkFault::Reorder { links: all(), ppm: PPM + 1, hold: Distribution::Constant(1) },
            FaultError::Ppm(PPM + 1),
        ),
        (NetworkFault::Bandwidth { links: all(), bits_per_s: 0 }, FaultError::Bandwidth(0)),
        (
            NetworkFault::Latency { links: all(), extra: Distribution::Quantiles(vec![]) },
            FaultError::Distribution(everett_fault::distribution::DistributionError::Quantiles),
        ),
    ] {
        assert_eq!(wire.apply(1, &fault, 10), Err(error));
    }
    assert_eq!(wire, before);
    wire.apply(1, &loss(all(), 5), 10).unwrap();
    assert_eq!(wire.apply(1, &loss(all(), 5), 10), Err(FaultError::Active(1)));
    assert_eq!(wire.faults().collect::<Vec<_>>(), [1]);
    for id in 2..=NETWORK_FAULTS_MAX as u64 {
        wire.apply(id, &loss(all(), 5), 10).unwrap();
    }
    assert_eq!(wire.apply(0, &loss(all(), 5), 10), Err(FaultError::TooMany));
    wire.heal_all(10);
    assert_eq!(wire.faults().count(), 0);
}

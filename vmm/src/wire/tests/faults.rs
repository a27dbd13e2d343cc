//! Each network fault against its parameters.

use everett_fault::limits::NETWORK_FAULTS_MAX;
use everett_fault::{PPM, PartitionMode};
use everett_streams::BootSeed;

use super::*;

/// Number of frames, small enough that the log holds their steps and those of copies.
const FRAMES: u32 = 90_000;
/// Interval between frames, which exceeds any latency here, so that no frame waits for another.
const APART: u64 = 50 * MS;
const LATENCY: u64 = 200_000;
/// Time to send 100 bytes at the maximum bandwidth, rounded up, in nanoseconds.
const SENDING: u64 = 1;

/// Frame that arrived: its number, its latency in nanoseconds, and its content.
type Arrived = (u32, u64, Vec<u8>);

/// Returns the arrivals at port 1 of a stream under these faults, and the log.
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
    // Frames are a tenth of the hold apart: a held frame is overtaken, and no other is.
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
        // Frames that left the queue in the first second, less those on their way.
        let expected = least / 8 / 100 * (S - LATENCY) / S;
        assert!(arrived.abs_diff(expected as usize) <= 1, "{arrived} of {expected}");
        // The rest was in the queue or on its way.
        let rest = drain(&mut wire, u64::MAX).len();
        assert!(rest.abs_diff(100 + (least * LATENCY / S / 800) as usize) <= 1, "{rest}");
        assert_eq!(drops(&wire.take_steps(), DropReason::QueueFull), 50_000 - arrived - rest);
    }
}

#[test]
fn partitions_drop_hold_or_slow() {
    let fault = |mode| NetworkFault::Partition { links: one_way("n0", "n1"), mode };
    let run = |mode| {
        let mut wire = wire(2, Distribution::Constant(LATENCY));
        wire.apply(1, &fault(mode), 0).unwrap();
        for i in 0..3 {
            wire.send(0, i, frame(mac(1), mac(0), 100, i as u32));
            wire.send(1, i, frame(mac(0), mac(1), 100, i as u32));
        }
        assert!(wire.heal(1, 5 * S));
        assert!(!wire.heal(1, 5 * S));
        wire.send(0, 5 * S, frame(mac(1), mac(0), 100, 3));
        let mut ports = [vec![], vec![]];
        for delivery in drain(&mut wire, u64::MAX) {
            ports[usize::from(delivery.port)].push((tag(&delivery.bytes), delivery.at));
        }
        assert_eq!(ports[0].len(), 3, "the other way is open");
        (std::mem::take(&mut ports[1]), wire.take_steps())
    };
    let (dropped, steps) = run(PartitionMode::Drop);
    assert_eq!(dropped, [(3, 5 * S + LATENCY + SENDING)]);
    assert_eq!(drops(&steps, DropReason::Partition), 3);
    let after = |frames| 5 * S + LATENCY + frames * SENDING;
    assert_eq!(run(PartitionMode::Hold).0, [(0, after(1)), (1, after(2)), (2, after(3)), (3, after(4))]);
    let slow = |i| i + SLOW_NS + LATENCY + SENDING;
    assert_eq!(run(PartitionMode::Slow).0, [(0, slow(0)), (1, slow(1)), (2, slow(2)), (3, after(1))]);
}

#[test]
fn one_partition_holds_and_others_slow() {
    let arrives = |modes: &[PartitionMode]| {
        let mut wire = wire(2, Distribution::Constant(LATENCY));
        for (id, &mode) in (1..).zip(modes) {
            wire.apply(id, &NetworkFault::Partition { links: one_way("n0", "n1"), mode }, 0).unwrap();
        }
        wire.send(0, 0, frame(mac(1), mac(0), 100, 0));
        for (id, _) in (1..).zip(modes) {
            assert!(wire.heal(id, 5 * S));
        }
        drain(&mut wire, u64::MAX)[0].at
    };
    use PartitionMode::{Hold, Slow};
    assert_eq!(arrives(&[Slow, Slow]), SLOW_NS + LATENCY + SENDING);
    for modes in [[Hold, Slow], [Slow, Hold]] {
        assert_eq!(arrives(&modes), 5 * S + LATENCY + SENDING, "{modes:?}");
    }
}

#[test]
fn a_clogged_node_neither_sends_nor_receives() {
    let mut wire = wire(3, Distribution::Constant(LATENCY));
    let start = teach(&mut wire);
    // When n1 is clogged, one frame is on its way to it and one from it. Later frames go both ways, and between other
    // nodes.
    wire.send(0, start, frame(mac(1), mac(0), 60, 1));
    wire.send(1, start, frame(mac(0), mac(1), 60, 2));
    wire.apply(1, &NetworkFault::Clog { node: "n1".into() }, start + 10).unwrap();
    wire.send(0, start + 20, frame(mac(1), mac(0), 60, 3));
    wire.send(1, start + 20, frame(mac(0), mac(1), 60, 4));
    wire.send(2, start + 20, frame(mac(0), mac(2), 60, 5));
    assert_eq!(wire.next_delivery(), Some(start + LATENCY + SENDING));
    let through: Vec<u32> = drain(&mut wire, start + S).iter().map(|delivery| tag(&delivery.bytes)).collect();
    assert_eq!(through, [2, 5]);
    assert_eq!((wire.next_delivery(), wire.frames_on_way()), (None, 3));
    wire.heal(1, start + S);
    let late: Vec<(u32, u64)> =
        drain(&mut wire, u64::MAX).iter().map(|d| (tag(&d.bytes), d.at - start - S)).collect();
    assert_eq!(late, [(1, LATENCY), (3, LATENCY + SENDING), (4, LATENCY + SENDING)]);
}

/// A frame that two faults hold continues when the last of them ends, and is lost in a partition that drops.
#[test]
fn a_frame_that_two_faults_hold_waits_for_both() {
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    let partition = |mode| NetworkFault::Partition { links: Links::all(), mode };
    wire.apply(1, &partition(PartitionMode::Hold), 0).unwrap();
    wire.apply(2, &NetworkFault::Clog { node: "n0".into() }, 0).unwrap();
    wire.send(0, 5, frame(mac(1), mac(0), 60, 1));
    wire.heal(1, 10);
    wire.apply(3, &partition(PartitionMode::Hold), 15).unwrap();
    wire.heal(2, 20);
    assert_eq!(wire.next_delivery(), None);
    let mut cut = wire.clone();
    wire.heal(3, 30);
    assert_eq!(wire.next_delivery(), Some(30 + LATENCY + SENDING));
    cut.apply(4, &partition(PartitionMode::Drop), 25).unwrap();
    cut.heal(3, 30);
    assert_eq!((cut.next_delivery(), cut.frames_on_way()), (None, 0));
    assert_eq!(drops(&cut.take_steps(), DropReason::Partition), 1);
}

/// In a slow queue, a partition affects the frames that have not left it.
#[test]
fn a_partition_stops_frames_that_are_in_the_queue() {
    let mut config = config(2, Distribution::Constant(LATENCY));
    config.link.bits_per_s = 8_000;
    for (mode, arrive) in [
        (PartitionMode::Hold, vec![(0, 100 * MS), (1, 10 * S + 100 * MS), (2, 10 * S + 200 * MS)]),
        (PartitionMode::Drop, vec![(0, 100 * MS)]),
    ] {
        let mut wire = Wire::new(config.clone(), BootSeed::new(1)).unwrap();
        stream(&mut wire, 0, 3, 1);
        wire.apply(1, &NetworkFault::Partition { links: Links::all(), mode }, 150 * MS).unwrap();
        wire.heal(1, 10 * S);
        let got: Vec<(u32, u64)> =
            drain(&mut wire, u64::MAX).iter().map(|d| (tag(&d.bytes), d.at - LATENCY)).collect();
        assert_eq!(got, arrive, "{mode:?}");
    }
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

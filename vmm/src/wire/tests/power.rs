//! Nodes lose power and get it back.

use everett_streams::BootSeed;

use super::*;

const LATENCY: u64 = 200_000;

#[test]
fn frames_on_their_way_arrive_and_frames_in_the_card_are_lost() {
    let mut config = config(2, Distribution::Constant(LATENCY));
    config.link.bits_per_s = 8_000_000;
    let mut wire = Wire::new(config, BootSeed::new(1)).unwrap();
    // 100 bytes take 100 us: two frames have left the card, the third is half sent.
    stream(&mut wire, 0, 5, 1);
    wire.detach(0, 250_000);
    wire.send(0, 260_000, frame(mac(1), mac(0), 100, 9));
    wire.attach(0, 270_000);
    wire.send(0, 280_000, frame(mac(1), mac(0), 100, 10));
    let got: Vec<(u32, u64)> =
        drain(&mut wire, u64::MAX).iter().map(|d| (tag(&d.bytes), d.at - LATENCY)).collect();
    assert_eq!(
        got,
        [(0, 100_000), (1, 200_000), (10, 380_000)],
        "the card's queue is empty when power is back"
    );
    let steps = wire.take_steps();
    let lost: Vec<(u64, u64, Option<u8>)> = steps
        .iter()
        .filter(|step| step.kind == FrameStepKind::Drop { why: DropReason::Detached })
        .map(|step| (step.frame, step.vtime, step.to))
        .collect();
    assert_eq!(
        lost,
        [(2, 250_000, Some(1)), (3, 250_000, Some(1)), (4, 250_000, Some(1)), (5, 260_000, None)]
    );
}

#[test]
fn frames_that_arrive_at_a_node_without_power_are_lost() {
    let mut wire = wire(3, Distribution::Constant(LATENCY));
    let start = teach(&mut wire);
    wire.send(0, start, frame(mac(1), mac(0), 60, 1));
    wire.send(0, start + LATENCY, frame(mac(1), mac(0), 60, 2));
    wire.detach(1, start + LATENCY);
    assert_eq!(wire.next_delivery(), None);
    wire.attach(1, start + LATENCY + 100);
    wire.send(0, start + LATENCY + 100, frame(mac(1), mac(0), 60, 3));
    // The first frame arrived while the node had no power. The second is for any node that is at its port when it
    // arrives. The switch has forgotten the address, so the third is flooded.
    let got: Vec<(u32, u8)> = drain(&mut wire, start + S).iter().map(|d| (tag(&d.bytes), d.port)).collect();
    assert_eq!(got, [(2, 1), (3, 1), (3, 2)]);

    let mut wire = super::wire(2, Distribution::Constant(LATENCY));
    wire.send(0, 0, frame(mac(1), mac(0), 60, 1));
    wire.detach(1, 10);
    assert_eq!(drain(&mut wire, S), []);
    let steps = wire.take_steps();
    assert_eq!(steps.len(), 1);
    assert_eq!(
        (steps[0].kind, steps[0].vtime),
        (FrameStepKind::Drop { why: DropReason::Detached }, LATENCY + 1)
    );
}

#[test]
fn a_clogged_card_without_power_loses_its_frames() {
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    let hold = NetworkFault::Partition { links: Links::all(), mode: everett_fault::PartitionMode::Hold };
    wire.apply(1, &hold, 0).unwrap();
    wire.send(0, 0, frame(mac(1), mac(0), 60, 1));
    wire.apply(2, &NetworkFault::Clog { node: "n0".into() }, 1).unwrap();
    wire.send(0, 2, frame(mac(1), mac(0), 60, 2));
    wire.detach(0, 3);
    wire.attach(0, 4);
    wire.heal_all(5);
    let got: Vec<u32> = drain(&mut wire, S).iter().map(|d| tag(&d.bytes)).collect();
    assert_eq!(got, [1], "a partition holds frames outside of the card");
}

#[test]
fn a_frame_that_a_partition_holds_has_left_its_card_when_the_clog_ends() {
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    let hold = NetworkFault::Partition { links: Links::all(), mode: everett_fault::PartitionMode::Hold };
    wire.apply(1, &hold, 0).unwrap();
    for (at, id) in [(1, 2), (4, 3)] {
        wire.apply(id, &NetworkFault::Clog { node: "n0".into() }, at).unwrap();
        wire.send(0, at + 1, frame(mac(1), mac(0), 60, id as u32));
        if id == 2 {
            wire.heal(2, at + 2);
        }
    }
    wire.detach(0, 7);
    wire.attach(0, 8);
    wire.heal_all(9);
    let got: Vec<u32> = drain(&mut wire, S).iter().map(|d| tag(&d.bytes)).collect();
    assert_eq!(got, [2], "frame 3 was in a clogged card");
}

//! Tests of nodes that lose power and get it back.

use everett_streams::BootSeed;

use super::*;

const LATENCY: u64 = 200_000;

/// When n0 loses power, two frames have left the card, and the third is half sent. The card's queue is empty when power
/// is back.
#[test]
fn frames_on_their_way_arrive_and_frames_in_the_card_are_lost() {
    let mut config = config(2, Distribution::Constant(LATENCY));
    // 100 bytes take 100 us.
    config.link.bits_per_s = 8_000_000;
    check(
        Wire::new(config, BootSeed::new(1)).unwrap(),
        "0     n0 sends 0 to n1
         1     n0 sends 1 to n1
         2     n0 sends 2 to n1
         3     n0 sends 3 to n1
         4     n0 sends 4 to n1
         250us n0 loses power
         250us > 2 to n1 is lost: Detached
         250us > 3 to n1 is lost: Detached
         250us > 4 to n1 is lost: Detached
         260us n0 sends 9 to n1
         260us > 9 is lost: Detached
         270us n0 gets power
         280us n0 sends 10 to n1
         300us > n1 gets 0
         400us > n1 gets 1
         580us > n1 gets 10",
    );
}

/// A frame arrives if its receiver has power at that time, even if the receiver had none for a while since the frame
/// was sent. The switch has forgotten the address of the node that lost power, so the third frame is flooded.
#[test]
fn frames_that_arrive_at_a_node_without_power_are_lost() {
    check_taught(
        wire(3, Distribution::Constant(LATENCY)),
        "0         n0 sends 1 to n1
         200us     n0 sends 2 to n1
         200us     n1 loses power
         200us     next is none, 2 frames on the way
         200us+1   > 1 to n1 is lost: Detached
         200us+100 n1 gets power
         200us+100 n0 sends 3 to n1
         400us+1   > n1 gets 2
         400us+101 > n1 gets 3
         400us+101 > n2 gets 3",
    );
    check(
        wire(2, Distribution::Constant(LATENCY)),
        "0       n0 sends 1 to n1
         10      n1 loses power
         200us+1 > 1 to n1 is lost: Detached",
    );
}

/// Frames that a partition in mode `hold` holds back have already left the card, so a power loss does not affect them.
/// Frames that wait in a clogged card (a card that neither sends nor receives) are lost.
#[test]
fn a_clogged_card_without_power_loses_its_frames() {
    check(
        wire(2, Distribution::Constant(LATENCY)),
        "0       fault 1: partition all hold
         0       n0 sends 1 to n1
         1       fault 2: clog n0
         2       n0 sends 2 to n1
         3       n0 loses power
         3       > 2 to n1 is lost: Detached
         4       n0 gets power
         5       all faults end
         200us+6 > n1 gets 1",
    );
}

#[test]
fn a_frame_that_a_partition_holds_has_left_its_card_when_the_clog_ends() {
    check(
        wire(2, Distribution::Constant(LATENCY)),
        "0        fault 1: partition all hold
         1        fault 2: clog n0
         2        n0 sends 2 to n1
         3        fault 2 ends
         4        fault 3: clog n0
         5        n0 sends 3 to n1
         7        n0 loses power
         7        > 3 to n1 is lost: Detached
         8        n0 gets power
         9        all faults end
         200us+10 > n1 gets 2",
    );
}

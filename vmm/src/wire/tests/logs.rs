//! Tests of the wire's log, which records what became of frames: each frame to a receiver has one outcome, and reading
//! the log changes nothing on the wire.

use super::log::STEPS_MAX;
use super::*;

const LATENCY: u64 = 200_000;

/// A frame that arrives 200 ms after it was sent, or later, has the outcome TIMEOUT in the log.
#[test]
fn a_late_frame_makes_the_move_timeout() {
    check(
        wire(2, Distribution::Constant(LATENCY)),
        "0               fault 1: latency all 199ms+799us+998
         0               n0 sends 0 to n1
         0               fault 1 ends
         199ms+999us+999 > n1 gets 0
         1s              fault 1: latency all 199ms+799us+999
         1s              n0 sends 1 to n1
         1s              fault 1 ends
         1s+200ms        > n1 gets 1 late",
    );
}

/// The log closes twice. Both times the frame to n2 is a TIMEOUT, because a fault holds it. The frame to n1 is a
/// TIMEOUT only at the second closing, because at the first closing it is not late yet.
#[test]
fn a_frame_that_is_late_when_the_log_closes_makes_the_move_timeout() {
    check_taught(
        wire(3, Distribution::Constant(LATENCY)),
        "0               fault 1: latency n0>n1 1s
         0               fault 2: clog n2
         0               n0 sends 1 to n1
         0               n0 sends 2 to n2
         199ms+999us+999 the log closes
         199ms+999us+999 > 2 to n2 has timed out
         200ms           the log closes
         200ms           > 2 to n2 has timed out
         200ms           > 1 to n1 has timed out
         1s+200us+1      > n1 gets 1 late
         end             > 1 frames remain",
    );
}

#[test]
fn watching_changes_nothing_and_the_log_is_bounded() {
    let mut watched = wire(2, Distribution::Uniform(1_000, 9_000));
    let mut alone = watched.clone();
    let mut steps = 0;
    for i in 0..STEPS_MAX as u64 + 50 {
        for wire in [&mut watched, &mut alone] {
            wire.send(0, i * 10, frame(mac(1), mac(0), 60, i as u32));
            while wire.pop_due(i * 10).is_some() {}
        }
        steps += watched.take_steps().len();
    }
    assert_eq!(watched, alone);
    assert_eq!(drain(&mut watched, u64::MAX), drain(&mut alone, u64::MAX));
    assert_eq!(steps + watched.take_steps().len(), STEPS_MAX + 50);
    assert_eq!((watched.steps_lost(), alone.steps_lost()), (0, 50));
    assert_eq!(alone.take_steps().len(), STEPS_MAX);
}

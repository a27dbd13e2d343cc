//! The log: each message makes one move, and observing it changes nothing.

use super::log::{STEPS_MAX, TIMEOUT_NS};
use super::*;

const LATENCY: u64 = 200_000;

#[test]
fn a_late_frame_makes_the_move_timeout() {
    let mut wire = wire(2, Distribution::Constant(LATENCY));
    let extra = |ns| NetworkFault::Latency { links: Links::all(), extra: Distribution::Constant(ns) };
    let mut kinds = vec![];
    for (i, ns) in [TIMEOUT_NS - LATENCY - 2, TIMEOUT_NS - LATENCY - 1].into_iter().enumerate() {
        let at = i as u64 * S;
        wire.apply(1, &extra(ns), at).unwrap();
        wire.send(0, at, frame(mac(1), mac(0), 60, 0));
        wire.heal(1, at);
        assert_eq!(drain(&mut wire, at + S).len(), 1, "the frame arrives, late or not");
        kinds.extend(wire.take_steps().iter().map(|step| (step.kind, step.vtime - at, step.sent_at - at)));
    }
    let expected = [(FrameStepKind::Deliver, TIMEOUT_NS - 1, 0), (FrameStepKind::Timeout, TIMEOUT_NS, 0)];
    assert_eq!(kinds, expected);
}

#[test]
fn a_frame_that_is_late_when_the_log_closes_makes_the_move_timeout() {
    let mut wire = wire(3, Distribution::Constant(LATENCY));
    let start = teach(&mut wire);
    let extra = Distribution::Constant(S);
    wire.apply(1, &NetworkFault::Latency { links: one_way("n0", "n1"), extra }, start).unwrap();
    wire.apply(2, &NetworkFault::Clog { node: "n2".into() }, start).unwrap();
    wire.send(0, start, frame(mac(1), mac(0), 60, 1));
    wire.send(0, start, frame(mac(2), mac(0), 60, 2));
    let before = wire.clone();
    let closed = |wire: &mut Wire, at| {
        wire.close_log(at);
        wire.take_steps().iter().map(|step| (step.kind, step.to, step.vtime)).collect::<Vec<_>>()
    };
    let end = start + TIMEOUT_NS - 1;
    assert_eq!(
        closed(&mut wire, end),
        [(FrameStepKind::Timeout, Some(2), end)],
        "the frame to n2 is held; the one to n1 may still arrive in time"
    );
    let end = start + TIMEOUT_NS;
    let both = [(FrameStepKind::Timeout, Some(2), end), (FrameStepKind::Timeout, Some(1), end)];
    assert_eq!(closed(&mut wire, end), both);
    assert_eq!(wire, before);
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

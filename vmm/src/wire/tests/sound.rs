//! Tests of properties that hold for any calls to a wire.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::plan::{Action, Faults, PORTS, act, moves, plan, plan_wire};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Deliveries are in order, not too early, and only of sent frames. No frame has two outcomes for the same
    /// receiver. At the end no frame is left, and the wire's log has as many arrivals as frames were delivered.
    #[test]
    fn every_message_makes_one_move(plan in plan(Faults::Any)) {
        let mut wire = plan_wire();
        let mut sent = BTreeMap::new();
        let mut got = vec![];
        let mut steps = vec![];
        let mut end = 0;
        for (number, (at, action)) in plan.iter().enumerate() {
            if let Action::Send { .. } = action {
                sent.insert(sent.len() as u64, (number as u32, *at));
            }
            act(&mut wire, *at, number, action);
            got.extend(drain(&mut wire, *at));
            end = *at;
        }
        prop_assert_eq!(&stored(&wire), &wire);
        wire.heal_all(end);
        got.extend(drain(&mut wire, u64::MAX));
        prop_assert_eq!((wire.frames_on_way(), wire.next_delivery()), (0, None));
        steps.extend(wire.take_steps());

        prop_assert!(got.is_sorted_by_key(|delivery| delivery.at));
        let flipped = |frame: u64, to: u8| steps.iter().any(|s| (s.frame, s.to, s.flipped) == (frame, Some(to), true));
        for delivery in &got {
            let (number, at) = sent[&delivery.frame];
            prop_assert!(delivery.at >= at + wire.lookahead_ns());
            prop_assert!(tag(&delivery.bytes) == number || flipped(delivery.frame, delivery.port));
        }
        let (messages, once) = moves(&steps);
        prop_assert!(once, "{steps:?}");
        // Each frame has outcomes for one or more receivers, or a single outcome that names no receiver.
        for frame in sent.keys() {
            let to: Vec<Option<u8>> = messages.range((*frame, 0, None)..(frame + 1, 0, None)).map(|m| m.2).collect();
            prop_assert!(to == [None] || !to.is_empty() && !to.contains(&None), "{frame}: {to:?}");
        }
        let arrived = steps.iter().filter(|step| !matches!(step.kind, FrameStepKind::Drop { .. })).count();
        prop_assert_eq!(arrived, got.len());
    }

    /// Frames of one direction arrive in order even if frames are lost or held, a node is clogged (its network card
    /// neither sends nor receives), or the bandwidth changes.
    #[test]
    fn directions_keep_their_order(plan in plan(Faults::InOrder)) {
        let mut wire = plan_wire();
        for (number, (at, action)) in plan.iter().enumerate() {
            act(&mut wire, *at, number, action);
        }
        wire.heal_all(plan.last().map_or(0, |(at, _)| *at));
        let got = drain(&mut wire, u64::MAX);
        let senders: BTreeMap<u64, u8> = wire.take_steps().iter().map(|step| (step.frame, step.from)).collect();
        for from in 0..PORTS {
            for to in 0..PORTS {
                let frames: Vec<u64> =
                    got.iter().filter(|d| d.port == to && senders[&d.frame] == from).map(|d| d.frame).collect();
                prop_assert!(frames.is_sorted_by(|a, b| a < b), "{from} to {to}: {frames:?}");
            }
        }
    }

    /// A frame that was due or sent while a node was clogged arrives after the clog's end. At least the lookahead (the
    /// minimum latency of all links) passes between the clog's end and the arrival.
    #[test]
    fn held_frames_arrive_after_the_lookahead(
        sends in prop::collection::vec((0..2u8, 1..200_000u64), 2..40), clog in 0..40usize, length in 1..30usize,
    ) {
        let clog = clog % (sends.len() - 1);
        let heal = (clog + length).min(sends.len() - 1);
        let times: Vec<u64> = sends.iter().scan(0, |at, (_, gap)| { *at += gap; Some(*at) }).collect();
        let run = |clogged: bool| {
            let mut wire = plan_wire();
            for (i, (&at, &(from, _))) in times.iter().zip(&sends).enumerate() {
                if clogged && i == clog {
                    wire.apply(1, &NetworkFault::Clog { node: "n1".into() }, at).unwrap();
                }
                if clogged && i == heal {
                    wire.heal(1, at);
                }
                wire.send(from, at, frame(mac(1 - from), mac(from), 60, i as u32));
            }
            let got = drain(&mut wire, u64::MAX);
            let to = |port| got.iter().filter(move |d| d.port == port).map(|d| (d.frame as usize, d.at));
            [to(0).collect::<BTreeMap<_, _>>(), to(1).collect()]
        };
        let (calm, got) = (run(false), run(true));
        let (begun, ended) = (times[clog], times[heal]);
        for (frame, &at) in &got[1] {
            let sent_meanwhile = (begun..ended).contains(&times[*frame]);
            if sent_meanwhile || (begun + 1..=ended).contains(&calm[1][frame]) {
                prop_assert!(at >= ended + plan_wire().lookahead_ns());
            }
            prop_assert!(at <= begun || at > ended);
        }
        for (frame, &at) in got[0].iter().filter(|(frame, _)| (begun..ended).contains(&times[**frame])) {
            prop_assert!(at >= ended + plan_wire().lookahead_ns(), "{frame}");
        }
        prop_assert_eq!([got[0].len(), got[1].len()], [calm[0].len(), calm[1].len()]);
    }
}

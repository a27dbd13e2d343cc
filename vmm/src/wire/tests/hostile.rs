//! Tests with arbitrary bytes as frames and as the stored state of a wire (the simulated network).

use proptest::prelude::*;

use super::plan::{Faults, act, plan, plan_wire};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// If the stored state of a wire is damaged, it is refused, or the wire restored from it works.
    #[test]
    fn a_damaged_wire_is_refused_or_works(
        before in plan(Faults::Any), after in plan(Faults::Any),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut wire = plan_wire();
        for (number, (at, action)) in before.iter().enumerate() {
            act(&mut wire, *at, number, action);
        }
        let mut bytes = postcard::to_stdvec(&wire).unwrap();
        for (place, value) in &damage {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(mut wire) = postcard::from_bytes::<Wire>(&bytes) {
            let start = wire.vtime() + S;
            for (number, (at, action)) in after.iter().enumerate() {
                act(&mut wire, start + at, number, action);
                let next = wire.next_delivery();
                prop_assert!(wire.pop_due(start + at).is_none() || next.is_some());
            }
            wire.close_log(1 << 63);
            drain(&mut wire, 1 << 63);
        } else {
            prop_assert!(!damage.is_empty() || cut.is_some());
        }
    }

    #[test]
    fn any_frame_goes_in(frames in prop::collection::vec((0..4u8, prop::collection::vec(any::<u8>(), 0..1600)), 1..20)) {
        let mut wire = wire(4, Distribution::Constant(1_000));
        for (i, (port, bytes)) in frames.iter().enumerate() {
            wire.send(*port, i as u64 * MS, bytes.clone());
        }
        drain(&mut wire, S);
        for step in wire.take_steps() {
            prop_assert!(!step.summary.to_string().is_empty());
        }
    }
}

//! Tests that restore the composer, which decides when test commands start, from valid and from damaged stored states.

use chacha20::rand_core::Rng;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::caller::{Caller, templates, worlds};
use super::*;

const FILES: &[(u16, &str)] = &[
    (0, "anytime_a"),
    (0, "eventually_b"),
    (0, "finally_c"),
    (0, "first_d"),
    (0, "parallel_driver_e"),
    (1, "parallel_driver_e"),
    (0, "serial_driver_f"),
    (0, "singleton_driver_g"),
];

/// Returns a state in which a parallel driver runs, the singleton driver was started, and the next command is drawn.
fn stored() -> Value {
    json!({
        "now_ns": 1000, "phase": "Driving", "parallel": 2, "ending": "Finally",
        "drivers": { "command": 5, "at_ns": 1500, "pause_ns": 600 },
        "anytime": { "command": 0, "at_ns": 900, "pause_ns": 700 },
        "runs": [{ "run": 3, "command": 4, "node": 1 }, { "run": 5, "command": 0, "node": 0 }],
        "next_run": 6, "spent": [6], "down": [0], "worked": true, "killed": false,
    })
}

fn is_sound(changes: &[(&str, Value)]) -> bool {
    let mut state = stored();
    for (place, value) in changes {
        *state.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = value.clone();
    }
    let state: ComposerState = serde_json::from_value(state).unwrap();
    let template = template(FILES);
    let is_sound = state.is_sound(&template);
    assert_eq!(Composer::go_on(&template, state).is_ok(), is_sound);
    is_sound
}

fn runs(commands: &[usize]) -> Value {
    commands
        .iter()
        .enumerate()
        .map(|(run, command)| json!({ "run": run, "command": command, "node": 0 }))
        .collect()
}

#[test]
fn sound_states_by_phase() {
    assert!(is_sound(&[]));
    let none = |phase: Value, commands: &[usize]| {
        is_sound(&[
            ("/phase", phase),
            ("/drivers", Value::Null),
            ("/anytime", Value::Null),
            ("/runs", runs(commands)),
        ])
    };
    assert!(none(json!("Driving"), &[4, 4, 4, 4, 0, 0]));
    assert!(none(json!("Driving"), &[6, 0]));
    assert!(none(json!({ "Finishing": { "until_ns": 60_000_001_000u64 } }), &[4]));
    assert!(none(json!({ "Finishing": { "until_ns": 5 } }), &[3]), "the first_ command still runs");
    assert!(none(json!({ "Killing": { "until_ns": 5, "told": true } }), &[0, 0, 5]));
    assert!(none(json!({ "Eventually": { "until_ns": 5, "started": true } }), &[1]));
    assert!(none(json!({ "Eventually": { "until_ns": 5, "started": false } }), &[]));
    assert!(none(json!({ "Finally": { "until_ns": 5, "started": 1 } }), &[2]));
    assert!(none(json!({ "Finally": { "until_ns": 5, "started": 1 } }), &[]));
    for commands in [&[1][..], &[2], &[3], &[4, 4], &[]] {
        assert!(none(json!({ "Over": { "told": true } }), commands));
    }

    for (phase, commands) in [
        (json!("Driving"), &[4, 4, 4, 4, 4][..]),
        (json!("Driving"), &[0, 0, 0]),
        (json!("Driving"), &[4, 5]),
        (json!("Driving"), &[5, 6]),
        (json!("Driving"), &[5, 5]),
        (json!("Driving"), &[3]),
        (json!("Driving"), &[1]),
        (json!({ "First": { "started": true } }), &[3]),
        (json!({ "Finishing": { "until_ns": 60_000_001_001u64 } }), &[]),
        (json!({ "Finishing": { "until_ns": 5 } }), &[3, 0]),
        (json!({ "Finishing": { "until_ns": 5 } }), &[2]),
        (json!({ "Killing": { "until_ns": 10_000_001_001u64, "told": true } }), &[]),
        (json!({ "Killing": { "until_ns": 5, "told": true } }), &[1]),
        (json!({ "Eventually": { "until_ns": 5, "started": false } }), &[1]),
        (json!({ "Eventually": { "until_ns": 5, "started": true } }), &[1, 1]),
        (json!({ "Eventually": { "until_ns": 5, "started": true } }), &[4]),
        (json!({ "Eventually": { "until_ns": 600_000_001_001u64, "started": true } }), &[]),
        (json!({ "Finally": { "until_ns": 5, "started": 0 } }), &[2]),
        (json!({ "Finally": { "until_ns": 5, "started": 2 } }), &[]),
        (json!({ "Finally": { "until_ns": 5, "started": 1 } }), &[2, 2]),
        (json!({ "Over": { "told": true } }), &[1, 4]),
    ] {
        assert!(!none(phase.clone(), commands), "{phase} {commands:?}");
    }
    let first = |changes: &[(&str, Value)]| {
        let mut all = vec![
            ("/phase", json!({ "First": { "started": true } })),
            ("/drivers", Value::Null),
            ("/anytime", Value::Null),
            ("/runs", runs(&[3])),
            ("/next_run", json!(1)),
            ("/spent", json!([])),
            ("/worked", json!(false)),
        ];
        all.extend_from_slice(changes);
        is_sound(&all)
    };
    assert!(first(&[]));
    assert!(!first(&[("/runs", json!([]))]));
    assert!(!first(&[("/worked", json!(true))]));
    let not_yet = ("/phase", json!({ "First": { "started": false } }));
    assert!(!first(std::slice::from_ref(&not_yet)));
    assert!(!first(&[not_yet.clone(), ("/runs", json!([]))]));
    assert!(first(&[not_yet.clone(), ("/runs", json!([])), ("/next_run", json!(0))]));
    assert!(!first(&[not_yet, ("/runs", json!([])), ("/next_run", json!(0)), ("/killed", json!(true))]));
}

#[test]
fn unreachable_states_are_refused() {
    for (place, value) in [
        ("/phase", json!({ "First": { "started": false } })),
        ("/phase", json!({ "Over": { "told": true } })),
        ("/parallel", json!(0)),
        ("/parallel", json!(5)),
        ("/ending", json!("Nothing")),
        ("/drivers/command", json!(0)),
        ("/drivers/command", json!(6)),
        ("/drivers/command", json!(7)),
        ("/drivers/at_ns", json!(1601)),
        ("/drivers/pause_ns", json!(200_000_001)),
        ("/anytime/command", json!(4)),
        ("/runs/0/run", json!(5)),
        ("/runs/0/run", json!(6)),
        ("/runs/1/run", json!(6)),
        ("/runs/0/command", json!(7)),
        ("/runs/0/command", json!(usize::MAX)),
        ("/runs/1/node", json!(1)),
        ("/next_run", json!(0)),
        ("/next_run", json!(RUN_MAX + 1)),
        ("/spent", json!([5])),
        ("/spent", json!([70])),
        ("/down", json!([2])),
        ("/worked", json!(false)),
    ] {
        assert!(!is_sound(&[(place, value.clone())]), "{place} {value}");
    }
    assert!(!is_sound(&[("/runs/0/command", json!(6)), ("/runs/0/node", json!(0)), ("/spent", json!([]))]));
    let other = template(&[(0, "parallel_driver_x")]);
    let state: ComposerState = serde_json::from_value(stored()).unwrap();
    let message = Composer::go_on(&other, state).unwrap_err().to_string();
    assert_eq!(message, "the stored composer state does not fit this test template");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A damaged state is either refused, or the timeline follows the rules and ends.
    #[test]
    fn damaged_states_are_refused_or_continue(
        template in templates(), world in worlds(), which: prop::sample::Index,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0u8..9), 1..4),
    ) {
        let mut caller = Caller::new(&template, &world);
        caller.run(|_| false);
        let mut bytes = postcard::to_stdvec(which.get(&caller.states)).unwrap();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let Ok(state) = postcard::from_bytes::<ComposerState>(&bytes) else { return Ok(()) };
        let Ok(mut composer) = Composer::go_on(&template, state) else { return Ok(()) };
        let mut rng = rng(world.seed);
        let mut now_ns = 0;
        for turn in 0..2_000 {
            let dice = rng.next_u64();
            if turn == 1_000 {
                composer.stop(now_ns);
            }
            let runs = composer.state().runs().to_vec();
            prop_assert!(runs.len() <= usize::from(PARALLEL_MAX + ANYTIME_MAX));
            if let Some(run) = runs.get(dice as usize % 8) {
                composer.ended(run.run, now_ns, dice & 256 == 0, dice & 512 == 0);
            }
            composer.up(dice as u16 % 4);
            prop_assert!(composer.state().is_sound(&template));
            if let Some(due_ns) = composer.due() {
                prop_assert!(due_ns >= now_ns);
                now_ns = due_ns;
                composer.act(now_ns, &mut rng);
            }
        }
        prop_assert!(composer.is_over());
    }
}

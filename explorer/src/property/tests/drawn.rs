//! Tests of the judge, which finds violations of properties, on random timelines. Each timeline is judged in one piece
//! and in two pieces. The hits (violations that the judge reports) are compared with the hits of a simple judge that
//! looks back at all earlier events. Hits have the same signature if they differ only in numbers, times, ids and nodes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Step of a timeline.
#[derive(Debug, Clone)]
enum Step {
    Line(u16, &'static str, String),
    Console(u16, String),
    Found(String),
    Still(u16, u64),
    Restarted(u16),
    Calm,
    End,
}

fn world() -> Properties {
    properties(
        json!([
            { "name": "never", "never": "bad|^lost" },
            { "name": "of red", "never": "bad", "unit": "r*d", "nodes": ["alpha"] },
            { "name": "oops", "never": "oops", "console": true },
            { "name": "agree", "eventually": "agree" },
            { "name": "up", "eventually": "up|bad", "console": true },
            { "name": "vote", "sometimes": "vote" },
            { "name": "boot", "sometimes": "up", "console": true },
        ]),
        &["soft lockup"],
    )
}

fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "bad ",
        "lost ",
        "agree ",
        "vote ",
        "up ",
        "alpha ",
        "n1 ",
        "beta ",
        "7 ",
        "oops ",
        "x ",
        "\u{1b}[1m",
        "\"",
        "<node>",
        "{\"msg\":\"",
        "[    1.5] ",
    ]);
    let trouble = prop::sample::select(vec![
        "INFO: task a:1 blocked for more than 120 seconds.",
        "[ 2.0] Kernel panic - not syncing: bad",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
    ]);
    prop_oneof![
        4 => prop::collection::vec(word, 0..4).prop_map(|words| words.concat()),
        2 => trouble.prop_map(str::to_owned),
        1 => "\\PC{0,30}",
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

/// Generates steps on three nodes and on one unknown node.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let unit = prop::sample::select(vec!["red", "rd", "blue"]);
    let step = prop_oneof![
        6 => (0u16..4, unit, text()).prop_map(|(node, unit, text)| Step::Line(node, unit, text)),
        6 => (0u16..4, text()).prop_map(|(node, text)| Step::Console(node, text)),
        1 => text().prop_map(Step::Found),
        1 => (0u16..4, 0u64..40).prop_map(|(node, until)| Step::Still(node, until)),
        1 => (0u16..4).prop_map(Step::Restarted),
        1 => Just(Step::Calm),
        1 => Just(Step::End),
    ];
    prop::collection::vec(step, 0..60)
}

/// Time between two steps. The longest period of Linux's watchdogs is ten steps long, so many timelines are longer than
/// this period.
const APART_NS: u64 = WATCHDOG_NS / 10;

fn go(judge: &mut Judge<'_>, at: u64, step: &Step) -> Vec<PropertyHit> {
    let (node, what) = match step {
        Step::Calm => {
            judge.calm(at);
            return Vec::new();
        }
        Step::End => return judge.end(at).to_vec(),
        Step::Line(node, unit, text) => (Some(*node), What::Line { unit, is_error: false, text }),
        Step::Console(node, text) => (Some(*node), What::Console(text)),
        Step::Found(text) => (None, What::Found { property: "failed check", text }),
        Step::Still(node, until) => (Some(*node), What::StandsStill { until_ns: until * APART_NS }),
        Step::Restarted(node) => (Some(*node), What::Restarted),
    };
    judge.observe(&Event { vtime_ns: at, node, what }).to_vec()
}

fn run(
    properties: &Properties,
    state: JudgeState,
    first: usize,
    steps: &[Step],
) -> (Vec<PropertyHit>, JudgeState) {
    let mut judge = Judge::start(properties, state);
    let mut taken = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        taken.extend(go(&mut judge, (first + i) as u64 * APART_NS, step));
    }
    let (hits, state) = judge.finish();
    assert_eq!(taken, hits, "each hit is returned when it is found");
    (hits, state)
}

/// Returns the properties that a step violates, computed from all earlier steps. Includes violations that are not
/// reported.
fn expected(steps: &[Step], now: usize) -> Vec<&'static str> {
    let before = &steps[..now];
    let mut hit = Vec::new();
    match &steps[now] {
        Step::Line(node, unit, text) => {
            let bad = text.contains("bad");
            hit.extend((bad || text.starts_with("lost")).then_some("never"));
            hit.extend((bad && *node == 0 && *unit != "blue").then_some("of red"));
        }
        Step::Console(node, text) => {
            let trouble = trouble(text).filter(|trouble| *trouble != Trouble::SoftLockup);
            let since =
                before.iter().rposition(|step| matches!(step, Step::Restarted(other) if other == node));
            let excused = before.iter().skip(since.map_or(0, |i| i + 1)).any(|step| {
                matches!(step, Step::Still(other, until) if other == node && *node < 3 && now as u64 <= until + 10)
            });
            let trouble = trouble.filter(|trouble| !(trouble.is_of_watchdogs() && excused));
            hit.extend(trouble.map(Trouble::name));
            hit.extend(text.contains("oops").then_some("oops"));
        }
        Step::Found(_) => hit.push("failed check"),
        Step::End => {
            let turn = before.iter().rposition(|step| matches!(step, Step::Calm | Step::End));
            if let Some(calm) = turn.filter(|i| matches!(before[*i], Step::Calm)) {
                let calm = &before[calm..];
                let agreed = |step: &Step| matches!(step, Step::Line(_, _, text) if text.contains("agree"));
                let up = |step: &Step| matches!(step, Step::Console(_, text) if text.contains("up") || text.contains("bad"));
                hit.extend((!calm.iter().any(agreed)).then_some("agree"));
                hit.extend((!calm.iter().any(up)).then_some("up"));
            }
        }
        Step::Still(..) | Step::Restarted(_) | Step::Calm => {}
    }
    hit
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// A timeline that is judged in two pieces has the same hits as in one piece. Explorations rely on this. As in an
    /// exploration, the test stores the judge's state after the first piece and reads it back.
    #[test]
    fn a_cut_timeline_has_the_same_hits(steps in steps(), cut in 0usize..60) {
        let world = world();
        let (whole, end) = run(&world, JudgeState::default(), 0, &steps);
        let (head, tail) = steps.split_at(cut.min(steps.len()));
        let (first, middle) = run(&world, JudgeState::default(), 0, head);
        let json: JudgeState = serde_json::from_str(&serde_json::to_string(&middle).unwrap()).unwrap();
        let stored: JudgeState = postcard::from_bytes(&postcard::to_allocvec(&middle).unwrap()).unwrap();
        prop_assert!(json == middle && stored == middle);
        let (second, last) = run(&world, stored, head.len(), tail);
        prop_assert_eq!([first, second].concat(), whole);
        prop_assert_eq!(last, end);
    }

    /// The judge reports exactly the expected hits, and each signature once.
    #[test]
    fn each_signature_is_reported_once(steps in steps()) {
        let world = world();
        let mut judge = Judge::start(&world, JudgeState::default());
        let mut reported = BTreeSet::new();
        for (now, step) in steps.iter().enumerate() {
            let hits = go(&mut judge, now as u64 * APART_NS, step);
            let mut rest = expected(&steps, now);
            for hit in &hits {
                let place = rest.iter().position(|name| *name == hit.property);
                prop_assert!(place.is_some(), "unexpected {:?} at {:?}", hit, step);
                rest.remove(place.unwrap());
                let is_new = reported.insert((hit.property.clone(), hit.signature.clone()));
                prop_assert!(is_new, "reported twice: {:?}", hit);
                prop_assert!(hit.text.len() <= limits::TEXT_BYTES_MAX && hit.vtime_ns == now as u64 * APART_NS);
            }
            // Hits that are not reported now were reported earlier.
            for name in rest {
                let before = reported.iter().any(|(property, _)| property == name);
                prop_assert!(before, "a hit of {} is missing at {:?}", name, step);
            }
        }
        let seen = |is: fn(&Step) -> bool| steps.iter().any(is);
        let vote = seen(|step| matches!(step, Step::Line(_, _, text) if text.contains("vote")));
        let boot = seen(|step| matches!(step, Step::Console(_, text) if text.contains("up")));
        let expected: Vec<&str> = [(boot, "boot"), (vote, "vote")].iter().filter(|s| s.0).map(|s| s.1).collect();
        prop_assert_eq!(judge.state().seen().collect::<Vec<_>>(), expected);
    }

    /// Lines of different nodes have the same signature if they differ only in the nodes that they name and in numbers.
    #[test]
    fn nodes_do_not_matter(before in text(), after in text(), number in 0u32..1000) {
        let properties = properties(json!([{ "name": "p", "never": "" }]), &[]);
        let of = |node: u16, name: &str, number: u32| {
            only(&properties, &line(node, "u", &format!("{before} {name} {number} {after}"))).signature
        };
        let first = of(0, "alpha", number);
        prop_assert_eq!(&first, &of(1, "beta", number + 1));
        prop_assert_eq!(&first, &of(2, "n1", 7));
    }
}

//! Tests of the happens-before relation between events: vector clocks are compared with the definition. Also tests the
//! orders of events that branches report.

use std::collections::BTreeMap;

use super::super::order::{Before, Orders, Timelines, types_in};
use super::*;

/// Event on one node or between two nodes.
#[derive(Debug, Clone)]
enum Step {
    Local(u16, Option<u32>),
    Send(u16, u64, Option<u32>),
    Receive(u16, u64, Option<u32>),
    Lose(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (node, kind, message) = (0u16..4, prop::option::weighted(0.8, 0u32..6), 0u64..20);
    let step = prop_oneof![
        (node.clone(), kind.clone()).prop_map(|(node, kind)| Step::Local(node, kind)),
        (node.clone(), message.clone(), kind.clone()).prop_map(|(node, m, kind)| Step::Send(node, m, kind)),
        (node, message.clone(), kind).prop_map(|(node, m, kind)| Step::Receive(node, m, kind)),
        message.prop_map(Step::Lose),
    ];
    prop::collection::vec(step, 0..200)
}

/// Happens-before by its definition: edges between events, and their transitive closure.
#[derive(Default)]
struct Closure {
    /// For each event, its node, its type, and the indices of all events before it.
    events: Vec<(u16, Option<u32>, BTreeSet<usize>)>,
}

impl Closure {
    fn last_on(&self, node: u16) -> Option<usize> {
        self.events.iter().rposition(|(other, ..)| *other == node)
    }

    /// Adds an event that directly follows the events in `direct`.
    fn add(&mut self, node: u16, kind: Option<u32>, direct: &[Option<usize>]) {
        let direct = direct.iter().flatten();
        let before = direct.flat_map(|i| self.events[*i].2.iter().copied().chain([*i])).collect();
        self.events.push((node, kind, before));
    }

    /// Returns the types of events before event `now`, each with true if the event is on another node. Of each node,
    /// only the last [`limits::WINDOW`] events that have a type are considered.
    fn before(&self, node: u16, now: usize, before: &BTreeSet<usize>) -> BTreeSet<(u32, bool)> {
        let mut found = BTreeSet::new();
        for other in 0..4 {
            let typed = (0..now).rev().filter(|i| self.events[*i].0 == other && self.events[*i].1.is_some());
            for i in typed.take(limits::WINDOW).filter(|i| before.contains(i)) {
                found.insert((self.events[i].1.unwrap(), other != node));
            }
        }
        found
    }
}

fn set(before: Before) -> BTreeSet<(u32, bool)> {
    let of = |types, across| types_in(types).map(move |kind| (kind, across));
    of(before.own, false).chain(of(before.other, true)).collect()
}

#[test]
fn an_order_is_new_once() {
    let some = Before { own: 1 | 1 << 63, other: 1 << 5 };
    let more = Before { own: 1 | 1 << 7, other: u64::MAX };
    let mut orders = Orders::none();
    for then in 0..limits::TYPES_MAX as u32 {
        assert_eq!(orders.insert(some, then), some, "{then}");
        assert_eq!(orders.insert(more, then), Before { own: 1 << 7, other: !(1 << 5) }, "{then}");
        assert_eq!(orders.insert(some, then), Before::default(), "{then}");
    }
}

/// If the stored state from which a branch starts is damaged, type numbers can be beyond the table.
#[test]
fn types_beyond_the_bound_have_no_order() {
    let first = Before { own: 1, other: 1 };
    assert_eq!(Orders::none().insert(first, limits::TYPES_MAX as u32), Before::default());
    for kind in [limits::TYPES_MAX as u32, u32::MAX] {
        let mut timelines = Timelines::new(1);
        timelines.local(0, Some(kind));
        assert_eq!(timelines.local(0, Some(0)), Before::default(), "{kind}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn clocks_are_the_transitive_closure(steps in steps()) {
        let mut timelines = Timelines::new(4);
        let mut closure = Closure::default();
        let mut sends: BTreeMap<u64, (u16, usize)> = BTreeMap::new();
        for step in steps {
            let (node, kind, found, direct) = match step {
                Step::Local(node, kind) => (node, kind, timelines.local(node, kind), vec![]),
                Step::Send(node, message, kind) => {
                    sends.insert(message, (node, closure.events.len()));
                    (node, kind, timelines.send(node, Some(message), kind), vec![])
                }
                Step::Receive(node, message, kind) => {
                    let sent = sends.get(&message);
                    let from = sent.map_or(0, |(from, _)| *from);
                    (node, kind, timelines.receive(from, node, Some(message), kind), vec![sent.map(|(_, at)| *at)])
                }
                Step::Lose(message) => {
                    let expected = sends.get(&message).map_or_else(BTreeSet::new, |(from, at)| {
                        let mut before = closure.events[*at].2.clone();
                        before.insert(*at);
                        closure.before(*from, closure.events.len(), &before)
                    });
                    let from = sends.get(&message).map_or(0, |(from, _)| *from);
                    prop_assert_eq!(set(timelines.lose(from, Some(message))), expected);
                    continue;
                }
            };
            let mut direct = direct;
            direct.push(closure.last_on(node));
            closure.add(node, kind, &direct);
            let now = closure.events.len() - 1;
            if kind.is_some() {
                let expected = closure.before(node, now, &closure.events[now].2);
                prop_assert_eq!(set(found), expected);
            }
        }
    }
}

fn plain() -> Abstraction {
    Abstraction::new(&raft(), world(3, &[])).unwrap()
}

/// Returns two bools. The first is true if an event `first` on another node happened before an event `then`. The second
/// is true if an event `first` on the same node happened before an event `then`.
fn orders(events: &[Observed], first: &str, then: &str) -> (bool, bool) {
    let (delta, _) = run(&plain(), events);
    let seen = |place: &str| {
        shown(&delta, Kind::Order).contains(&format!("{first:?} on {place} node before {then:?}"))
    };
    (seen("another"), seen("the same"))
}

fn send_then_more(kind: WireKind, message: Option<u64>) -> Vec<Observed> {
    vec![
        line(1, 0, "a", "before"),
        wire(2, WireKind::Send, 0, 1, message, "M"),
        line(3, 0, "a", "after"),
        line(4, 1, "b", "unaware"),
        wire(5, kind, 0, 1, message, "M"),
        line(6, 1, "b", "aware"),
        line(7, 2, "c", "aside"),
    ]
}

#[test]
fn messages_order_events_and_time_does_not() {
    for kind in [WireKind::Deliver, WireKind::Duplicate] {
        let events = send_then_more(kind, Some(1));
        assert_eq!(orders(&events, "a: before", "b: aware"), (true, false));
        assert_eq!(orders(&events, "a: before", "a: after"), (false, true));
        assert_eq!(orders(&events, "send M", "b: aware"), (true, false));
        for (first, then) in [
            ("a: after", "b: aware"),
            ("a: before", "b: unaware"),
            ("b: aware", "a: before"),
            ("a: before", "c: aside"),
            ("b: aware", "c: aside"),
        ] {
            assert_eq!(orders(&events, first, then), (false, false), "{first} {then}");
        }
    }
}

/// A message without a number is treated as sent at its arrival. A message with an unknown number gives no order.
#[test]
fn messages_without_a_known_send() {
    let events = send_then_more(WireKind::Deliver, None);
    assert_eq!(orders(&events, "a: after", "b: aware"), (true, false));
    let mut events = send_then_more(WireKind::Deliver, Some(1));
    events.remove(1);
    assert_eq!(orders(&events, "a: before", "b: aware"), (false, false));
}

#[test]
fn a_loss_is_after_its_send_and_before_nothing() {
    let events = send_then_more(WireKind::Drop, Some(1));
    assert_eq!(orders(&events, "a: before", "drop M"), (false, true));
    assert_eq!(orders(&events, "a: after", "drop M"), (false, false));
    assert_eq!(orders(&events, "b: unaware", "drop M"), (false, false));
    assert_eq!(orders(&events, "drop M", "b: aware"), (false, false));
    assert_eq!(orders(&events, "a: before", "b: aware"), (false, false));
    let events = send_then_more(WireKind::Timeout, Some(1));
    assert_eq!(orders(&events, "a: after", "timeout M"), (false, true));
}

#[test]
fn orders_are_bounded() {
    let mut events = vec![line(1, 0, "a", "first")];
    let more = |i: usize| line(2, 0, "b", ["x", "y"][i % 2]);
    events.extend((0..limits::WINDOW - 1).map(more));
    let near: Vec<Observed> = events.iter().cloned().chain([line(3, 0, "c", "last")]).collect();
    assert_eq!(orders(&near, "a: first", "c: last"), (false, true));
    let far: Vec<Observed> = events.iter().cloned().chain([more(0), line(3, 0, "c", "last")]).collect();
    assert_eq!(orders(&far, "a: first", "c: last"), (false, false));

    // Types beyond the bound have no order, even with types within the bound.
    let many: Vec<Observed> = (0..limits::TYPES_MAX as u8 + 8)
        .map(|i| line(1, 0, &format!("u{}", char::from(b'0' + i)), "x"))
        .collect();
    let (delta, _) = run(&plain(), &many);
    let types: BTreeSet<String> = delta
        .points()
        .filter_map(|(_, reached)| match &reached.point {
            Point::Order { first, then, .. } => Some([first.clone(), then.clone()]),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(types.len(), limits::TYPES_MAX);

    // The oldest sends are forgotten.
    let mut sends = Timelines::new(2);
    sends.local(0, Some(1));
    (0..=limits::SENDS_MAX as u64).for_each(|message| {
        sends.send(0, Some(message), None);
    });
    assert_eq!(sends.receive(0, 1, Some(0), Some(2)), Before::default());
    assert_eq!(sends.receive(0, 1, Some(1), Some(2)), Before { own: 1 << 2, other: 1 << 1 });
}

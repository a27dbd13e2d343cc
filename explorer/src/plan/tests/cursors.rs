//! Tests of the events of a fault plan, and of cursors, i.e. positions in these events. An event is the start or end of
//! a fault, or a heal, which ends the active faults.

use super::*;

fn show(events: &Events) -> Vec<String> {
    let show = |event: &Event| {
        let what = match &event.what {
            Happening::Start(fault) => fault.kind().name(),
            Happening::End => "end",
            Happening::HealAll => "heal",
        };
        format!("{} {} {what}", event.at_ns, event.id)
    };
    events.all().iter().map(show).collect()
}

#[test]
fn ends_come_before_heals_and_heals_before_starts() {
    let plan = parse(
        r#"
        {"at":10,"for":10,"fault":"pause","node":"n1"}
        {"at":20,"for":10,"fault":"pause","node":"n1"}
        {"at":20,"fault":"reseed","node":"n2"}
        {"at":25,"fault":"loss","links":"all","ppm":1}
        {"at":30,"fault":"heal"}
        {"at":30,"fault":"clog","node":"n1"}
        {"at":40,"fault":"power_loss","node":"n2","restart":"never"}
        {"at":50,"for":5,"fault":"quiet"}
        {"at":60,"fault":"clog","node":"n1"}
        "#,
    )
    .unwrap();
    assert_eq!(
        show(&plan.events()),
        [
            "10 0 pause",
            "20 0 end",
            "20 1 pause",
            "20 2 reseed",
            "25 3 loss",
            "30 1 end",
            "30 3 end",
            "30 4 heal",
            "30 5 clog",
            "40 6 power_loss",
            "50 5 end",
            "50 7 heal",
            "60 8 clog"
        ]
    );
}

#[test]
fn a_cursor_returns_each_due_event_once() {
    let plan =
        parse("{\"at\":5,\"for\":5,\"fault\":\"clog\",\"node\":\"n1\"}\n{\"at\":5,\"fault\":\"heal\"}")
            .unwrap();
    let events = plan.events();
    let mut cursor = Cursor::default();
    assert_eq!(events.due(&mut cursor, 4), None);
    assert_eq!(events.next(&cursor).map(|event| event.at_ns), Some(5));
    assert_eq!(events.due(&mut cursor, 5).map(|event| event.id), Some(1));
    let bytes = postcard::to_stdvec(&cursor).unwrap();
    let mut other: Cursor = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(other, cursor);
    for cursor in [&mut cursor, &mut other] {
        assert!(matches!(events.due(cursor, 9).unwrap().what, Happening::Start(_)));
        assert_eq!(events.due(cursor, 9), None);
        assert_eq!(events.due(cursor, 10).unwrap().what, Happening::End);
        assert_eq!((events.due(cursor, u64::MAX), events.next(cursor)), (None, None));
    }
    // A stored cursor may have any value.
    let mut far: Cursor = postcard::from_bytes(&postcard::to_stdvec(&u64::MAX).unwrap()).unwrap();
    assert_eq!((events.next(&far), events.due(&mut far, u64::MAX)), (None, None));
}

proptest! {
    /// The code that applies a plan relies on three facts. Events are in order. An end follows its start. After a heal,
    /// only permanent power losses are active.
    #[test]
    fn events_match_the_plan(plan in plan(), steps in prop::collection::vec(0u64..10, 0..12)) {
        let events = plan.events();
        prop_assert!(events.all().is_sorted_by_key(|event| event.at_ns));
        let mut on: std::collections::BTreeMap<u32, &PlanEntry> = Default::default();
        let mut seen = vec![0; plan.entries().len()];
        for event in events.all() {
            let entry = &plan.entries()[event.id as usize];
            match &event.what {
                Happening::Start(fault) => {
                    prop_assert_eq!(&What::Fault(fault.clone()), &entry.what);
                    prop_assert_eq!(event.at_ns, entry.at_ns);
                    seen[event.id as usize] += 1;
                    if fault.kind().lasts() {
                        on.insert(event.id, entry);
                    }
                }
                Happening::End => {
                    let started = on.remove(&event.id);
                    prop_assert_eq!(started, Some(entry));
                    if let Some(ns) = entry.for_ns {
                        prop_assert_eq!(event.at_ns, entry.at_ns + ns);
                    }
                }
                Happening::HealAll => {
                    prop_assert!(!matches!(entry.what, What::Fault(_)));
                    seen[event.id as usize] += 1;
                    // The test does not call `is_for_good`. The plan's code uses that function, so the test would not
                    // notice a defect in it.
                    let never = |entry: &&PlanEntry| match &entry.what {
                        What::Fault(Fault::Node { fault: NodeFault::PowerLoss { restart, .. }, .. }) => restart.is_none(),
                        _ => false,
                    };
                    prop_assert!(on.values().all(never), "{:?}", on);
                }
            }
        }
        prop_assert!(seen.iter().all(|&times| times == 1));
        prop_assert!(on.values().all(|entry| entry.for_ns.is_none()));
        // For any sequence of calls, `due` returns each event once, in the first call at or after the event's time.
        let (mut cursor, mut now, mut walked) = (Cursor::default(), 0u64, Vec::new());
        for step in steps.into_iter().chain([u64::MAX]) {
            let before = now;
            now = now.saturating_add(step);
            while let Some(event) = events.due(&mut cursor, now) {
                prop_assert!(event.at_ns <= now && (event.at_ns > before || before == 0));
                walked.push(event.clone());
            }
        }
        prop_assert_eq!(&walked[..], events.all());
    }
}

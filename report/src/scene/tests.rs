//! Tests of scenes, i.e. of the events, messages and faults before a finding. The tests read lines in the format in
//! which run directories store the evidence of a finding.

use everett_explorer::run::{Evidence, Hit};
use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

fn hit(lines: &[&str], packets: &[&str], faults: &[&str], text: &str) -> Hit {
    let own = |list: &[&str]| list.iter().map(|line| (*line).to_owned()).collect();
    Hit {
        property: "linearizability".to_owned(),
        signature: "s".to_owned(),
        text: text.to_owned(),
        vtime_ns: 2_626 * MS,
        node: None,
        evidence: Evidence { lines: own(lines), packets: own(packets), faults: own(faults) },
    }
}

fn nodes() -> Vec<String> {
    ["db", "a", "b"].map(str::to_owned).to_vec()
}

const POWER: &str = r#"   0.972148919 #0 {"at":"309.089792ms","for":"89.470708ms","fault":"power_loss","node":"db","restart":"warm"}"#;
const CUT: &str = r##"   1.500000000 #1 {"at":"837ms","for":"1s","fault":"partition","links":{"from":["db"],"to":["a","b"],"both_ways":true},"mode":"drop"}"##;

fn example() -> Scene {
    let lines = [
        "   1.713213010 db/redis     | Reading RDB base file",
        "   1.729761856 b/history    {\"process\":8,\"type\":\"invoke\",\"f\":\"acquire\",\"value\":null}",
        "   1.731112325 b/history    {\"process\":8,\"type\":\"ok\",\"f\":\"acquire\",\"value\":null}",
        "   1.800000000 a/history    {\"process\":1,\"type\":\"invoke\",\"f\":\"release\",\"value\":[1,2]}",
        "   1.900000000 a/worker-a   ! oh no",
        "   2.000000000 world        the timeline's end: drivers stop, checks run",
    ];
    let packets = [
        "   1.846830537 DELIVER b > db TCP 10.0.0.3.55432 > 10.0.0.1.6379 [PSH,ACK] seq 1 ack 2 len 59",
        "   1.846992469 DROP db > b TCP 10.0.0.1.6379 > 10.0.0.3.55432 [RST] seq 3 ack 0 len 0",
    ];
    let text = "acquire by process 8 of b (1.729761856s to 1.731112325s, lines 19 and 20) cannot be";
    Scene::of_hit(&nodes(), &hit(&lines, &packets, &[POWER, CUT], text))
}

#[test]
fn evidence_is_read_back() {
    let scene = example();
    let events: Vec<(u64, Option<u16>, &str, &str)> =
        scene.events.iter().map(|e| (e.at_ns, e.lane, e.unit.as_str(), e.text.as_str())).collect();
    assert_eq!(
        events,
        [
            (1_713_213_010, Some(0), "redis", "Reading RDB base file"),
            (1_900 * MS, Some(1), "worker-a", "oh no"),
            (2_000 * MS, None, "world", "the timeline's end: drivers stop, checks run"),
        ]
    );
    let [first, second] = scene.messages.as_slice() else { panic!("{:?}", scene.messages) };
    assert_eq!((first.at_ns, first.from, first.to, first.fate), (1_846_830_537, 2, 0, Fate::Deliver));
    assert_eq!((second.fate, second.text.starts_with("TCP 10.0.0.1.6379")), (Fate::Drop, true));
    let [acquire, release] = scene.operations.as_slice() else { panic!("{:?}", scene.operations) };
    assert_eq!((acquire.begin_ns, acquire.end_ns), (1_729_761_856, Some(1_731_112_325)));
    assert_eq!((acquire.outcome, acquire.marked, acquire.lane), (Outcome::Ok, true, Some(2)));
    assert_eq!((release.end_ns, release.outcome, release.marked), (None, Outcome::Unknown, false));
    assert_eq!(release.value, "[1,2]");
    assert_eq!(scene.span_ns(), (972_148_919, 2_626 * MS));
}

#[test]
fn faults_are_told_in_words() {
    let scene = example();
    let told: Vec<String> = scene.faults.iter().map(Bar::told).collect();
    assert_eq!(
        told,
        ["db lost power at 972 ms for 89.5 ms", "db was cut off from a and b at 1.50 s for 1.00 s"]
    );
    assert_eq!(scene.faults[1].lanes, [0, 1, 2]);
    let told = story(
        "linearizability",
        "linearizability",
        "acquire by process 8 of b (1.7s to 1.8s, lines 1 and 2) cannot be: a held it",
        &scene.faults,
    );
    assert_eq!(
        told,
        "After db lost power at 972 ms for 89.5 ms, and db was cut off from a and b at 1.50 s for 1.00 s, clients saw \
         what no correct server shows: acquire by process 8 of b, although a held it."
    );
    let again = [scene.faults[0].clone(), scene.faults[0].clone()];
    assert_eq!(
        story("kernel oops", "kernel oops", "BUG (bad)", &again),
        "After db lost power at 972 ms for 89.5 ms, and again at 972 ms for 89.5 ms, kernel oops: BUG (bad)."
    );
    let many = vec![scene.faults[1].clone(); 9];
    assert!(story("p", "p", "t", &many).starts_with("After 6 other faults, db was cut off"));
}

#[test]
fn a_sentence_ends_with_one_mark() {
    for (text, end) in
        [("Traceback (most recent call last):", "last)."), ("gone.", "gone."), ("why?", "why?")]
    {
        let told = story("p", "the tick thread died", text, &[]);
        assert!(
            told.starts_with("Without any fault, the tick thread died: ") && told.ends_with(end),
            "{told}"
        );
        assert!(!told.ends_with(":.") && !told.ends_with("?.") && !told.ends_with(".."), "{told}");
    }
}

#[test]
fn the_name_of_a_property_is_told_once() {
    let text = "Always \"x holds\" does not hold at /a.py:4:0 in f: {}";
    let told = story("x holds", "\"x holds\" does not hold", text, &[]);
    assert_eq!(told, format!("Without any fault, {text}."));
}

#[test]
fn lost_writes_are_counted() {
    let gone = "acknowledged add of 6 by process 1 of c (8.1s to 8.2s, lines 11 and 12) is gone: not in later read of [1] by \
                process \"check 1\" of c (23.7s to 23.8s, lines 95 and 96)";
    let told = |text: &str| story("lost write", "lost write", text, &[]);
    assert_eq!(told(gone), "Without any fault, an acknowledged write was gone: add of 6 by process 1 of c.");
    assert_eq!(
        told(&format!("{gone} (and 7 more)")),
        "Without any fault, 8 acknowledged writes were gone: add of 6 by process 1 of c, and 7 more."
    );
    // A text without the form of a lost write's text is repeated unchanged.
    for text in ["x", "(and 7 more", "acknowledged", "a (b) c"] {
        assert_eq!(told(text), format!("Without any fault, an acknowledged write was gone: {text}."));
    }
}

/// A report describes every kind of fault in words. It names an unknown kind as the fault plan does.
#[test]
fn each_kind_of_fault_has_words() {
    for kind in everett_fault::FaultKind::ALL {
        let entry = serde_json::json!({ "at": "1s", "fault": kind.name(), "node": "a", "ppm": 20_000 });
        let links =
            serde_json::json!({ "at": "1s", "fault": kind.name(), "links": { "from": ["a"], "to": ["b"] } });
        let told = |entry| Bar::of_entry(&nodes(), 0, entry).unwrap().words;
        let raw = kind.name();
        let (node, links) = (told(&entry), told(&links));
        assert!(
            !node.starts_with(&format!("{raw} on")) || !links.starts_with(&format!("{raw} between")),
            "{raw}"
        );
    }
    let entry = serde_json::json!({ "at": "1s", "fault": "meteor", "node": "a" });
    assert_eq!(Bar::of_entry(&nodes(), 5, &entry).unwrap().told(), "meteor on a at 1.00 s");
    for bad in
        [serde_json::json!({}), serde_json::json!({ "at": 1, "fault": "loss" }), serde_json::json!([1])]
    {
        assert_eq!(Bar::of_entry(&nodes(), u64::MAX, &bad), None);
    }
}

#[test]
fn telling_lines_come_before_repeated_ones() {
    let mut lines: Vec<String> =
        (0..40).map(|i| format!("   3.{i:09} a/worker    | waiting for {i} ms")).collect();
    lines.insert(7, "   3.000000006 db/redis     | fatal: the append only file is damaged".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let scene = Scene::of_hit(&nodes(), &hit(&lines, &[], &[POWER], "t"));
    let told = lines_told(&scene, 4);
    assert_eq!(told.len(), 4);
    assert_eq!(
        (told[0].unit.as_str(), told[0].text.as_str()),
        ("fault", "db lost power at 972 ms for 89.5 ms")
    );
    assert!(told[1].text.contains("damaged"), "{told:?}");
    assert!(told.is_sorted_by_key(|told| told.at_ns));
    assert_eq!(lines_told(&Scene::default(), 4), []);
}

#[test]
fn a_single_node_is_not_named_in_its_lines() {
    let hit = hit(&["   1.000000000 redis        | up", "   1.000000000 world        end"], &[], &[], "t");
    let scene = Scene::of_hit(&["db".to_owned()], &hit);
    assert_eq!(scene.events.iter().map(|event| event.lane).collect::<Vec<_>>(), [Some(0), None]);
}

/// A scene of a long recording (a timeline that `everett replay --record` wrote) keeps only the last lines and
/// messages, i.e. the lines and messages just before the finding.
#[test]
fn a_long_recording_has_its_last_lines_and_messages() {
    for count in [EVENTS_MAX + 1, 2 * EVENTS_MAX + 3] {
        let lines = (0..count).flat_map(|n| {
            let line = serde_json::json!({ "kind": "line", "text": format!("   1.{n:09} db/redis | up") });
            let packet = format!("   1.{n:09} DELIVER b > db TCP x");
            let message = serde_json::json!({ "kind": "message", "text": packet, "sent_ns": 5 });
            [format!("{line}\n"), format!("{message}\n")]
        });
        let scene =
            Scene::of_recording(&nodes(), &hit(&[], &[], &[], "t"), &lines.collect::<String>()).unwrap();
        let last = 1_000_000_000 + count as u64 - 1;
        assert_eq!((scene.events.len(), scene.messages.len()), (EVENTS_MAX, MESSAGES_MAX));
        assert_eq!(scene.events.last().map(|event| event.at_ns), Some(last));
        assert_eq!(scene.messages.last().map(|message| message.at_ns), Some(last));
        assert_eq!(scene.left_out, 2 * (count - EVENTS_MAX) as u64);
    }
}

/// A recording has the same lines as the evidence in a run directory, and also the times at which messages were sent.
#[test]
fn recordings_are_read_back() {
    let packet = "   1.846830537 DELIVER b > db TCP x";
    let lines = [
        serde_json::json!({ "kind": "line", "text": "   1.713213010 db/redis     | up" }),
        serde_json::json!({ "kind": "message", "text": packet, "sent_ns": 1_846_000_000u64 }),
        serde_json::json!({ "kind": "message", "text": packet, "sent_ns": u64::MAX }),
        serde_json::json!({ "kind": "fault", "text": POWER }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let scene = Scene::of_recording(&nodes(), &hit(&["ignored"], &[], &[], "t"), &text).unwrap();
    assert_eq!((scene.events.len(), scene.faults.len()), (1, 1));
    let sent: Vec<Option<u64>> = scene.messages.iter().map(|message| message.sent_ns).collect();
    // A sending time after the arrival is ignored.
    assert_eq!(sent, [Some(1_846_000_000), None]);
    for (bad, number) in [("{}", 1), ("{\"kind\":\"line\",\"text\":\"\"}\n[1]", 2), ("\u{0}", 1)] {
        assert_eq!(Scene::of_recording(&nodes(), &hit(&[], &[], &[], "t"), bad).unwrap_err().0, number);
    }
}

proptest! {
    /// A line with any content is either read or ignored, and never causes a panic.
    #[test]
    fn any_lines(line in "[ 0-9]{0,20}\\.[0-9]{0,10} ?[a-z/ ]{0,9}(DELIVER |#1 \\{|history \\{)?\\PC{0,40}|(?s).{0,60}") {
        let scene = Scene::of_hit(&nodes(), &hit(&[&line], &[&line], &[&line], &line));
        let (low, high) = scene.span_ns();
        prop_assert!(low <= high);
        prop_assert!(lines_told(&scene, 3).len() <= 3);
        let told = story("p", "p", &line, &scene.faults);
        prop_assert!(told.contains(", p") && told.ends_with(['.', '!', '?']), "{told}");
        prop_assert!(facts(&scene).len() <= 4);
    }
}

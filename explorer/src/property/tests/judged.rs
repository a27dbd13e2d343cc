//! Tests of events that violate a property, and of events that violate none. [`Judge`] checks the events of a
//! timeline against the properties. A *hit* is a violation that `Judge` found. The *signature* of a hit is a hash that
//! stands for the bug.

use super::*;

const PANIC: &str = "[    1.5] Kernel panic - not syncing: Fatal exception";
const HUNG: &str = "[  242.1] INFO: task jbd2/vda-8:88 blocked for more than 120 seconds.";

#[test]
fn never_properties() {
    let properties = properties(
        json!([
            { "name": "loss", "never": "lost (key|write)", "unit": "red*", "nodes": ["alpha", "n1"] },
            { "name": "any", "never": "^assert" },
            { "name": "boot", "never": "^assert|tainted", "console": true, "nodes": ["beta"] },
        ]),
        &[],
    );
    for (event, expected) in [
        (line(0, "redis", "we lost key 7"), vec!["loss"]),
        (line(2, "redis", "assert: we lost write 7"), vec!["loss", "any"]),
        (line(1, "redis", "we lost key 7"), vec![]),
        (line(0, "etcd", "we lost key 7"), vec![]),
        (line(0, "redis", "we lost keys"), vec!["loss"]),
        (line(0, "redis", "we lost nothing"), vec![]),
        (line(1, "etcd", "assert"), vec!["any"]),
        (console(1, "assert"), vec!["boot"]),
        (console(0, "tainted"), vec![]),
        (line(1, "kernel", "tainted"), vec![]),
        (event(7, None, What::Line { unit: "redis", is_error: true, text: "assert lost key" }), vec!["any"]),
        (line(9, "redis", "assert lost key"), vec!["any"]),
    ] {
        assert_eq!(hit(&properties, &[event]), expected, "{event:?}");
    }
    let hit = only(&properties, &line(2, "redis", "we lost key 7"));
    assert_eq!((hit.text.as_str(), hit.vtime_ns, hit.node), ("we lost key 7", 7, Some(2)));
}

#[test]
fn built_in_properties_can_be_ignored() {
    let found = |property| event(3, None, What::Found { property, text: "check reads: 3 are missing" });
    let (property, cause) = (builtin::LOST_WRITE, "a write is gone");
    let lost = event(3, None, What::History { property, cause, text: "key 3: a write is gone" });
    let events = [console(0, PANIC), console(0, HUNG), found(builtin::FAILED_CHECK), found("else"), lost];
    let all = ["kernel panic", "hung task", "failed check", "else", "lost write"];
    assert_eq!(hit(&properties(json!([]), &[]), &events), all);
    assert_eq!(
        hit(&properties(json!([]), &["kernel panic", "failed check", "lost write"]), &events),
        ["hung task", "else"]
    );
    // If a program prints the same line, the line is not a report of the kernel.
    assert_eq!(hit(&properties(json!([]), &[]), &[line(0, "dmesg", PANIC)]), [""; 0]);
}

#[test]
fn faults_excuse_watchdogs() {
    let properties = properties(json!([]), &[]);
    let still = |node, until_ns| event(5, node, What::StandsStill { until_ns });
    let at = |vtime_ns, node, text| event(vtime_ns, node, What::Console(text));
    let late = 50 + WATCHDOG_NS;
    assert_eq!(hit(&properties, &[still(Some(0), 50), at(late, Some(0), HUNG)]), [""; 0]);
    assert_eq!(hit(&properties, &[still(Some(0), 50), at(late, Some(0), PANIC)]), ["kernel panic"]);
    for (events, why) in [
        ([still(Some(0), 50), at(late + 1, Some(0), HUNG)], "too late"),
        ([still(Some(0), 50), at(9, Some(1), HUNG)], "another node"),
        ([still(None, 50), at(9, None, HUNG)], "no node"),
        ([still(Some(3), 50), at(9, Some(3), HUNG)], "no node of the world"),
    ] {
        assert_eq!(hit(&properties, &events), ["hung task"], "{why}");
    }
    let restarted = event(6, 0, What::Restarted);
    assert_eq!(hit(&properties, &[still(Some(0), 50), restarted, at(9, Some(0), HUNG)]), ["hung task"]);
}

#[test]
fn disk_faults_excuse_damaged_file_systems() {
    let properties = properties(json!([]), &[]);
    let property = builtin::FILE_SYSTEM_DAMAGED;
    let damaged = |node| event(9, node, What::Found { property, text: "the ext4 at /data: bad" });
    let errors = |begins| event(5, 0, What::DiskErrors { begins });
    let (rot, restarted) = (event(5, 0, What::BitRot), event(6, 0, What::Restarted));
    for events in [vec![rot, restarted, damaged(0)], vec![errors(true), restarted, damaged(0)]] {
        assert_eq!(hit(&properties, &events), [""; 0], "{events:?}");
    }
    for (events, why) in [
        (vec![restarted, damaged(0)], "no fault"),
        (vec![rot, restarted, damaged(1)], "another node"),
        (vec![errors(true), errors(false), restarted, damaged(0)], "the errors are over"),
        (vec![event(5, 3, What::BitRot), damaged(3)], "no node of the world"),
        (vec![event(5, None, What::BitRot), event(9, None, damaged(0).what)], "no node"),
    ] {
        assert_eq!(hit(&properties, &events), [property], "{why}");
    }
    let text = "a write is gone";
    let other = event(9, 0, What::Found { property: builtin::FAILED_CHECK, text });
    assert_eq!(hit(&properties, &[rot, other]), [builtin::FAILED_CHECK]);
}

#[test]
fn eventually_properties() {
    let declared = json!([
        { "name": "agree", "eventually": "all agree" }, { "name": "up", "eventually": "up", "console": true },
    ]);
    let properties = properties(declared, &[]);
    let (agree, up) = (line(0, "raft", "all agree"), console(1, "eth0: link up"));
    let names = |hits: &[PropertyHit]| hits.iter().map(|hit| hit.property.clone()).collect::<Vec<_>>();
    let mut judge = Judge::start(&properties, JudgeState::default());
    judge.observe(&agree);
    assert_eq!(judge.end(50), [], "faults have not ended");
    judge.calm(100_500_000);
    judge.observe(&up);
    let hits = judge.end(200).to_vec();
    assert_eq!(names(&hits), ["agree"], "lines before the calm do not count");
    assert_eq!(hits[0].text, "no line matched \"all agree\" from 100.5ms on, when faults had ended");
    assert_eq!((hits[0].vtime_ns, hits[0].node), (200, None));
    assert_eq!(judge.end(201), [], "the end was judged already");
    judge.calm(3_000_000_000);
    judge.observe(&up);
    // A second call to `calm` means that faults began again in between, and have now ended.
    judge.calm(4_000_000_000);
    judge.observe(&agree);
    assert_eq!(names(judge.end(300)), ["up"], "the line has to come again");
    judge.calm(400);
    assert_eq!(judge.end(401), [], "both hits were reported before on this path");
    let numbers: Vec<u64> = judge.hits().map(|(events, _)| events).collect();
    assert_eq!(numbers, [2, 4]);
}

#[test]
fn sometimes_properties() {
    let properties = properties(
        json!([{ "name": "vote", "sometimes": "elected" }, { "name": "b", "sometimes": "x" }]),
        &[],
    );
    assert_eq!(properties.sometimes().collect::<Vec<_>>(), ["vote", "b"]);
    let mut judge = Judge::start(&properties, JudgeState::default());
    assert_eq!(judge.observe(&line(0, "raft", "was elected")), []);
    assert_eq!(judge.state().seen().collect::<Vec<_>>(), ["vote"]);
    judge.calm(9);
    assert_eq!(judge.end(10), []);
    let (_, state) = judge.finish();
    let child = Judge::start(&properties, state);
    assert_eq!(child.state().seen().collect::<Vec<_>>(), ["vote"]);
}

/// The signature of a hit does not depend on the node and the time. Hits of different bugs have different signatures.
#[test]
fn signatures_depend_on_the_message() {
    let properties =
        properties(json!([{ "name": "p", "never": "node|peer" }, { "name": "q", "never": "quorum" }]), &[]);
    let of = |event: &Event<'_>| only(&properties, event).signature;
    let first = of(&line(0, "u", "12:M 01 Jan 2026 00:00:00.000 # node alpha lost peer beta after 5 s"));
    assert_eq!((first.len(), first.bytes().all(|b| b.is_ascii_hexdigit())), (16, true));
    assert_eq!(first, of(&line(2, "v", "13:M 02 Jan 2026 10:00:07.500 # node beta lost peer n1 after 17 s")));
    assert_ne!(first, of(&line(0, "u", "# node alpha left peer beta after 5 s")));
    assert_ne!(of(&line(0, "u", "a peer")), of(&line(0, "u", "a quorum")));
    // The texts are equal, but the properties differ.
    let found = |property| event(1, None, What::Found { property, text: "same" });
    assert_ne!(of(&found("service exit")), of(&found("failed check")));
    assert_ne!(of(&found("a")), of(&event(1, None, What::Found { property: "as", text: "ame" })));
    // If a history of client operations violates a property, the signature is computed from the cause of the violation,
    // because the text has lists and values that vary.
    let history = |cause, text| event(1, None, What::History { property: "lost write", cause, text });
    assert_eq!(
        of(&history("an add", "add of 1: read of []")),
        of(&history("an add", "add of 1: read of [2, 3]"))
    );
    assert_ne!(
        of(&history("an add", "add of 1: read of []")),
        of(&history("a remove", "add of 1: read of []"))
    );
}

#[test]
fn a_path_reports_a_signature_once() {
    let properties = properties(json!([{ "name": "p", "never": "bad" }]), &[]);
    let mut parent = Judge::start(&properties, JudgeState::default());
    assert_eq!(parent.observe(&line(0, "u", "bad 1")).len(), 1);
    assert_eq!(parent.observe(&line(2, "u", "bad 2")), []);
    let (hits, state) = parent.finish();
    assert_eq!(hits.len(), 1);
    let mut child = Judge::start(&properties, state.clone());
    assert_eq!(child.observe(&line(0, "u", "bad 3")), []);
    assert_eq!(child.observe(&line(0, "u", "bad luck")).len(), 1);
    let mut sibling = Judge::start(&properties, state);
    assert_eq!(sibling.observe(&line(0, "u", "bad luck")).len(), 1);
    assert_eq!(sibling.finish().1.beyond(), 0);
}

#[test]
fn hits_have_bounds() {
    let properties = properties(json!([{ "name": "p", "never": "." }]), &[]);
    let mut judge = Judge::start(&properties, JudgeState::default());
    let letters = |i: usize| i.to_string().bytes().map(|b| char::from(b'g' + b % 16)).collect::<String>();
    for i in 0..100 {
        judge.observe(&line(0, "u", &letters(i)));
    }
    assert_eq!(judge.hits().count(), limits::HITS_OF_PROPERTY_MAX);
    assert_eq!(judge.state().beyond(), 100 - limits::HITS_OF_PROPERTY_MAX as u64);
    // `beyond` counts hits that were dropped because of a bound. It does not count a repetition of a reported hit.
    judge.observe(&line(0, "u", &letters(0)));
    assert_eq!(judge.state().beyond(), 100 - limits::HITS_OF_PROPERTY_MAX as u64);
    for i in 0..2_000 {
        judge.observe(&event(1, None, What::Found { property: &letters(i), text: "x" }));
    }
    assert_eq!(judge.hits().count(), limits::HITS_MAX);
    // The text is too long, and the bound falls into the middle of a character.
    let long = "ä".repeat(limits::TEXT_BYTES_MAX);
    let hit = only(&properties, &line(0, "u", &format!("x{long}")));
    assert_eq!(hit.text.len(), limits::TEXT_BYTES_MAX - 1);
    let name = "ß".repeat(limits::NAME_BYTES_MAX);
    let hit = only(&properties, &event(1, None, What::Found { property: &name, text: "x" }));
    assert_eq!(hit.property.len(), limits::NAME_BYTES_MAX);
    // `Judge` ignores the part of a line beyond the bound.
    let padded = format!("{}\nneedle", "\n".repeat(limits::TEMPLATE_LINE_BYTES_MAX));
    assert_eq!(super::hit(&properties, &[line(0, "u", &padded)]), [""; 0]);
}

//! Quiet periods (times without faults that programs request), SDK lines in files, and services whose setup completes
//! late or never.

use std::path::Path;

use everett_explorer::property::builtin;
use everett_session::world::conversation::Phase;
use everett_session::world::event::{Event, What};
use everett_session::world::timeline::BootError;
use everett_streams::Seed;

use super::sdk_lines;
use crate::support::{MS, findings, launcher_of, lines, ready, run_to_end, under};

/// World with two machines. The service on the first machine completes its setup before the service on the second.
const WORLD: &str = r#"
[sdk]
[[node]]
name = "a"
memory = "96M"
[[node.service]]
name = "early"
argv = ["sh", "-c", '''
sleep 0.3
echo '{"antithesis_setup":{"status":"complete","details":null}}' >> $ANTITHESIS_OUTPUT_DIR/sdk.jsonl
sleep 1000
''']
[[node]]
name = "b"
memory = "96M"
[[node.service]]
name = "late"
argv = ["sh", "-c", '''
sleep 0.8
echo '{"antithesis_setup":{"status":"complete","details":2}}' >> $ANTITHESIS_OUTPUT_DIR/own.jsonl
echo '{"antithesis_setup"' >> $ANTITHESIS_OUTPUT_DIR/own.jsonl
printf '{"a":1}\n\n{"b"' >> $ANTITHESIS_OUTPUT_DIR/own.jsonl
sleep 0.01
echo ':2}' >> $ANTITHESIS_OUTPUT_DIR/own.jsonl
head -c 300000 /dev/zero | tr '\0' x >> $ANTITHESIS_OUTPUT_DIR/own.jsonl
printf '\n{"c":3}\n' >> $ANTITHESIS_OUTPUT_DIR/own.jsonl
sleep 0.05
echo '{"d":4}' > $ANTITHESIS_OUTPUT_DIR/own.jsonl
echo '{"not":"read"}' > $ANTITHESIS_OUTPUT_DIR/own.json
sleep 1000
''']
[[workload.driver]]
name = "asks"
node = "b"
argv = ["sh", "-c", '''
$ANTITHESIS_STOP_FAULTS 0.1 && $ANTITHESIS_STOP_FAULTS 0.2 && echo asked
$ANTITHESIS_STOP_FAULTS x || echo refused
''']
[explore]
horizon = "5s"
"#;

/// Returns the vtimes of the lines that complete a setup, in nanoseconds.
fn setups(events: &[Event]) -> Vec<u64> {
    let is = |event: &&Event| matches!(&event.what, What::Sdk { text } if text.contains("antithesis_setup"));
    events.iter().filter(is).map(|event| event.vtime_ns).collect()
}

#[test]
fn the_first_complete_setup_is_the_root_moment() {
    let (launcher, _) = ready(launcher_of(WORLD));
    let stored = launcher.from.as_ref().unwrap();
    let [setup] = setups(&stored.events)[..] else { panic!("{:?}", sdk_lines(&stored.events)) };
    let services = stored.events.iter().filter(|event| event.what == What::Ready);
    let services = services.map(|event| event.vtime_ns).max().unwrap();
    let root = stored.session.ready_ns().unwrap();
    assert!(services + 200 * MS < setup && setup < root && root < setup + MS, "{services} {setup} {root}");
}

#[test]
fn lines_of_files_arrive_whole_and_once() {
    let (launcher, _) = ready(launcher_of(WORLD));
    let (trail, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 1_500 * MS);
    let own: Vec<&str> = sdk_lines(&events).into_iter().filter(|line| line.len() < 10).collect();
    assert_eq!(own, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "{\"d\":4}"]);
    let bad = |event: &&Event| matches!(&event.what, What::Finding { property, .. } if property == builtin::BAD_SDK_LINE);
    let bad: Vec<&Event> = events.iter().filter(bad).collect();
    assert_eq!(bad.len(), 2, "{:?}", findings(&events));
    assert_eq!(findings(&events).len(), 2);
    assert!(findings(&events)[0].starts_with("not JSON: "), "{:?}", findings(&events));
    assert_eq!(trail, run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 1_500 * MS).0);
}

/// Fault plan: one fault has not ended when the quiet period begins, one starts within it, and one after it.
const PLAN: &str = r#"{"at":"0s","for":"4s","fault":"partition","links":{"from":["a"],"to":["b"]}}
{"at":"150ms","for":"1ms","fault":"pause","node":"a"}
{"at":"900ms","for":"1ms","fault":"pause","node":"a"}
"#;

#[test]
fn programs_ask_for_quiet_periods() {
    let (launcher, points) = ready(launcher_of(WORLD));
    let launcher = under(&launcher, &points, PLAN);
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 1_200 * MS);
    assert_eq!(lines(&events, "asks")[..1], ["asked"], "{:?}", lines(&events, "asks"));
    assert!(lines(&events, "asks").contains(&"refused"));
    let at =
        |is: &dyn Fn(&What) -> bool| events.iter().find(|event| is(&event.what)).map(|event| event.vtime_ns);
    let quiet =
        at(&|what| matches!(what, What::Effect { text } if text.starts_with("a program asked"))).unwrap();
    assert_eq!(at(&|what| *what == What::Healed { id: 0 }), Some(quiet));
    let effects: Vec<&str> = events
        .iter()
        .filter_map(|event| if let What::Effect { text } = &event.what { Some(text.as_str()) } else { None })
        .collect();
    assert!(effects.contains(&"not done: a program asked for a time without faults"), "{effects:?}");
    assert!(at(&|what| *what == What::Healed { id: 1 }).is_none(), "the fault within the period");
    assert!(at(&|what| *what == What::Healed { id: 2 }).is_some(), "the fault after the period");
}

#[test]
fn a_setup_that_does_not_come_is_named() {
    let world = WORLD.replace("[sdk]", "[sdk]\nsetup_timeout = \"200ms\"");
    let mut timeline = launcher_of(&world).boot().unwrap();
    let error = timeline.run_to(Phase::Ready, &mut |_, _| true).unwrap_err();
    assert!(matches!(error, BootError::Useless { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("no program has sent that the setup is complete within 200 ms"), "{text}");
    assert!(everett_world_file::parse(&world, Path::new("w")).is_ok());
}

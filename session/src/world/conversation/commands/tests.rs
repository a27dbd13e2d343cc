//! Tests of the host's exchange of messages with a scripted agent (Everett's program in a guest) whose guest has a test
//! template, i.e. a folder of test commands.

use everett_protocol::{Message, Output, Port, Reply, Request, Stream, Unit, encode_output};
use everett_streams::Seed;

use super::*;
use crate::guest::agent_script::AgentScript;
use crate::guest::sdk::{OUTPUT_FOLDER, OUTPUT_VARIABLE};
use crate::world::conversation::tests::{Script, plan};
use crate::world::event::Event;

/// Names of the files in the test template. A file with the prefix `helper_` is not a command.
const NAMES: [&str; 4] = ["anytime_a b", "eventually_z", "helper_h", "parallel_driver_p"];

fn script() -> Script {
    Script::of(AgentScript { template: Some("/t".to_owned()), ..plan() })
}

fn names() -> Reply {
    Reply::Names(NAMES.map(str::to_owned).to_vec())
}

/// Runs until the services are ready. Returns the number of the request for the list of commands.
fn listing(script: &mut Script) -> u64 {
    script.mounted();
    script.services();
    let list = script.say(&Message::Ready);
    let [Request { id, op: Operation::List { path } }] = &list[..] else { panic!("{list:?}") };
    assert_eq!((path.as_str(), script.host.phase()), ("/t", Phase::Joining));
    *id
}

/// Runs to the beginning of the timeline.
fn up() -> Script {
    let mut script = script();
    let list = listing(&mut script);
    assert_eq!(script.answer(list, names()), []);
    script.host.begin(Seed::new(9), vec![6; 64], script.vtime_ns);
    let reseed = script.requests();
    assert!(!script.host.takes_commands());
    script.answer(reseed[0].id, Reply::Done);
    assert!(script.host.takes_commands());
    let begun = Word { vtime_ns: script.vtime_ns, said: Said::Begun };
    assert_eq!(script.host.take_words(), [begun]);
    script.host.take_events();
    script
}

/// Starts a command. Returns the number of the request and the requested service.
fn start(script: &mut Script, run: u64, name: &str) -> (u64, everett_protocol::Service) {
    script.host.start_command(run, name, script.vtime_ns);
    let asked = script.requests();
    let [Request { id, op: Operation::Start { services } }] = &asked[..] else { panic!("{asked:?}") };
    (*id, services[0].clone())
}

fn exit(script: &mut Script, service: &str, code: i32) {
    let (service, exit) = (service.to_owned(), Exit::Code(code));
    let exited = everett_protocol::Exited { service, exit, restarting: false };
    assert_eq!(script.say(&Message::Exited(exited)), []);
}

fn ended(script: &mut Script) -> Vec<(u64, bool, bool)> {
    let words = script.host.take_words().into_iter();
    let ended = words.filter_map(|word| match word.said {
        Said::Ended { run, success, killed } => Some((run, success, killed)),
        Said::Begun => None,
    });
    ended.collect()
}

fn told(script: &mut Script) -> Vec<What> {
    script.host.take_events().into_iter().map(|event: Event| event.what).collect()
}

#[test]
fn a_machine_is_ready_when_its_commands_are_listed() {
    let mut script = script();
    let list = listing(&mut script);
    assert_eq!(script.say(&Message::Ready), [], "the list must be requested only once");
    assert_eq!(script.answer(list, names()), []);
    assert_eq!((script.host.phase(), script.host.names()), (Phase::Ready, &NAMES.map(str::to_owned)[..]));
    assert_eq!(script.host.ready_ns(), Some(script.vtime_ns));

    // After a restart the agent lists the commands again.
    script.host.restart(None);
    assert_eq!(script.host.names(), [] as [String; 0]);
    let list = listing(&mut script);
    script.answer(list, Reply::Names(Vec::new()));
    assert_eq!((script.host.phase(), script.host.names()), (Phase::Ready, &[][..]));
}

#[test]
fn a_failed_list_breaks_the_boot() {
    let mut script = script();
    let list = listing(&mut script);
    script.answer(list, Reply::Error { message: "cannot list /t: it is no folder".to_owned() });
    assert_eq!(script.host.broken_because(), Some("test template: cannot list /t: it is no folder"));
    script.answer(list, names());
    assert_eq!(script.host.names(), [] as [String; 0]);
}

#[test]
fn commands_run_beside_each_other_and_end() {
    let mut script = up();
    let (_, first) = start(&mut script, 4, "parallel_driver_p");
    let (_, second) = start(&mut script, 5, "parallel_driver_p");
    let (_, third) = start(&mut script, 6, "anytime_a b");
    assert_eq!(first.argv, ["/t/parallel_driver_p"]);
    assert_eq!((&*first.env[SEED_VARIABLE], &*second.env[ROUND_VARIABLE]), ("9", "5"));
    assert_eq!((&*first.env[OUTPUT_VARIABLE], first.history), (OUTPUT_FOLDER, true));
    assert_ne!(first.name, second.name);
    let unit = |unit: &str, round| What::Start { unit: unit.to_owned(), round };
    let started = [unit("parallel_driver_p", 4), unit("parallel_driver_p#2", 5), unit("anytime_a b", 6)];
    assert_eq!(told(&mut script), started);

    exit(&mut script, &first.name, 0);
    exit(&mut script, &third.name, 3);
    assert_eq!(ended(&mut script), [(4, true, false), (6, false, false)]);
    let [_, What::Exit { unit, success: false, .. }, What::Finding { property, text }] =
        &told(&mut script)[..]
    else {
        panic!("expected two ends, the second with a finding")
    };
    assert_eq!((&**unit, &**property), ("anytime_a b", builtin::DRIVER_EXIT));
    assert_eq!(text, "command anytime_a b ended with exit status 3");
    // The first run has ended, so the next run of the command gets the first run's service name. Then the second run
    // exits too. A process that the second run started can still print a line, which then appears under the displayed
    // name of the second run.
    let (_, again) = start(&mut script, 7, "parallel_driver_p");
    assert_eq!(again.name, first.name);
    script.host.take_events();
    exit(&mut script, &second.name, 1);
    let [What::Exit { unit, .. }, What::Finding { text, .. }] = &told(&mut script)[..] else {
        panic!("expected an end with a finding")
    };
    assert_eq!(unit, "parallel_driver_p#2");
    assert_eq!(text, "command parallel_driver_p ended with exit status 1");
    let line = Output {
        unit: Unit::Service(second.name),
        stream: Stream::Stdout,
        text: "late".into(),
        truncated: false,
        unfinished: false,
    };
    script.host.received(Port::Log, &encode_output(&line).unwrap(), 99);
    let told = told(&mut script);
    assert!(matches!(&told[..], [What::Line { unit, .. }] if unit == "parallel_driver_p#2"), "{told:?}");
}

#[test]
fn commands_at_the_end_are_checks() {
    let mut script = up();
    let (_, service) = start(&mut script, 1, "eventually_z");
    exit(&mut script, &service.name, 1);
    let found = told(&mut script).pop();
    let Some(What::Finding { property, text }) = found else { panic!("{found:?}") };
    assert_eq!(
        (&*property, &*text),
        (builtin::FAILED_CHECK, "command eventually_z ended with exit status 1")
    );
}

#[test]
fn killed_commands_end_without_events() {
    let mut script = up();
    let (_, one) = start(&mut script, 1, "parallel_driver_p");
    let (_, other) = start(&mut script, 2, "anytime_a b");
    script.host.take_events();
    script.host.kill_commands(50);
    let asked: Vec<(String, i32)> = script
        .requests()
        .into_iter()
        .filter_map(|request| match request.op {
            Operation::Signal { service, signal } => Some((service, signal)),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [(one.name.clone(), 9), (other.name.clone(), 9)]);
    script.host.kill_commands(51);
    assert_eq!(script.requests(), [], "a second kill must send nothing");
    exit(&mut script, &one.name, 137);
    exit(&mut script, &other.name, 0);
    assert_eq!(ended(&mut script), [(1, false, true), (2, true, true)]);
    assert_eq!((told(&mut script), script.host.findings()), (vec![], 0));
}

#[test]
fn a_command_that_cannot_be_started_counts_as_ended() {
    let mut script = up();
    let (id, service) = start(&mut script, 1, "parallel_driver_p");
    let message = format!("cannot start the service {}: Exec format error", service.name);
    script.answer(id, Reply::Error { message });
    script.host.start_command(2, "parallel_driver_gone", 60);
    assert_eq!(script.requests(), []);
    assert_eq!(ended(&mut script), [(1, false, false), (2, false, false)]);
    let found: Vec<String> = told(&mut script)
        .into_iter()
        .filter_map(|what| if let What::Finding { text, .. } = what { Some(text) } else { None })
        .collect();
    let wanted = [
        "command parallel_driver_p: cannot start the service parallel_driver_p: Exec format error",
        "command parallel_driver_gone is not in /t any more",
    ];
    assert_eq!(found, wanted);
}

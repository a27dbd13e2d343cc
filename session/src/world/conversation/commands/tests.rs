//! Tests of the host's exchange of messages with a scripted agent (Everett's program in a guest) whose guest has a test
//! template, i.e. a folder of test commands.

use everett_protocol::{Message, Output, Port, Reply, Request, Stream, Unit, encode_output};
use everett_streams::Seed;

use super::*;
use crate::guest::agent_script::AgentScript;
use crate::guest::sdk::{OUTPUT_FOLDER, OUTPUT_VARIABLE};
use crate::world::conversation::tests::{Exchange, script};
use crate::world::event::Event;

/// Names of the files in the test template. A file with the prefix `helper_` is not a command.
const NAMES: [&str; 4] = ["anytime_a b", "eventually_z", "helper_h", "parallel_driver_p"];

fn exchange() -> Exchange {
    Exchange::of(AgentScript { template: Some("/t".to_owned()), ..script() })
}

fn names() -> Reply {
    Reply::Names(NAMES.map(str::to_owned).to_vec())
}

/// Runs until the services are ready. Returns the number of the request for the list of commands.
fn listing(exchange: &mut Exchange) -> u64 {
    exchange.mounted();
    exchange.services();
    let list = exchange.say(&Message::Ready);
    let [Request { id, op: Operation::List { path } }] = &list[..] else { panic!("{list:?}") };
    assert_eq!((path.as_str(), exchange.host.phase()), ("/t", Phase::Joining));
    *id
}

/// Runs to the beginning of the timeline.
fn up() -> Exchange {
    let mut exchange = exchange();
    let list = listing(&mut exchange);
    assert_eq!(exchange.answer(list, names()), []);
    exchange.host.begin(Seed::new(9), vec![6; 64], exchange.vtime_ns);
    let reseed = exchange.requests();
    assert!(!exchange.host.takes_commands());
    exchange.answer(reseed[0].id, Reply::Done);
    assert!(exchange.host.takes_commands());
    let begun = Word { vtime_ns: exchange.vtime_ns, said: Said::Begun };
    assert_eq!(exchange.host.take_words(), [begun]);
    exchange.host.take_events();
    exchange
}

/// Starts a command. Returns the number of the request and the requested service.
fn start(exchange: &mut Exchange, run: u64, name: &str) -> (u64, everett_protocol::Service) {
    exchange.host.start_command(run, name, exchange.vtime_ns);
    let asked = exchange.requests();
    let [Request { id, op: Operation::Start { services } }] = &asked[..] else { panic!("{asked:?}") };
    (*id, services[0].clone())
}

fn exit(exchange: &mut Exchange, service: &str, code: i32) {
    let (service, exit) = (service.to_owned(), Exit::Code(code));
    let exited = everett_protocol::Exited { service, exit, restarting: false };
    assert_eq!(exchange.say(&Message::Exited(exited)), []);
}

fn ended(exchange: &mut Exchange) -> Vec<(u64, bool, bool)> {
    let words = exchange.host.take_words().into_iter();
    let ended = words.filter_map(|word| match word.said {
        Said::Ended { run, success, killed } => Some((run, success, killed)),
        Said::Begun => None,
    });
    ended.collect()
}

fn told(exchange: &mut Exchange) -> Vec<What> {
    exchange.host.take_events().into_iter().map(|event: Event| event.what).collect()
}

#[test]
fn a_machine_is_ready_when_its_commands_are_listed() {
    let mut exchange = exchange();
    let list = listing(&mut exchange);
    assert_eq!(exchange.say(&Message::Ready), [], "the list must be requested only once");
    assert_eq!(exchange.answer(list, names()), []);
    assert_eq!((exchange.host.phase(), exchange.host.names()), (Phase::Ready, &NAMES.map(str::to_owned)[..]));
    assert_eq!(exchange.host.ready_ns(), Some(exchange.vtime_ns));

    // After a restart the agent lists the commands again.
    exchange.host.restart(None);
    assert_eq!(exchange.host.names(), [] as [String; 0]);
    let list = listing(&mut exchange);
    exchange.answer(list, Reply::Names(Vec::new()));
    assert_eq!((exchange.host.phase(), exchange.host.names()), (Phase::Ready, &[][..]));
}

#[test]
fn a_failed_list_breaks_the_boot() {
    let mut exchange = exchange();
    let list = listing(&mut exchange);
    exchange.answer(list, Reply::Error { message: "cannot list /t: it is no folder".to_owned() });
    assert_eq!(exchange.host.broken_because(), Some("test template: cannot list /t: it is no folder"));
    exchange.answer(list, names());
    assert_eq!(exchange.host.names(), [] as [String; 0]);
}

#[test]
fn commands_run_beside_each_other_and_end() {
    let mut exchange = up();
    let (_, first) = start(&mut exchange, 4, "parallel_driver_p");
    let (_, second) = start(&mut exchange, 5, "parallel_driver_p");
    let (_, third) = start(&mut exchange, 6, "anytime_a b");
    assert_eq!(first.argv, ["/t/parallel_driver_p"]);
    assert_eq!((&*first.env[SEED_VARIABLE], &*second.env[ROUND_VARIABLE]), ("9", "5"));
    assert_eq!((&*first.env[OUTPUT_VARIABLE], first.history), (OUTPUT_FOLDER, true));
    assert_ne!(first.name, second.name);
    let unit = |unit: &str, round| What::Start { unit: unit.to_owned(), round };
    let started = [unit("parallel_driver_p", 4), unit("parallel_driver_p#2", 5), unit("anytime_a b", 6)];
    assert_eq!(told(&mut exchange), started);

    exit(&mut exchange, &first.name, 0);
    exit(&mut exchange, &third.name, 3);
    assert_eq!(ended(&mut exchange), [(4, true, false), (6, false, false)]);
    let [_, What::Exit { unit, success: false, .. }, What::Finding { property, text }] =
        &told(&mut exchange)[..]
    else {
        panic!("expected two ends, the second with a finding")
    };
    assert_eq!((&**unit, &**property), ("anytime_a b", builtin::DRIVER_EXIT));
    assert_eq!(text, "command anytime_a b ended with exit status 3");
    // The first run has ended, so the next run of the command gets the first run's service name. Then the second run
    // exits too. A process that the second run started can still print a line, which then appears under the displayed
    // name of the second run.
    let (_, again) = start(&mut exchange, 7, "parallel_driver_p");
    assert_eq!(again.name, first.name);
    exchange.host.take_events();
    exit(&mut exchange, &second.name, 1);
    let [What::Exit { unit, .. }, What::Finding { text, .. }] = &told(&mut exchange)[..] else {
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
    exchange.host.received(Port::Log, &encode_output(&line).unwrap(), 99);
    let told = told(&mut exchange);
    assert!(matches!(&told[..], [What::Line { unit, .. }] if unit == "parallel_driver_p#2"), "{told:?}");
}

#[test]
fn commands_at_the_end_are_checks() {
    let mut exchange = up();
    let (_, service) = start(&mut exchange, 1, "eventually_z");
    exit(&mut exchange, &service.name, 1);
    let found = told(&mut exchange).pop();
    let Some(What::Finding { property, text }) = found else { panic!("{found:?}") };
    assert_eq!(
        (&*property, &*text),
        (builtin::FAILED_CHECK, "command eventually_z ended with exit status 1")
    );
}

#[test]
fn killed_commands_end_without_events() {
    let mut exchange = up();
    let (_, one) = start(&mut exchange, 1, "parallel_driver_p");
    let (_, other) = start(&mut exchange, 2, "anytime_a b");
    exchange.host.take_events();
    exchange.host.kill_commands(50);
    let asked: Vec<(String, i32)> = exchange
        .requests()
        .into_iter()
        .filter_map(|request| match request.op {
            Operation::Signal { service, signal } => Some((service, signal)),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [(one.name.clone(), 9), (other.name.clone(), 9)]);
    exchange.host.kill_commands(51);
    assert_eq!(exchange.requests(), [], "a second kill must send nothing");
    exit(&mut exchange, &one.name, 137);
    exit(&mut exchange, &other.name, 0);
    assert_eq!(ended(&mut exchange), [(1, false, true), (2, true, true)]);
    assert_eq!((told(&mut exchange), exchange.host.findings()), (vec![], 0));
}

#[test]
fn a_command_that_cannot_be_started_counts_as_ended() {
    let mut exchange = up();
    let (id, service) = start(&mut exchange, 1, "parallel_driver_p");
    let message = format!("cannot start the service {}: Exec format error", service.name);
    exchange.answer(id, Reply::Error { message });
    exchange.host.start_command(2, "parallel_driver_gone", 60);
    assert_eq!(exchange.requests(), []);
    assert_eq!(ended(&mut exchange), [(1, false, false), (2, false, false)]);
    let found: Vec<String> = told(&mut exchange)
        .into_iter()
        .filter_map(|what| if let What::Finding { text, .. } = what { Some(text) } else { None })
        .collect();
    let wanted = [
        "command parallel_driver_p: cannot start the service parallel_driver_p: Exec format error",
        "command parallel_driver_gone is not in /t any more",
    ];
    assert_eq!(found, wanted);
}

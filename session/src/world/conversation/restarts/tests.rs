//! Tests of restarts of services. The agent, i.e. Everett's program in the guest, is scripted.

use everett_protocol::{Exited, Message, Operation, Request};

use super::*;
use crate::guest::agent_script::AgentScript;
use crate::guest::containers::Stop;
use crate::world::conversation::Phase;
use crate::world::conversation::tests::{Exchange, script};

/// Source code of the agent. It contains the error messages by which Everett recognizes why the agent refused a
/// request.
const AGENT: &str = include_str!("../../../../../guest-image/agent/src/services.rs");
const RUNS: &str = "cannot start server: it runs already";
const DOWN: &str = "the service server does not run";

/// Request that Everett sends to the agent in order to restart a service.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sent {
    /// A signal from the agent to the process group.
    Group(i32),
    /// A signal that the program at [`INIT_PATH`] sends. The value is the command line.
    Program(String),
    Start,
}

/// Everett's conversation with the agent after its start, and Everett's last request.
struct Restarts {
    exchange: Exchange,
    id: u64,
}

impl Restarts {
    fn of(script: AgentScript) -> Restarts {
        let mut exchange = Exchange::of(script);
        let id = exchange.up();
        exchange.answer(id, Reply::Done);
        exchange.host.take_events();
        Restarts { exchange, id }
    }

    fn supervised() -> Restarts {
        Restarts::of(AgentScript { stop: Stop { supervised: true, ..script().stop }, ..script() })
    }

    /// Restarts the service. Returns the request that Everett sends.
    fn restart(&mut self, vtime_ns: u64) -> Option<Sent> {
        self.exchange.host.restart_service("server", vtime_ns);
        self.sent()
    }

    fn sent(&mut self) -> Option<Sent> {
        let requests = self.exchange.requests();
        self.only(&requests)
    }

    /// Returns the pending request, if there is one. More than one is an error.
    fn only(&mut self, requests: &[Request]) -> Option<Sent> {
        let [Request { id, op }] = requests else {
            assert_eq!(requests, []);
            return None;
        };
        self.id = *id;
        Some(match op {
            Operation::Signal { service, signal } if service == "server" => Sent::Group(*signal),
            Operation::Exec(exec) => Sent::Program(exec.argv.join(" ")),
            Operation::Start { services } if *services == script().services => Sent::Start,
            op => panic!("{op:?}"),
        })
    }

    /// Answers the last request.
    fn answer(&mut self, reply: Reply) -> Option<Sent> {
        self.answer_to(self.id, reply)
    }

    fn answer_to(&mut self, id: u64, reply: Reply) -> Option<Sent> {
        let requests = self.exchange.answer(id, reply);
        self.only(&requests)
    }

    fn refuse(&mut self, message: &str) -> Option<Sent> {
        self.answer(Reply::Error { message: message.to_owned() })
    }

    fn exits(&mut self, exit: Exit, restarting: bool) -> Option<Sent> {
        let requests =
            self.exchange.say(&Message::Exited(Exited { service: "server".to_owned(), exit, restarting }));
        self.only(&requests)
    }

    /// Returns Everett's reports on the restarted service since the last call: false for a report that the service has
    /// started, true for a report that it is ready.
    fn restarted(&mut self) -> Vec<bool> {
        self.exchange.host.take_restarted().iter().map(|one| one.ready).collect()
    }

    /// Returns the texts of all [`What::Effect`] events (results of faults) since the last call.
    fn effects(&mut self) -> Vec<String> {
        let text = |what| if let What::Effect { text } = what { Some(text) } else { None };
        self.exchange.host.take_events().into_iter().filter_map(|event| text(event.what)).collect()
    }

    fn is_over(&self) -> bool {
        !self.exchange.host.is_restarting()
    }
}

fn program(signal: i32) -> Option<Sent> {
    Some(Sent::Program(format!("/run/everett/init signal server {signal}")))
}

#[test]
fn a_service_is_asked_to_end_killed_and_started_again() {
    let mut it = Restarts::of(script());
    assert_eq!(it.restart(100), Some(Sent::Group(15)));
    assert_eq!(it.exchange.host.kills_ns().collect::<Vec<_>>(), [110]);
    assert_eq!(it.restart(101), None);
    it.exchange.host.restart_service("load", 101);
    it.exchange.host.kill_late(109);
    assert_eq!(it.sent(), None);
    it.exchange.host.kill_late(110);
    assert_eq!((it.sent(), it.exchange.host.kills_ns().count()), (Some(Sent::Group(9)), 0));
    // The agent would itself start the service again after a delay, but Everett asks for the start at once.
    assert_eq!(it.exits(Exit::Signal(9), true), Some(Sent::Start));
    // The agent sent this report before it answered the request to start the service, so the report says nothing about
    // the new process.
    it.exchange.say(&Message::Ready);
    assert_eq!(it.restarted(), Vec::<bool>::new());
    assert_eq!(it.answer(Reply::Done), None);
    assert_eq!((it.restarted(), it.is_over()), (vec![false], false));
    it.exchange.say(&Message::Ready);
    assert_eq!((it.restarted(), it.is_over()), (vec![true], true));
    assert_eq!(it.exchange.host.rest_ns(), it.exchange.vtime_ns);
    assert_eq!(
        it.effects(),
        [
            "server is asked to end by signal 15",
            "not done: server is being restarted",
            "not done: there is no service load",
            "server has not ended within 10 ns and is killed"
        ]
    );
    assert_eq!(it.exchange.host.findings(), 0);
    it.exits(Exit::Code(1), false);
    assert_eq!(it.exchange.host.findings(), 1, "it ended without being asked");
}

#[test]
fn a_service_that_does_not_run_is_only_started() {
    for says in [DOWN, "there is no service server"] {
        let mut it = Restarts::of(script());
        it.restart(100);
        assert_eq!(it.refuse(says), Some(Sent::Start));
        it.answer(Reply::Done);
        assert_eq!(it.restarted(), [false]);
        it.exchange.host.kill_late(110);
        assert_eq!(it.sent(), None);
    }
}

#[test]
fn the_words_of_the_agent_are_understood() {
    for words in
        ["the service {name} does not run", "there is no service {name}", "cannot start {}: it runs already"]
    {
        assert!(AGENT.contains(&format!("format!(\"{words}\"")), "{words}");
    }
    assert!(does_not_run(DOWN, "server") && runs_already(RUNS, "server"));
}

#[test]
fn a_supervised_service_gets_its_signals_through_its_supervisor() {
    let mut it = Restarts::supervised();
    assert_eq!(it.restart(100), program(15));
    assert_eq!(it.answer(Reply::Exited(Exit::Code(0))), None);
    it.exchange.host.kill_late(110);
    assert_eq!(it.sent(), program(9));
    assert_eq!(it.answer(Reply::Exited(Exit::Code(0))), None);
    assert_eq!(it.exits(Exit::Signal(9), false), Some(Sent::Start));
}

#[test]
fn a_signal_that_cannot_be_sent_is_no_restart() {
    let mut it = Restarts::supervised();
    it.restart(100);
    assert_eq!(it.answer(Reply::Exited(Exit::Code(125))), None);
    assert!(it.is_over());
    it.restart(101);
    assert_eq!(it.refuse("cannot start /run/everett/init: no such file"), None);
    assert!(it.is_over());
    let mut other = Restarts::of(script());
    other.restart(100);
    assert_eq!(other.refuse("cannot send signal 15 to server: not permitted"), None);
    assert!(other.is_over() && other.exchange.host.findings() == 0);
    let said = [it.effects(), other.effects()].concat();
    let not_done: Vec<&str> = said.iter().filter_map(|text| text.strip_prefix("not done: ")).collect();
    assert_eq!(
        not_done,
        [
            "sending the signal ended with exit status 125",
            "cannot start /run/everett/init: no such file",
            "cannot send signal 15 to server: not permitted"
        ]
    );
}

/// The service's supervisor (the program that starts the service and waits for its end) has started. It has not yet
/// written the note by which the program at [`INIT_PATH`] knows that the service runs.
#[test]
fn a_service_whose_supervisor_is_starting_is_asked_again() {
    let not_running = Reply::Exited(NOT_RUNNING);
    let mut it = Restarts::supervised();
    it.restart(100);
    for _ in 0..3 {
        assert_eq!(it.answer(not_running.clone()), Some(Sent::Start));
        assert_eq!(it.refuse(RUNS), program(15));
    }
    // Everett still kills the service at its time limit. The supervisor never writes its note, so the agent sends the
    // signal.
    it.exchange.vtime_ns = 110;
    it.exchange.host.kill_late(110);
    assert_eq!(it.sent(), program(9));
    assert_eq!(it.answer(not_running), Some(Sent::Start));
    assert_eq!(it.refuse(RUNS), Some(Sent::Group(9)));
    assert_eq!(it.answer(Reply::Done), None);
    assert_eq!(it.exits(Exit::Signal(9), false), Some(Sent::Start));
    it.answer(Reply::Done);
    assert_eq!((it.restarted(), it.exchange.host.findings()), (vec![false], 0));
}

/// The service's supervisor has deleted its note that the service runs. The agent has not noticed yet that the
/// supervisor ended.
#[test]
fn a_service_whose_supervisor_is_ending_is_started_again() {
    let mut it = Restarts::supervised();
    it.restart(100);
    assert_eq!(it.answer(Reply::Exited(NOT_RUNNING)), Some(Sent::Start));
    assert_eq!(it.refuse(RUNS), program(15));
    assert_eq!(it.exits(Exit::Code(143), false), Some(Sent::Start));
    assert_eq!(it.answer(Reply::Done), None);
    assert_eq!((it.restarted(), it.exchange.host.findings()), (vec![false], 0));

    // Alternatively, the agent reports the end of the supervisor before it reads the request to start the service.
    let mut it = Restarts::supervised();
    it.restart(100);
    assert_eq!(it.answer(Reply::Exited(NOT_RUNNING)), Some(Sent::Start));
    assert_eq!(it.exits(Exit::Code(143), false), None);
    assert_eq!(it.answer(Reply::Done), None);
    assert_eq!((it.restarted(), it.exchange.host.findings()), (vec![false], 0));
}

/// The service has ended by itself. The agent restarts the service before it reads Everett's request to start it.
#[test]
fn a_service_that_the_agent_starts_again_first_is_asked_to_end() {
    let mut it = Restarts::of(script());
    it.restart(100);
    assert_eq!(it.refuse(DOWN), Some(Sent::Start));
    assert_eq!(it.refuse(RUNS), Some(Sent::Group(15)));
    assert_eq!(it.exits(Exit::Code(143), true), Some(Sent::Start));
    it.answer(Reply::Done);
    assert_eq!(it.restarted(), [false]);
}

#[test]
fn a_service_that_cannot_be_started_again_is_no_restart() {
    let mut it = Restarts::of(script());
    it.restart(100);
    it.answer(Reply::Done);
    it.exits(Exit::Code(143), false);
    assert_eq!(it.refuse("cannot start the service server: no memory"), None);
    assert_eq!((it.restarted(), it.is_over()), (vec![], true));
    assert_eq!(it.effects().last().unwrap(), "not done: cannot start the service server: no memory");
}

#[test]
fn a_late_answer_says_nothing_about_a_later_restart() {
    let mut it = Restarts::supervised();
    it.restart(100);
    let first = it.id;
    assert_eq!(it.exits(Exit::Code(143), false), Some(Sent::Start));
    it.answer(Reply::Done);
    it.exchange.say(&Message::Ready);
    assert!(it.is_over());
    assert_eq!(it.restart(200), program(15));
    assert_eq!(it.answer_to(first, Reply::Exited(NOT_RUNNING)), None);
    assert_eq!(it.answer_to(first, Reply::Exited(Exit::Code(125))), None);
    assert_eq!(it.exchange.host.kills_ns().collect::<Vec<_>>(), [210]);
}

#[test]
fn a_pause_is_no_time_to_end() {
    let after = |paused_ns, resumed_ns| {
        let mut it = Restarts::of(script());
        it.restart(100);
        it.exchange.host.resumed(paused_ns, resumed_ns);
        it.exchange.host.kills_ns().collect::<Vec<_>>()
    };
    assert_eq!(after(103, 1_000), [1_007], "7 of the 10 ns were left");
    assert_eq!(after(50, 1_000), [1_010], "it was asked during the pause");
}

/// After a driver (a client program of the workload) has ended for good, the agent no longer reports that services are
/// ready. A restarted service then counts as ready when it has started.
#[test]
fn a_service_beside_a_driver_that_ended_is_ready_when_it_was_started() {
    let once = || {
        let mut script = script();
        script.drivers[0].repeat = false;
        script
    };
    let mut it = Restarts::of(once());
    it.exchange.driver_exits(Exit::Code(0));
    it.restart(100);
    it.exits(Exit::Code(143), false);
    it.answer(Reply::Done);
    assert_eq!((it.restarted(), it.is_over()), (vec![false, true], true));

    // The driver can also end after the service has started again.
    let mut it = Restarts::of(once());
    it.restart(100);
    it.exits(Exit::Code(143), false);
    it.answer(Reply::Done);
    assert_eq!((it.restarted(), it.is_over()), (vec![false], false));
    it.exchange.driver_exits(Exit::Code(0));
    assert_eq!((it.restarted(), it.is_over()), (vec![true], true));

    // A driver that starts again is not down for good.
    let mut it = Restarts::of(script());
    it.exchange.driver_exits(Exit::Code(0));
    it.restart(100);
    it.exits(Exit::Code(143), false);
    it.answer(Reply::Done);
    assert_eq!((it.restarted(), it.is_over()), (vec![false], false));
}

#[test]
fn a_restart_is_over_if_the_service_ends_or_does_not_get_ready() {
    let started = || {
        let mut it = Restarts::of(script());
        it.restart(100);
        it.exits(Exit::Code(143), false);
        it.answer(Reply::Done);
        it
    };
    let mut it = started();
    it.exits(Exit::Code(1), true);
    assert!(!it.is_over(), "the agent starts it again");
    it.exits(Exit::Code(1), false);
    assert_eq!((it.is_over(), it.restarted(), it.exchange.host.findings()), (true, vec![false], 1));
    let mut it = started();
    it.exchange.say(&Message::NotReady { service: "server".to_owned(), why: "not in time".to_owned() });
    assert_eq!((it.is_over(), it.restarted(), it.exchange.host.findings()), (true, vec![false], 1));
}

#[test]
fn a_node_is_not_calm_while_a_service_is_restarted() {
    let mut it = Restarts::of(script());
    it.restart(100);
    it.exchange.host.end(101);
    it.exchange.requests();
    it.exchange.driver_exits(Exit::Signal(9));
    assert_eq!((it.exchange.host.phase(), it.exchange.host.is_calm()), (Phase::Stopped, false));
    assert_eq!(it.exchange.host.waits_for(), "its service server is being restarted");
    assert_eq!(it.exits(Exit::Code(143), false), Some(Sent::Start));
    it.exchange.vtime_ns = 500;
    it.answer(Reply::Done);
    // The driver has ended for good, so Everett does not wait for a report that the service is ready.
    assert!(it.exchange.host.is_calm());
    assert_eq!(it.exchange.host.rest_ns(), 501);
}

#[test]
fn a_service_with_a_real_time_signal_is_not_restarted() {
    let mut it = Restarts::of(AgentScript { stop: Stop { signal: 37, ..script().stop }, ..script() });
    assert_eq!(it.restart(100), None);
    assert_eq!(
        (it.effects(), it.is_over()),
        (vec!["not done: its image stops it by the real-time signal 37".to_owned()], true)
    );
}

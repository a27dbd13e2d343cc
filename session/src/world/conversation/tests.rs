//! Tests of conversations. A conversation is Everett's dialogue with the agent, its program in a guest. Here the tests
//! play the agent.

use everett_protocol::{Exited, Hello, Output, Response, Stream, encode_message, encode_output};
use everett_streams::Seed;

use super::*;
use crate::guest::agent_script::{Check, Driver, ROUND_VARIABLE, SEED_VARIABLE};
use crate::guest::containers::{self, Stop};

fn service(name: &str) -> protocol::Service {
    containers::service(name, vec![format!("/bin/{name}")])
}

fn exec(program: &str) -> protocol::Exec {
    protocol::Exec { limit_ms: Some(1000), ..protocol::Exec::new(vec![program.to_owned()]) }
}

pub(crate) fn script() -> AgentScript {
    AgentScript {
        node: "a".to_owned(),
        mount: protocol::Mount { root: protocol::Root::None, hostname: "a".to_owned() },
        epoch_unix_s: 1000,
        hosts: Vec::new(),
        nameservers: Vec::new(),
        interfaces: Vec::new(),
        disks: Vec::new(),
        prefix: Vec::new(),
        files: vec![protocol::PutFile {
            path: "/etc/x".to_owned(),
            mode: 0o644,
            owner: None,
            append: false,
            data: protocol::Bytes(b"x".to_vec()),
        }],
        services: vec![service("server")],
        after: Vec::new(),
        jobs: Vec::new(),
        restartable: ["server".to_owned()].into(),
        stop: Stop { signal: 15, grace_ns: 10, supervised: false },
        drivers: vec![Driver { service: service("load"), repeat: true }],
        checks: vec![Check { name: "alive".to_owned(), exec: exec("ping") }],
        template: None,
        sdk: None,
        settle_ns: 0,
    }
}

/// A conversation in which the test sends the agent's messages.
pub(super) struct Exchange {
    pub(super) host: Conversation,
    pub(super) vtime_ns: u64,
}

impl Exchange {
    pub(super) fn new() -> Exchange {
        Exchange::of(script())
    }

    pub(super) fn of(script: AgentScript) -> Exchange {
        Exchange { host: Conversation::new(script), vtime_ns: 0 }
    }

    /// Delivers a message of the agent. Returns the requests that Everett sends in response.
    pub(super) fn say(&mut self, message: &Message) -> Vec<Request> {
        self.vtime_ns += 1;
        self.host.received(Port::Control, &encode_message(message).unwrap(), self.vtime_ns);
        self.requests()
    }

    pub(super) fn requests(&mut self) -> Vec<Request> {
        let mut lines = LineSplitter::control();
        lines.push(&self.host.take_outgoing());
        std::iter::from_fn(|| lines.next_line())
            .map(|line| protocol::decode_request(&line.unwrap()).unwrap())
            .collect()
    }

    pub(super) fn answer(&mut self, id: u64, reply: Reply) -> Vec<Request> {
        self.say(&Message::Response(Response { id, reply }))
    }

    fn hello(&mut self) -> Vec<Request> {
        self.say(&Message::Hello(Hello { version: protocol::VERSION, release: "6.1".to_owned() }))
    }

    /// Runs the conversation to the restart point, at which the agent has mounted the root and waits.
    pub(super) fn mounted(&mut self) {
        let mount = self.hello();
        assert!(matches!(mount[..], [Request { op: Operation::Mount(_), .. }]), "{mount:?}");
        assert_eq!(self.answer(mount[0].id, Reply::Done), [], "it must wait at the restart point");
        assert_eq!(self.host.phase(), Phase::Mounted);
    }

    /// Runs from the restart point to the start of the services.
    pub(super) fn services(&mut self) {
        self.host.join(vec![5; 64], 2_000_000_003);
        let join = self.requests();
        let [Request { id, op: Operation::Join(asked) }] = &join[..] else { panic!("{join:?}") };
        assert_eq!(asked.clock, protocol::WallClock { seconds: 1002, nanoseconds: 3 });
        assert_eq!(asked.entropy.0, [5; 64]);
        let file = self.answer(*id, Reply::Done);
        assert!(matches!(file[..], [Request { op: Operation::PutFile(_), .. }]));
        // Before Everett has asked for the first service, the agent reports that all services are ready. This report
        // must have no effect.
        assert_eq!(self.say(&Message::Ready), []);
        let start = self.answer(file[0].id, Reply::Done);
        assert!(matches!(start[..], [Request { op: Operation::Start { .. }, .. }]));
        assert_eq!(self.answer(start[0].id, Reply::Done), []);
        assert_eq!(self.host.phase(), Phase::Joining);
    }

    /// Runs from the restart point until all services are ready.
    fn ready(&mut self) {
        self.services();
        assert_eq!(self.say(&Message::Ready), [], "it must wait for a seed");
        assert_eq!((self.host.phase(), self.host.seed()), (Phase::Ready, None));
        assert_eq!(self.host.ready_ns(), Some(self.vtime_ns));
    }

    /// Runs to the driver's start under seed 9. Returns the number of the request that started the driver.
    pub(super) fn up(&mut self) -> u64 {
        self.mounted();
        self.ready();
        self.host.begin(Seed::new(9), vec![6; 64], self.vtime_ns);
        let reseed = self.requests();
        let [Request { id, op: Operation::Reseed { entropy } }] = &reseed[..] else { panic!("{reseed:?}") };
        assert_eq!(entropy.0, [6; 64]);
        let driver = self.answer(*id, Reply::Done);
        assert_eq!(self.host.phase(), Phase::Running);
        let [Request { id, op: Operation::Start { services } }] = &driver[..] else { panic!("{driver:?}") };
        assert_eq!(services[0].env[ROUND_VARIABLE], "0");
        assert_eq!(services[0].env[SEED_VARIABLE], "9");
        *id
    }

    pub(super) fn driver_exits(&mut self, exit: Exit) -> Vec<Request> {
        self.say(&Message::Exited(Exited { service: "load".to_owned(), exit, restarting: false }))
    }
}

/// Returns an exchange in which the agent was asked to join the world, and the number of this request.
fn joining() -> (Exchange, u64) {
    let mut exchange = Exchange::new();
    exchange.mounted();
    exchange.host.join(vec![5; 64], 1);
    let join = exchange.requests();
    let [Request { id, op: Operation::Join(_) }] = join[..] else { panic!("{join:?}") };
    (exchange, id)
}

#[test]
fn a_whole_timeline() {
    let mut exchange = Exchange::new();
    let driver = exchange.up();
    assert_eq!(exchange.answer(driver, Reply::Done), []);
    let again = exchange.driver_exits(Exit::Code(0));
    let [Request { op: Operation::Start { services }, .. }] = &again[..] else { panic!("{again:?}") };
    assert_eq!(services[0].env[ROUND_VARIABLE], "1");

    exchange.host.end(100);
    let stop = exchange.requests();
    assert!(
        matches!(&stop[..], [Request { op: Operation::Signal { service, signal: 9 }, .. }] if service == "load")
    );
    assert_eq!(exchange.driver_exits(Exit::Signal(9)), [], "the checks must wait for the other nodes");
    assert_eq!(exchange.host.phase(), Phase::Stopped);
    exchange.host.check(0, 101);
    let check = exchange.requests();
    let [Request { id, op: Operation::Exec(exec) }] = &check[..] else { panic!("{check:?}") };
    assert_eq!(exec.argv, ["ping"]);
    let output = Output {
        unit: Unit::Exec(*id),
        stream: Stream::Stdout,
        text: "PONG".into(),
        truncated: false,
        unfinished: false,
    };
    exchange.say(&Message::Output(output));
    assert!(exchange.host.is_checking());
    assert_eq!(exchange.answer(*id, Reply::Exited(Exit::Code(0))), []);
    assert!(!exchange.host.is_checking());
    assert_eq!(exchange.host.findings(), 0);
    let events = exchange.host.take_events();
    assert!(
        events
            .iter()
            .any(|e| matches!(&e.what, What::Line { unit, text, .. } if unit == "alive" && text == "PONG"))
    );
}

#[test]
fn failures_are_findings() {
    let mut exchange = Exchange::new();
    exchange.up();
    assert_eq!(exchange.driver_exits(Exit::Code(3)), [], "a driver that failed must not be started again");
    exchange.say(&Message::Exited(Exited {
        service: "server".to_owned(),
        exit: Exit::Signal(11),
        restarting: false,
    }));
    exchange.say(&Message::Error { message: "eth0: gone".to_owned() });
    exchange.host.end(100);
    assert_eq!((exchange.requests(), exchange.host.phase()), (vec![], Phase::Stopped));
    exchange.host.check(0, 101);
    let check = exchange.requests();
    exchange.answer(check[0].id, Reply::Exited(Exit::Code(1)));
    let found: Vec<String> = exchange
        .host
        .take_events()
        .into_iter()
        .filter_map(|e| if let What::Finding { text, .. } = e.what { Some(text) } else { None })
        .collect();
    assert_eq!(
        found,
        [
            "driver load ended with exit status 3",
            "service server ended with signal 11",
            "agent: eth0: gone",
            "check alive ended with exit status 1"
        ]
    );
}

/// The agent kills a check only at the check's time limit. If a check was killed earlier, the agent did not do it, so
/// the finding has the exit status and does not mention the time limit.
#[test]
fn a_check_that_is_killed_at_its_timeout_is_reported_as_too_long() {
    const LIMIT_NS: u64 = 1_000_000_000;
    for (lasted_ns, exit, expected) in [
        (LIMIT_NS, Exit::Signal(9), Some("check alive did not end within its timeout of 1 s")),
        (LIMIT_NS, Exit::Code(137), Some("check alive did not end within its timeout of 1 s")),
        (LIMIT_NS - 1, Exit::Signal(9), Some("check alive ended with signal 9")),
        (LIMIT_NS, Exit::Code(1), Some("check alive ended with exit status 1")),
        (LIMIT_NS, Exit::Code(0), None),
    ] {
        let mut exchange = Exchange::new();
        exchange.up();
        exchange.host.end(100);
        exchange.driver_exits(Exit::Signal(9));
        exchange.host.check(0, 200);
        let check = exchange.requests();
        exchange.vtime_ns = 200 + lasted_ns - 1;
        exchange.answer(check[0].id, Reply::Exited(exit));
        let findings = exchange.host.take_events().into_iter().filter_map(|event| match event.what {
            What::Finding { text, .. } => Some(text),
            _ => None,
        });
        assert_eq!(findings.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_refusal_before_the_drivers_start_breaks_the_conversation() {
    let refused = |exchange: &mut Exchange, id| {
        exchange.answer(id, Reply::Error { message: "no disk".to_owned() });
        (exchange.host.phase(), exchange.host.broken_because().unwrap_or_default().to_owned())
    };
    let broken = |why: &str| (Phase::Broken, why.to_owned());
    let mut exchange = Exchange::new();
    let mount = exchange.hello();
    assert_eq!(refused(&mut exchange, mount[0].id), broken("mount: no disk"));
    let (mut exchange, join) = joining();
    assert_eq!(refused(&mut exchange, join), broken("setup: no disk"));
    let mut exchange = Exchange::new();
    exchange.mounted();
    exchange.ready();
    exchange.host.begin(Seed::new(1), vec![5; 64], 1);
    let reseed = exchange.requests();
    assert_eq!(refused(&mut exchange, reseed[0].id), broken("random numbers: no disk"));
    let mut exchange = Exchange::new();
    exchange.say(&Message::Hello(Hello { version: 999, release: String::new() }));
    assert_eq!(exchange.host.phase(), Phase::Broken);
}

/// Returns a conversation with an agent that refused the first file.
pub(crate) fn refused_file() -> Conversation {
    let (mut exchange, join) = joining();
    let file = exchange.answer(join, Reply::Done);
    assert_eq!(exchange.host.refused_file(), None);
    exchange.answer(file[0].id, Reply::Error { message: "cannot write /etc/x: no user".to_owned() });
    assert_eq!(exchange.host.phase(), Phase::Broken);
    exchange.host
}

#[test]
fn a_file_that_is_refused_is_named() {
    let mut host = refused_file();
    let why = "cannot write /etc/x: no user";
    assert_eq!(host.refused_file(), Some(("/etc/x", why)));
    host.restore(Conversation::new(script()).save()).unwrap();
    assert_eq!(host.refused_file(), None);
}

#[test]
fn a_file_system_that_is_not_mounted_is_a_finding_of_its_own() {
    let (mut exchange, join) = joining();
    exchange.answer(join, Reply::Damaged { message: "the ext4 at /data: bad".to_owned() });
    assert_eq!(exchange.host.phase(), Phase::Broken);
    let found = exchange.host.take_events().into_iter().find_map(|event| match event.what {
        What::Finding { property, text } => Some((property, text)),
        _ => None,
    });
    let (property, text) = found.unwrap();
    assert_eq!((&*property, &*text), ("file system damaged", "the ext4 at /data: bad"));
}

#[test]
fn a_boot_that_cannot_get_ready_says_why() {
    let not_ready = || Message::NotReady { service: "server".to_owned(), why: "not in time".to_owned() };
    let exited = |restarting| {
        let (service, exit) = ("server".to_owned(), Exit::Code(0));
        Message::Exited(Exited { service, exit, restarting })
    };
    let after = |messages: &[Message]| {
        let (mut exchange, _) = joining();
        messages.iter().for_each(|message| drop(exchange.say(message)));
        (exchange.host.phase(), exchange.host.broken_because().map(str::to_owned))
    };
    assert_eq!(after(&[not_ready()]), (Phase::Broken, Some("service server: not in time".to_owned())));
    assert_eq!(after(&[exited(true)]), (Phase::Joining, None));
    let why = "service server ended with exit status 0 before all services were ready";
    assert_eq!(after(&[exited(false)]), (Phase::Broken, Some(why.to_owned())));

    // After the beginning of the timeline, the same messages do not break the conversation.
    let mut exchange = Exchange::new();
    exchange.up();
    exchange.say(&exited(false));
    assert_eq!(exchange.host.findings(), 0);
    exchange.say(&not_ready());
    assert_eq!((exchange.host.phase(), exchange.host.findings()), (Phase::Running, 1));
}

#[test]
fn a_boot_past_its_limit_says_how_far_it_came() {
    let found = |exchange: &mut Exchange| {
        exchange.host.boot_took_too_long(5, "a minute");
        (exchange.host.phase(), exchange.host.broken_because().unwrap_or_default().to_owned())
    };
    let broken = |why: &str| (Phase::Broken, why.to_owned());
    assert_eq!(found(&mut Exchange::new()), broken("its agent has not spoken after a minute"));
    let mut exchange = Exchange::new();
    exchange.hello();
    assert_eq!(found(&mut exchange), broken("its root is not mounted after a minute"));
    let mut exchange = Exchange::new();
    exchange.mounted();
    assert_eq!(found(&mut exchange), broken("it has not joined the world after a minute"));
    let mut exchange = Exchange::new();
    exchange.up();
    assert_eq!(found(&mut exchange), (Phase::Running, String::new()));
    let ready = |check| Some(protocol::Readiness { check, interval_ms: 10, limit_ms: 1000 });
    let tcp = protocol::Service {
        ready: ready(protocol::ReadyCheck::Tcp {
            address: [127, 0, 0, 1].into(),
            port: 6379,
            send: String::new(),
            expect: String::new(),
        }),
        ..service("redis")
    };
    let command = protocol::Service {
        ready: ready(protocol::ReadyCheck::Command {
            argv: vec!["test".to_owned(), "-e".to_owned(), "/x".to_owned()],
        }),
        ..service("other")
    };
    for (services, why) in [
        (vec![service("server")], "its services are not ready"),
        (vec![service("server"), tcp.clone()], "its service redis (tcp port 6379) is not ready"),
        (
            vec![tcp, command],
            "one of its services is not ready: redis (tcp port 6379), other (command test -e /x)",
        ),
    ] {
        let mut exchange = Exchange::of(AgentScript { services, ..script() });
        exchange.mounted();
        exchange.services();
        assert_eq!(found(&mut exchange), broken(&format!("{why} after a minute")));
    }
}

#[test]
fn drivers_that_do_not_end_are_named() {
    let mut exchange = Exchange::new();
    exchange.up();
    exchange.host.end(exchange.vtime_ns);
    assert_eq!(exchange.host.waits_for(), "its driver load did not end when it was killed");
}

#[test]
fn join_and_begin_have_effect_once_and_in_their_phase() {
    let mut exchange = Exchange::new();
    exchange.host.join(vec![5; 64], 1);
    exchange.host.begin(Seed::new(1), vec![5; 64], 1);
    assert_eq!(exchange.requests(), []);
    exchange.up();
    exchange.host.join(vec![5; 64], 1);
    exchange.host.begin(Seed::new(1), vec![5; 64], 1);
    assert_eq!((exchange.requests(), exchange.host.seed()), (vec![], Some(Seed::new(9))));
}

#[test]
fn an_end_before_the_drivers_start_has_no_effect() {
    let mut exchange = Exchange::new();
    exchange.mounted();
    exchange.host.end(5);
    assert_eq!((exchange.host.phase(), exchange.host.findings()), (Phase::Mounted, 0));
}

#[test]
fn an_agent_that_answers_nothing_is_given_up() {
    let mut exchange = Exchange::new();
    exchange.up();
    for _ in 0..PENDING_MAX {
        exchange.driver_exits(Exit::Code(0));
    }
    assert_eq!(exchange.host.phase(), Phase::Broken);
    assert!(Conversation::resume(script(), exchange.host.save()).is_ok());
}

#[test]
fn lines_of_the_log_port_arrive_in_pieces() {
    let mut host = Conversation::new(script());
    let output = Output {
        unit: Unit::Service("server".to_owned()),
        stream: Stream::Stderr,
        text: "hello".into(),
        truncated: false,
        unfinished: false,
    };
    for (i, byte) in encode_output(&output).unwrap().into_iter().enumerate() {
        host.received(Port::Log, &[byte], i as u64);
    }
    let events = host.take_events();
    assert!(matches!(&events[..], [Event { what: What::Line { text, .. }, .. }] if text == "hello"));
}

fn history(host: &mut Conversation) -> Vec<(u64, String)> {
    let events = host.take_events().into_iter();
    let lines = events.filter_map(|event| match event.what {
        What::History { text, truncated: false } => Some((event.vtime_ns, text)),
        _ => None,
    });
    lines.collect()
}

#[test]
fn history_is_reported_line_by_line() {
    let mut exchange = Exchange::new();
    exchange.up();
    exchange.host.received(Port::History, b"{\"process\":0}\n{\"proc", 50);
    exchange.host.received(Port::Log, b"\n", 51);
    exchange.host.received(Port::History, b"ess\":1}\n", 52);
    let told = history(&mut exchange.host);
    assert_eq!(told, [(50, "{\"process\":0}".to_owned()), (52, "{\"process\":1}".to_owned())]);
    assert_eq!(exchange.host.findings(), 0);
}

#[test]
fn a_line_that_a_loss_of_power_cut_off_is_dropped() {
    let mut exchange = Exchange::new();
    exchange.up();
    exchange.host.received(Port::History, b"one\ntw", 50);
    exchange.host.restart(None);
    exchange.host.received(Port::History, b"three\n", 60);
    assert_eq!(history(&mut exchange.host), [(50, "one".to_owned()), (60, "three".to_owned())]);
}

#[test]
fn too_much_history_breaks_the_conversation() {
    let mut exchange = Exchange::new();
    exchange.up();
    let lines = b"y\n".repeat(16 << 10);
    for at in 0..8 {
        exchange.host.received(Port::History, &lines, 50 + at);
    }
    assert_eq!((exchange.host.phase(), exchange.host.findings()), (Phase::Broken, 1));
    assert_eq!(exchange.host.broken_because(), Some("more than 16 MiB of history in 100 ms of vtime"));
    assert!(history(&mut exchange.host).len() < 8 * (16 << 10));
    exchange.host.received(Port::History, b"more\n", 1_000_000_000);
    assert_eq!(history(&mut exchange.host), []);
}

#[test]
fn unrequested_names_break_the_conversation() {
    let mut exchange = Exchange::new();
    let mount = exchange.hello();
    exchange.answer(mount[0].id, Reply::Names(vec!["a".to_owned()]));
    assert_eq!(exchange.host.broken_because(), Some("the agent answers Mount with Names([\"a\"])"));
}

proptest::proptest! {
    #[test]
    fn garbage_is_a_finding_and_no_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let mut exchange = Exchange::new();
        exchange.up();
        exchange.host.take_events();
        exchange.host.received(Port::Control, &bytes, 7);
        exchange.host.received(Port::Log, &bytes, 8);
        exchange.host.received(Port::History, &bytes, 8);
        exchange.host.received(Port::Control, b"\n", 9);
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()).count();
        proptest::prop_assert!(lines == 0 || exchange.host.findings() > 0);
    }

    /// The workload ends on time for all request numbers and replies that an agent can send.
    #[test]
    fn the_workload_ends_whatever_the_agent_answers(answers in proptest::collection::vec((0u64..12, 0..5), 0..40)) {
        let mut exchange = Exchange::new();
        exchange.up();
        for (id, kind) in answers {
            let reply = match kind {
                0 => Reply::Done,
                1 => Reply::Exited(Exit::Code(0)),
                2 => Reply::Packed { bytes: 1, entries: 1 },
                3 => Reply::Names(vec!["a".to_owned()]),
                _ => Reply::Error { message: "no".to_owned() },
            };
            exchange.answer(id, reply);
        }
        exchange.host.end(1000);
        proptest::prop_assert_ne!(exchange.host.phase(), Phase::Running);
    }
}

//! Conversations with a scripted agent.

use everett_protocol::{Exited, Hello, Output, Response, encode_message, encode_output};

use super::*;

fn service(name: &str) -> protocol::Service {
    protocol::Service {
        name: name.to_owned(),
        argv: vec![format!("/bin/{name}")],
        env: BTreeMap::new(),
        cwd: None,
        user: None,
        ready: None,
        restart: protocol::Restart::Never,
    }
}

fn exec(program: &str) -> protocol::Exec {
    protocol::Exec {
        argv: vec![program.to_owned()],
        env: BTreeMap::new(),
        cwd: None,
        user: None,
        stdin: None,
        output: protocol::ExecOutput::Control,
        limit_ms: Some(1000),
    }
}

fn plan() -> Plan {
    Plan {
        node: "a".to_owned(),
        setup: protocol::Setup {
            root: protocol::Root::None,
            clock: protocol::WallClock { seconds: 0, nanoseconds: 0 },
            hostname: "a".to_owned(),
            hosts: Vec::new(),
            nameservers: Vec::new(),
            interfaces: Vec::new(),
            disks: Vec::new(),
            services: Vec::new(),
        },
        files: vec![protocol::PutFile {
            path: "/etc/x".to_owned(),
            mode: 0o644,
            owner: None,
            append: false,
            data: protocol::Bytes(b"x".to_vec()),
        }],
        services: vec![service("server")],
        drivers: vec![super::super::plan::Driver { service: service("load"), repeat: true }],
        checks: vec![super::super::plan::Check { name: "alive".to_owned(), exec: exec("ping") }],
    }
}

/// A conversation, and the requests it has made.
struct Script {
    host: Conversation,
    vtime_ns: u64,
}

impl Script {
    fn new() -> Script {
        Script { host: Conversation::new(plan()), vtime_ns: 0 }
    }

    /// The agent says this; the host's requests in answer.
    fn say(&mut self, message: &Message) -> Vec<Request> {
        self.vtime_ns += 1;
        self.host.received(Port::Control, &encode_message(message).unwrap(), self.vtime_ns);
        self.requests()
    }

    fn requests(&mut self) -> Vec<Request> {
        let mut lines = LineSplitter::control();
        lines.push(&self.host.take_outgoing());
        std::iter::from_fn(|| lines.next_line())
            .map(|line| protocol::decode_request(&line.unwrap()).unwrap())
            .collect()
    }

    fn answer(&mut self, id: u64, reply: Reply) -> Vec<Request> {
        self.say(&Message::Response(Response { id, reply }))
    }

    fn hello(&mut self) -> Vec<Request> {
        self.say(&Message::Hello(Hello { version: protocol::VERSION, release: "6.1".to_owned() }))
    }

    /// Up to the driver's start; the request that started it.
    fn up(&mut self) -> u64 {
        let setup = self.hello();
        assert!(matches!(setup[..], [Request { op: Operation::Setup(_), .. }]));
        let file = self.answer(setup[0].id, Reply::Done);
        assert!(matches!(file[..], [Request { op: Operation::PutFile(_), .. }]));
        // An agent reports that nothing at all is ready, too; that must not start the drivers.
        assert_eq!(self.say(&Message::Ready), []);
        let start = self.answer(file[0].id, Reply::Done);
        assert!(matches!(start[..], [Request { op: Operation::Start { .. }, .. }]));
        assert_eq!(self.answer(start[0].id, Reply::Done), []);
        let driver = self.say(&Message::Ready);
        assert_eq!(self.host.phase(), Phase::Running);
        let [Request { id, op: Operation::Start { services } }] = &driver[..] else { panic!("{driver:?}") };
        assert_eq!(services[0].env[ROUND_VARIABLE], "0");
        *id
    }

    fn driver_exits(&mut self, exit: Exit) -> Vec<Request> {
        self.say(&Message::Exited(Exited { service: "load".to_owned(), exit, restarting: false }))
    }
}

#[test]
fn a_whole_timeline() {
    let mut script = Script::new();
    let driver = script.up();
    assert_eq!(script.answer(driver, Reply::Done), []);
    let again = script.driver_exits(Exit::Code(0));
    let [Request { op: Operation::Start { services }, .. }] = &again[..] else { panic!("{again:?}") };
    assert_eq!(services[0].env[ROUND_VARIABLE], "1");

    script.host.end(100);
    let stop = script.requests();
    assert!(
        matches!(&stop[..], [Request { op: Operation::Signal { service, signal: 9 }, .. }] if service == "load")
    );
    let check = script.driver_exits(Exit::Signal(9));
    let [Request { id, op: Operation::Exec(exec) }] = &check[..] else { panic!("{check:?}") };
    assert_eq!(exec.argv, ["ping"]);
    let output = Output {
        unit: Unit::Exec(*id),
        stream: Stream::Stdout,
        text: "PONG".into(),
        truncated: false,
        unfinished: false,
    };
    script.say(&Message::Output(output));
    assert_eq!(script.answer(*id, Reply::Exited(Exit::Code(0))), []);
    assert_eq!(script.host.phase(), Phase::Done);
    assert_eq!(script.host.findings(), 0);
    let events = script.host.take_events();
    assert!(
        events
            .iter()
            .any(|e| matches!(&e.what, What::Line { unit, text, .. } if unit == "alive" && text == "PONG"))
    );
    assert!(events.is_sorted_by_key(|e| e.vtime_ns) || events.iter().any(|e| e.vtime_ns == 100));
}

#[test]
fn failures_are_findings() {
    let mut script = Script::new();
    script.up();
    assert_eq!(script.driver_exits(Exit::Code(3)), [], "a driver that failed is not started again");
    script.say(&Message::Exited(Exited {
        service: "server".to_owned(),
        exit: Exit::Signal(11),
        restarting: false,
    }));
    script.say(&Message::Error { message: "eth0: gone".to_owned() });
    script.host.end(100);
    let check = script.requests();
    script.answer(check[0].id, Reply::Exited(Exit::Code(1)));
    assert_eq!(script.host.phase(), Phase::Done);
    let found: Vec<String> = script
        .host
        .take_events()
        .into_iter()
        .filter_map(|e| if let What::Finding { text } = e.what { Some(text) } else { None })
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

#[test]
fn a_setup_that_fails_breaks_the_conversation() {
    let mut script = Script::new();
    let setup = script.hello();
    script.answer(setup[0].id, Reply::Error { message: "no disk".to_owned() });
    assert_eq!(script.host.phase(), Phase::Broken);
    let mut script = Script::new();
    script.say(&Message::Hello(Hello { version: 999, release: String::new() }));
    assert_eq!(script.host.phase(), Phase::Broken);
}

#[test]
fn the_end_before_ready_is_a_finding() {
    let mut script = Script::new();
    script.host.end(5);
    assert_eq!((script.host.phase(), script.host.findings()), (Phase::Done, 1));
    let mut script = Script::new();
    script.hello();
    script.host.end(5);
    assert_eq!((script.host.phase(), script.host.findings()), (Phase::Done, 1));
}

#[test]
fn lines_of_the_log_port_arrive_in_pieces() {
    let mut host = Conversation::new(plan());
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

proptest::proptest! {
    #[test]
    fn garbage_is_a_finding_and_no_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let mut script = Script::new();
        script.up();
        script.host.take_events();
        script.host.received(Port::Control, &bytes, 7);
        script.host.received(Port::Log, &bytes, 8);
        script.host.received(Port::Control, b"\n", 9);
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()).count();
        proptest::prop_assert!(lines == 0 || script.host.findings() > 0);
    }

    /// An agent that answers any number with anything.
    #[test]
    fn any_answer_is_survived(answers in proptest::collection::vec((0u64..12, 0..4), 0..40)) {
        let mut script = Script::new();
        script.up();
        for (id, kind) in answers {
            let reply = match kind {
                0 => Reply::Done,
                1 => Reply::Exited(Exit::Code(0)),
                2 => Reply::Packed { bytes: 1, entries: 1 },
                _ => Reply::Error { message: "no".to_owned() },
            };
            script.answer(id, reply);
        }
        script.host.end(1000);
    }
}

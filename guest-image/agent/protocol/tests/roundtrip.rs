//! Tests that encoding and decoding preserve every value, and that no input makes a decoder panic.

use everett_protocol::limits::{
    CONTROL_LINE_BYTES_MAX, EXEC_TEXT_BYTES_MAX, LISTED_BYTES_MAX, LISTED_NAMES_MAX, LOG_TEXT_BYTES_MAX,
    PRIORITY_MAX, PUT_FILE_BYTES_MAX,
};
use everett_protocol::{
    Bytes, Error, Exec, ExecOutput, Exit, Exited, Hello, Join, LineSplitter, LineText, Message, Mount,
    Operation, Output, PartialLine, PutFile, Readiness, ReadyCheck, Reply, Request, Response, Restart, Root,
    Service, Stream, Unit, WallClock, decode_message, decode_output, decode_request, encode_message,
    encode_output, encode_request,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9_.@-]{1,64}"
}

fn argument() -> impl Strategy<Value = String> {
    // Any character except the zero byte, including newlines and quotes.
    "[^\\x00]{1,40}"
}

fn file_name() -> impl Strategy<Value = String> {
    "[^/\\x00]{1,40}".prop_filter("folders", |name| name != "." && name != "..")
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![name().prop_map(Unit::Service), any::<u64>().prop_map(Unit::Exec)]
}

fn output() -> impl Strategy<Value = Output> {
    let bytes =
        prop_oneof![prop::collection::vec(any::<u8>(), 0..200), any::<String>().prop_map(String::into_bytes)];
    (unit(), any::<bool>(), bytes, any::<bool>(), any::<bool>()).prop_map(
        |(unit, stdout, bytes, truncated, unfinished)| Output {
            unit,
            stream: if stdout { Stream::Stdout } else { Stream::Stderr },
            text: LineText::from(bytes),
            truncated,
            unfinished,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let reply = prop_oneof![
        Just(Reply::Done),
        exit().prop_map(Reply::Exited),
        any::<(u64, u64)>().prop_map(|(bytes, entries)| Reply::Packed { bytes, entries }),
        prop::collection::btree_set(file_name(), 0..9)
            .prop_map(|names| Reply::Names(names.into_iter().collect())),
        any::<String>().prop_map(|message| Reply::Damaged { message }),
        any::<String>().prop_map(|message| Reply::Error { message }),
    ];
    prop_oneof![
        (any::<u32>(), any::<String>())
            .prop_map(|(version, release)| Message::Hello(Hello { version, release })),
        Just(Message::Ready),
        (any::<u64>(), reply).prop_map(|(id, reply)| Message::Response(Response { id, reply })),
        output().prop_map(Message::Output),
        (name(), exit(), any::<bool>()).prop_map(|(service, exit, restarting)| Message::Exited(Exited {
            service,
            exit,
            restarting
        })),
        (name(), any::<String>()).prop_map(|(service, why)| Message::NotReady { service, why }),
        any::<String>().prop_map(|message| Message::Error { message }),
    ]
}

fn service() -> impl Strategy<Value = Service> {
    let ready = prop_oneof![
        Just(None),
        (1..=u16::MAX, any::<String>(), any::<String>()).prop_map(|(port, send, expect)| {
            Some(ReadyCheck::Tcp { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port, send, expect })
        }),
        prop::collection::vec(argument(), 1..4).prop_map(|argv| Some(ReadyCheck::Command { argv })),
    ];
    let restart = prop_oneof![
        Just(Restart::Never),
        (0..1000u64).prop_map(|delay_ms| Restart::OnFailure { delay_ms }),
        (0..1000u64).prop_map(|delay_ms| Restart::Always { delay_ms }),
    ];
    (
        name(),
        prop::collection::vec(argument(), 1..5),
        prop::collection::btree_map("[A-Z]{1,8}", argument(), 0..4),
        prop::option::of("(/[a-z]{1,8}){1,3}"),
        prop::option::of(name()),
        ready,
        restart,
        any::<bool>(),
    )
        .prop_map(|(name, argv, env, cwd, user, check, restart, history)| Service {
            name,
            argv,
            env,
            cwd,
            user,
            ready: check.map(|check| Readiness { check, interval_ms: 5, limit_ms: 1000 }),
            restart,
            history,
        })
}

fn operation() -> impl Strategy<Value = Operation> {
    let clock = (0..i64::MAX, 0..1_000_000_000u32)
        .prop_map(|(seconds, nanoseconds)| WallClock { seconds, nanoseconds });
    let put =
        (any::<bool>(), prop::collection::vec(any::<u8>(), 0..100)).prop_map(|(append, data)| PutFile {
            path: String::from("/etc/file"),
            mode: 0o640,
            owner: Some(String::from("redis:redis")),
            append,
            data: Bytes(data),
        });
    let exec = (prop::collection::vec(argument(), 1..5), prop::option::of(any::<String>()), any::<bool>())
        .prop_map(|(argv, stdin, history)| Exec {
            argv,
            env: [(String::from("A"), String::from("b"))].into(),
            cwd: None,
            user: None,
            stdin,
            output: ExecOutput::Log,
            limit_ms: Some(7),
            history,
        });
    prop_oneof![
        Just(Operation::Ping),
        Just(Operation::PowerOff),
        clock.prop_map(Operation::SetClock),
        (name(), prop::collection::vec(0..=PRIORITY_MAX, 1..9))
            .prop_map(|(service, priorities)| Operation::Prioritize { service, priorities }),
        put.prop_map(Operation::PutFile),
        "(/[a-z]{1,8}){1,3}".prop_map(|path| Operation::List { path }),
        exec.prop_map(Operation::Exec),
        service().prop_map(|service| Operation::Start { services: vec![service] }),
        name()
            .prop_filter("no @ in host names", |name| !name.contains('@'))
            .prop_map(mount)
            .prop_map(Operation::Mount),
        entropy().prop_map(|entropy| Operation::Join(Box::new(join(entropy)))),
        entropy().prop_map(|entropy| Operation::Reseed { entropy: Bytes(entropy) }),
    ]
}

fn entropy() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 32..=512)
}

fn mount(hostname: String) -> Mount {
    Mount { root: Root::None, hostname }
}

fn join(entropy: Vec<u8>) -> Join {
    Join {
        entropy: Bytes(entropy),
        clock: WallClock { seconds: 0, nanoseconds: 0 },
        disks: vec![],
        hosts: vec![],
        nameservers: vec![],
        interfaces: vec![],
    }
}

proptest! {
    #[test]
    fn requests_survive(id: u64, op in operation()) {
        let request = Request { id, op };
        let line = encode_request(&request).unwrap();
        prop_assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        prop_assert_eq!(decode_request(&line[..line.len() - 1]).unwrap(), request);
    }

    #[test]
    fn messages_survive(message in message()) {
        let line = encode_message(&message).unwrap();
        prop_assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        prop_assert_eq!(decode_message(&line[..line.len() - 1]).unwrap(), message);
    }

    #[test]
    fn log_lines_survive(output in output()) {
        let line = encode_output(&output).unwrap();
        prop_assert_eq!(decode_output(&line[..line.len() - 1]).unwrap(), output);
    }

    #[test]
    fn garbage_is_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode_request(&bytes).is_err());
        prop_assert!(decode_output(&bytes).is_err());
        prop_assert!(decode_message(&bytes).is_err());
    }

    #[test]
    fn a_damaged_request_is_refused_or_still_allowed(
        op in operation(), at in any::<prop::sample::Index>(), byte: u8,
    ) {
        let mut line = encode_request(&Request { id: 1, op }).unwrap();
        line.pop();
        let at = at.index(line.len());
        line[at] = byte;
        if let Ok(request) = decode_request(&line) {
            // The encoder's check accepts every request that the decoder accepts.
            prop_assert!(encode_request(&request).is_ok());
        }
    }

    /// A [`PartialLine`] is the complete state of a splitter between two writes. This test restores a new splitter
    /// after each write, and expects the same lines as from one splitter. The stream includes lines that are too long.
    #[test]
    fn a_splitter_goes_on_from_what_it_kept(
        lengths in prop::collection::vec(
            prop_oneof![0..50usize, CONTROL_LINE_BYTES_MAX - 1..CONTROL_LINE_BYTES_MAX + 3], 0..6),
        cut in prop_oneof![1..100usize, 300_000..2_000_000usize],
    ) {
        let stream: Vec<u8> =
            lengths.iter().flat_map(|&length| [vec![b'x'; length], vec![b'\n']].concat()).collect();
        // A million one-byte writes would take minutes. So a long stream gets larger chunks.
        let cut = if stream.len() > 10_000 { cut.max(100_000) } else { cut };
        let mut whole = LineSplitter::control();
        let mut resumed = LineSplitter::control();
        for chunk in stream.chunks(cut) {
            whole.push(chunk);
            let mut next = LineSplitter::control();
            next.restore(resumed.partial()).unwrap();
            resumed = next;
            resumed.push(chunk);
            loop {
                let next = |lines: &mut LineSplitter| {
                    lines.next_line().map(|line| line.map_err(|error| error.to_string()))
                };
                let (a, b) = (next(&mut whole), next(&mut resumed));
                prop_assert!(a == b, "they differ after {} bytes", chunk.len());
                if a.is_none() {
                    break;
                }
            }
        }
        prop_assert_eq!(whole.partial(), resumed.partial());
    }

    #[test]
    fn lines_do_not_depend_on_how_bytes_arrive(
        lines in prop::collection::vec("[a-z]{1,30}", 0..20), cut in 1usize..40,
    ) {
        let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut splitter = LineSplitter::control();
        let mut seen = Vec::new();
        for chunk in stream.as_bytes().chunks(cut) {
            splitter.push(chunk);
            while let Some(line) = splitter.next_line() {
                seen.push(String::from_utf8(line.unwrap()).unwrap());
            }
        }
        prop_assert_eq!(seen, lines);
    }
}

#[test]
fn the_longest_allowed_texts_fit_their_ports_however_json_writes_them() {
    for byte in [0x01, 0xff, b'"', b'a'] {
        let of = |length: usize| Output {
            unit: Unit::Exec(u64::MAX),
            stream: Stream::Stdout,
            text: LineText::from(vec![byte; length]),
            truncated: true,
            unfinished: true,
        };
        encode_message(&Message::Output(of(EXEC_TEXT_BYTES_MAX))).unwrap();
        encode_output(&of(LOG_TEXT_BYTES_MAX)).unwrap();
    }
    let put = PutFile {
        path: format!("/{}", "a".repeat(4000)),
        mode: 0o644,
        owner: None,
        append: false,
        data: Bytes(vec![0xff; PUT_FILE_BYTES_MAX]),
    };
    encode_request(&Request { id: u64::MAX, op: Operation::PutFile(put) }).unwrap();
    // As many names as allowed, with the maximum total length, made of the byte with the longest JSON escape.
    let names = (0..LISTED_NAMES_MAX)
        .map(|i| format!("{i:04}{}", "\u{1}".repeat(LISTED_BYTES_MAX / LISTED_NAMES_MAX - 4)));
    let reply = Reply::Names(names.collect());
    encode_message(&Message::Response(Response { id: u64::MAX, reply })).unwrap();
}

#[test]
fn names_that_no_folder_has_are_refused_at_both_ends() {
    let message = |names: &[&str]| {
        let reply = Reply::Names(names.iter().map(ToString::to_string).collect());
        Message::Response(Response { id: 1, reply })
    };
    let refused = |names: &[&str]| {
        let error = encode_message(&message(names)).unwrap_err().to_string();
        let line = serde_json::to_vec(&message(names)).unwrap();
        assert_eq!(decode_message(&line).unwrap_err().to_string(), error);
        error
    };
    assert!(encode_message(&message(&["a", "b c", "..."])).is_err(), "not in order");
    assert!(encode_message(&message(&["...", "a", "b c"])).is_ok());
    assert_eq!(refused(&["b", "a"]), "names: not each once and in order");
    assert_eq!(refused(&["a", "a"]), "names: not each once and in order");
    for name in ["", ".", "..", "/bin/sh", "a\0"] {
        assert_eq!(refused(&[name]), format!("names[0]: {name:?} is no file's name"));
    }
    let many: Vec<String> = (0..=LISTED_NAMES_MAX).map(|i| format!("{i:05}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(refused(&many), "names: 4097 entries; at most 4096");
    let long = "x".repeat(LISTED_BYTES_MAX + 1);
    assert_eq!(refused(&[&long]), "names: 131073 bytes; at most 131072");
}

#[test]
fn what_has_no_history_port_does_not_say_so() {
    let line = |history| {
        let exec = Exec { history, ..Exec::new(vec![String::from("a")]) };
        String::from_utf8(encode_request(&Request { id: 1, op: Operation::Exec(exec) }).unwrap()).unwrap()
    };
    assert!(line(true).contains("\"history\":true"));
    assert!(!line(false).contains("history"));
}

#[test]
fn a_line_that_is_too_long_is_reported_once_and_the_next_is_read() {
    let mut splitter = LineSplitter::control();
    let mut errors = 0;
    for _ in 0..3 {
        splitter.push(&vec![b'x'; CONTROL_LINE_BYTES_MAX]);
        while let Some(line) = splitter.next_line() {
            assert!(matches!(line, Err(Error::TooLong { .. })));
            errors += 1;
        }
    }
    splitter.push(b"x\n\n{}\nrest");
    let next = splitter.next_line().unwrap().unwrap();
    assert_eq!((errors, next.as_slice()), (1, b"{}".as_slice()));
    assert!(splitter.next_line().is_none());
}

#[test]
fn what_is_not_allowed_is_refused_by_field() {
    let refused = |op: Operation| encode_request(&Request { id: 1, op }).unwrap_err().to_string();
    let exec = |argv: &[&str]| {
        let argv = argv.iter().map(ToString::to_string).collect();
        Operation::Exec(Exec::new(argv))
    };
    assert_eq!(refused(exec(&[])), "argv: no program");
    assert_eq!(refused(exec(&["a", "b\0"])), "argv[1]: has a zero byte");
    let priorities = |priorities: Vec<u8>| Operation::Prioritize { service: String::from("a"), priorities };
    assert_eq!(refused(priorities(vec![])), "priorities: 0 of them; 1 to 256");
    assert_eq!(refused(priorities(vec![1, 99])), "priorities: 99; at most 98");
    let signal = Operation::Signal { service: String::from("a"), signal: 65 };
    assert_eq!(refused(signal), "signal: 65 is not 1 to 64");
    let bad = mount(String::from("a b"));
    assert_eq!(refused(Operation::Mount(bad)), "hostname: \"a b\" is no host name");
    let mut bad = join(vec![0; 32]);
    bad.clock.nanoseconds = 1_000_000_000;
    assert!(refused(Operation::Join(Box::new(bad))).starts_with("clock: "));
    for bytes in [0, 31, 513] {
        let problem = format!("entropy: {bytes} bytes; 32 to 512 are allowed");
        assert_eq!(refused(Operation::Reseed { entropy: Bytes(vec![1; bytes]) }), problem);
        assert_eq!(refused(Operation::Join(Box::new(join(vec![1; bytes])))), problem);
    }
    let put = |path: &str| {
        let (path, data) = (String::from(path), Bytes(vec![]));
        Operation::PutFile(PutFile { path, mode: 0o644, owner: None, append: false, data })
    };
    assert_eq!(refused(put("etc/x")), "path: \"etc/x\" is not absolute");
    assert_eq!(refused(put("/a/../b")), "path: \"/a/../b\" has a `..`");
    let list = |path: &str| Operation::List { path: String::from(path) };
    assert_eq!(refused(list("opt")), "path: \"opt\" is not absolute");
    assert_eq!(refused(list("/opt/\0")), "path: has a zero byte");
    assert_eq!(refused(list(&format!("/{}", "a".repeat(4095)))), "path: longer than 4095 bytes");
}

#[test]
fn an_unknown_key_is_an_error_that_shows_the_line() {
    let error = decode_request(br#"{"id":1,"op":"ping","extra":2}"#).unwrap_err().to_string();
    assert!(error.contains("unknown field `extra`") && error.contains("everett.control"), "{error}");
}

#[test]
fn what_no_splitter_keeps_is_refused() {
    let refused =
        |bytes: Vec<u8>, skipping| LineSplitter::control().restore(PartialLine { bytes, skipping }).is_err();
    assert!(refused(b"a\n".to_vec(), false));
    assert!(refused(b"a".to_vec(), true));
    assert!(refused(vec![b'a'; CONTROL_LINE_BYTES_MAX + 1], false));
    assert!(!refused(vec![b'a'; CONTROL_LINE_BYTES_MAX], false));
    assert!(!refused(Vec::new(), true));
}

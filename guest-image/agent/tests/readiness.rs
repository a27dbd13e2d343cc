//! Tests of the agent's readiness probes against servers in this process.

#![allow(dead_code, reason = "only the agent uses the other items")]

#[path = "../src/clock.rs"]
mod clock;
#[path = "../src/failure.rs"]
mod failure;
#[path = "../src/readiness.rs"]
mod readiness;
#[path = "../src/spawn.rs"]
mod spawn;
#[path = "../src/users.rs"]
mod users;

use everett_protocol::{Readiness, ReadyCheck, Restart, Service};
use readiness::Probe;
use rustix::event::{PollFd, poll};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const MS: u64 = 1_000_000;

fn service() -> Service {
    Service {
        name: "s".to_owned(),
        argv: vec!["s".to_owned()],
        env: BTreeMap::new(),
        cwd: None,
        user: None,
        ready: None,
        restart: Restart::Never,
        history: false,
    }
}

/// Creates a probe of a server in this process, starting at time 0. The tests supply the time.
fn probe(server: &TcpListener, send: &str, expect: &str) -> Probe {
    let (send, expect) = (send.to_owned(), expect.to_owned());
    let port = server.local_addr().unwrap().port();
    let check = ReadyCheck::Tcp { address: LOCALHOST, port, send, expect };
    Probe::new(Readiness { check, interval_ms: 20, limit_ms: 60_000 }, 0)
}

/// Waits for the event that the probe awaits, and lets the probe handle it. Returns true if the service is ready.
fn go_on(probe: &mut Probe, now_ns: u64) -> bool {
    let (socket, awaited) = probe.socket().expect("the probe waits for a socket");
    poll(&mut [PollFd::new(socket, awaited)], None).unwrap();
    probe.go_on(now_ns)
}

/// Lets a probe connect and send its text. Returns `bytes` bytes of the text, and the server's end of the connection.
/// The probe then waits for an answer.
fn ask(probe: &mut Probe, server: &TcpListener, now_ns: u64, bytes: usize) -> (String, TcpStream) {
    assert!(!probe.tick(&service(), now_ns).unwrap());
    assert!(!go_on(probe, now_ns), "a connection is not enough");
    let (mut stream, _) = server.accept().unwrap();
    let mut said = vec![0; bytes];
    stream.read_exact(&mut said).unwrap();
    (String::from_utf8(said).unwrap(), stream)
}

#[test]
fn a_connection_is_enough_when_no_answer_is_expected() {
    let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut probe = probe(&server, "", "");
    assert!(probe.tick(&service(), 0).unwrap() || go_on(&mut probe, 0));
}

#[test]
fn a_server_that_has_opened_its_port_is_not_ready_before_it_answers() {
    let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut probe = probe(&server, "PING\r\n", "+PONG");
    let (said, mut stream) = ask(&mut probe, &server, 0, 6);
    assert_eq!(said, "PING\r\n");
    // The answer arrives in two pieces, after another line.
    stream.write_all(b"-LOADING\r\n+PO").unwrap();
    assert!(!go_on(&mut probe, MS));
    stream.write_all(b"NG\r\n").unwrap();
    assert!(go_on(&mut probe, 2 * MS));
}

#[test]
fn a_silent_service_is_asked_again_with_longer_waits() {
    let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut probe = probe(&server, "x", "y");
    let mut now_ns = 0;
    let mut waits = Vec::new();
    for _ in 0..4 {
        let (_, _stream) = ask(&mut probe, &server, now_ns, 1);
        let until_ns = probe.wake_ns();
        waits.push((until_ns - now_ns) / MS);
        assert!(!probe.tick(&service(), until_ns).unwrap());
        assert!(probe.socket().is_none(), "the connection is closed");
        now_ns = probe.wake_ns();
        assert_eq!(now_ns, until_ns + 20 * MS, "the probe pauses between attempts");
    }
    assert_eq!(waits, [250, 500, 1000, 2000]);
}

#[test]
fn a_silent_service_is_asked_several_times_before_its_limit() {
    let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut probe = probe(&server, "x", "y");
    let mut now_ns = 0;
    let mut waits = Vec::new();
    let mut streams = Vec::new();
    for _ in 0..9 {
        let (_, stream) = ask(&mut probe, &server, now_ns, 1);
        streams.push(stream);
        let until_ns = probe.wake_ns();
        waits.push((until_ns - now_ns) / MS);
        assert!(!probe.tick(&service(), until_ns).unwrap());
        assert!(probe.socket().is_none(), "the connection is closed: {waits:?}");
        now_ns = probe.wake_ns();
    }
    // The time limit is one minute. On one connection, the probe waits for at most an eighth of the limit.
    assert_eq!(waits[5..], [7500; 4]);
}

#[test]
fn a_service_with_another_answer_is_asked_again_soon_without_longer_waits() {
    let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut probe = probe(&server, "PING\r\n", "+PONG");
    let mut now_ns = 0;
    // The first three connections get no answer, so the next connections wait for up to two seconds.
    let mut silent = Vec::new();
    for _ in 0..3 {
        let (_, stream) = ask(&mut probe, &server, now_ns, 6);
        silent.push(stream);
        now_ns = probe.wake_ns();
        assert!(!probe.tick(&service(), now_ns).unwrap());
        now_ns = probe.wake_ns();
    }
    for _ in 0..20 {
        let (_, mut stream) = ask(&mut probe, &server, now_ns, 6);
        assert_eq!(probe.wake_ns(), now_ns + 2000 * MS);
        // The service answers and keeps the connection open, like Redis while it loads its data.
        stream.write_all(b"-LOADING\r\n").unwrap();
        now_ns += 10 * MS;
        assert!(!go_on(&mut probe, now_ns));
        assert_eq!(probe.wake_ns(), now_ns + 250 * MS);
        now_ns = probe.wake_ns();
        assert!(!probe.tick(&service(), now_ns).unwrap());
        now_ns = probe.wake_ns();
    }
    let (_, mut stream) = ask(&mut probe, &server, now_ns, 6);
    stream.write_all(b"+PONG\r\n").unwrap();
    assert!(go_on(&mut probe, now_ns));
}

#[test]
fn a_service_that_hangs_up_is_asked_again_without_longer_waits() {
    let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut probe = probe(&server, "x", "y");
    let mut now_ns = 0;
    for _ in 0..20 {
        // The server closes each connection at once, like a proxy that cannot reach its backend.
        let (_, stream) = ask(&mut probe, &server, now_ns, 1);
        assert_eq!(probe.wake_ns(), now_ns + 250 * MS);
        drop(stream);
        assert!(!go_on(&mut probe, now_ns + MS));
        now_ns = probe.wake_ns();
    }
}

#[test]
fn a_service_that_hangs_up_or_says_too_much_is_asked_again() {
    let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let mut probe = probe(&server, "x", "y");
    let (_, stream) = ask(&mut probe, &server, 0, 1);
    drop(stream);
    assert!(!go_on(&mut probe, MS));
    assert_eq!(probe.wake_ns(), 21 * MS);
    let (_, mut stream) = ask(&mut probe, &server, 21 * MS, 1);
    let writer = std::thread::spawn(move || stream.write_all(&vec![b'z'; 1 << 20]));
    while probe.socket().is_some() {
        assert!(!go_on(&mut probe, 22 * MS));
    }
    // The probe has closed its end of the connection. So the server's write ends, with or without an error.
    let _ = writer.join().unwrap();
    assert_eq!(probe.wake_ns(), 42 * MS);
}

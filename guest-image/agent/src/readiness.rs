//! Readiness probes of services.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use everett_protocol::{Exit, Readiness, ReadyCheck, Service};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::Pid;

use crate::clock::ms;
use crate::failure::{Context as _, Failure};
use crate::spawn::{Program, start};

/// Time that the first connection waits for its answer, in milliseconds of guest time. If no byte arrives in this time,
/// the next connection waits twice as long: the service may have dropped input that came too early, or may be slow. A
/// connection that has received something, but not the expected text, waits at most this long for more.
const ANSWER_MS: u64 = 250;
/// Divisor of the time limit: a connection waits at most the limit divided by this number, or [`ANSWER_MS`] if that is
/// longer, so that several silent connections fit within the limit.
const PATIENCE_PARTS: u64 = 8;
/// Length of an answer, in bytes, beyond which the attempt ends unless the expected text was found.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes read from the socket at once.
const READ_BYTES: usize = 4 << 10;

/// Probe of a service that is not known to be ready yet.
pub(crate) struct Probe {
    readiness: Readiness,
    /// End of the time limit (`CLOCK_MONOTONIC`, ns).
    pub(crate) deadline_ns: u64,
    attempt: Attempt,
    /// Time that the next connection waits for its answer, in nanoseconds.
    patience_ns: u64,
    /// Upper bound of `patience_ns`.
    patience_ns_max: u64,
}

enum Attempt {
    /// Waiting until `until_ns`, when the next attempt is made.
    Pause { until_ns: u64 },
    /// Connecting; the socket becomes writable when the connection succeeds or fails.
    Connecting(OwnedFd),
    /// Connected; the expected text has not arrived yet.
    Talking(Talk),
    /// Running the command with this process ID.
    Command(Pid),
}

/// A connection to a service that must answer.
struct Talk {
    socket: OwnedFd,
    /// Number of bytes sent.
    sent: usize,
    heard: Vec<u8>,
    until_ns: u64,
}

/// State of a connection's answer.
enum Heard {
    /// The expected text has arrived.
    Expected,
    /// The answer is incomplete.
    Waits,
    /// The connection has failed or ended, or the answer is too long; the expected text will not come.
    Nothing,
}

impl Talk {
    /// Sends and receives until the socket would block or the outcome is known.
    fn go_on(&mut self, send: &[u8], expect: &[u8]) -> Heard {
        while let Some(rest) = send.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(length) => self.sent += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Heard::Waits,
                Err(_) => return Heard::Nothing,
            }
        }
        let mut buffer = [0u8; READ_BYTES];
        loop {
            match rustix::net::recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Heard::Nothing,
                Ok((length, _)) => self.heard.extend_from_slice(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Heard::Waits,
                Err(_) => return Heard::Nothing,
            }
            if self.heard.windows(expect.len()).any(|window| window == expect) {
                return Heard::Expected;
            }
            if self.heard.len() > ANSWER_BYTES_MAX {
                return Heard::Nothing;
            }
        }
    }
}

impl Probe {
    /// Starts probing; the first attempt is made at the next tick.
    pub(crate) fn new(readiness: Readiness, now_ns: u64) -> Self {
        let deadline_ns = now_ns + ms(readiness.limit_ms);
        let attempt = Attempt::Pause { until_ns: now_ns };
        let patience_ns = ms(ANSWER_MS);
        let patience_ns_max = patience_ns.max(ms(readiness.limit_ms) / PATIENCE_PARTS);
        Probe { readiness, deadline_ns, attempt, patience_ns, patience_ns_max }
    }

    /// Returns the time of the next timer (`CLOCK_MONOTONIC`, ns).
    pub(crate) fn wake_ns(&self) -> u64 {
        match &self.attempt {
            Attempt::Pause { until_ns } => self.deadline_ns.min(*until_ns),
            Attempt::Talking(talk) => self.deadline_ns.min(talk.until_ns),
            Attempt::Connecting(_) | Attempt::Command(_) => self.deadline_ns,
        }
    }

    /// Returns the socket that the attempt waits for, and the awaited events.
    pub(crate) fn socket(&self) -> Option<(&OwnedFd, PollFlags)> {
        match &self.attempt {
            Attempt::Connecting(socket) => Some((socket, PollFlags::OUT)),
            Attempt::Talking(talk) => {
                let all = talk.sent >= self.said().0.len();
                Some((&talk.socket, if all { PollFlags::IN } else { PollFlags::OUT }))
            }
            _ => None,
        }
    }

    /// Returns the text to send and the text that the answer must contain.
    fn said(&self) -> (&[u8], &[u8]) {
        match &self.readiness.check {
            ReadyCheck::Tcp { send, expect, .. } => (send.as_bytes(), expect.as_bytes()),
            ReadyCheck::Command { .. } => (&[], &[]),
        }
    }

    /// Returns the process whose exit decides the attempt.
    pub(crate) fn pid(&self) -> Option<Pid> {
        match self.attempt {
            Attempt::Command(pid) => Some(pid),
            _ => None,
        }
    }

    /// Makes an attempt if it is due. Ends a connection whose answer is overdue. Returns true if the service is ready.
    pub(crate) fn tick(&mut self, service: &Service, now_ns: u64) -> Result<bool, Failure> {
        if let Attempt::Talking(talk) = &self.attempt
            && talk.until_ns <= now_ns
        {
            if talk.heard.is_empty() {
                self.patience_ns = self.patience_ns.saturating_mul(2).min(self.patience_ns_max);
            }
            self.pause(now_ns);
        }
        if !matches!(self.attempt, Attempt::Pause { until_ns } if until_ns <= now_ns) {
            return Ok(false);
        }
        self.pause(now_ns);
        match &self.readiness.check {
            ReadyCheck::Tcp { address, port, .. } => {
                let to = SocketAddr::new(*address, *port);
                let socket = socket(to.ip()).context(|| format!("probe {}", service.name))?;
                match rustix::net::connect(&socket, &to) {
                    Ok(()) => return Ok(self.connected(socket, now_ns)),
                    Err(Errno::INPROGRESS) => self.attempt = Attempt::Connecting(socket),
                    Err(_) => {}
                }
            }
            ReadyCheck::Command { argv } => {
                let started = start(&Program {
                    argv,
                    env: &service.env,
                    cwd: service.cwd.as_deref(),
                    user: service.user.as_deref(),
                    stdin: false,
                    output: false,
                    history: None,
                })?;
                self.attempt = Attempt::Command(started.pid);
            }
        }
        Ok(false)
    }

    /// Handles an event on the socket. Returns true if the service is ready.
    pub(crate) fn go_on(&mut self, now_ns: u64) -> bool {
        let pause = Attempt::Pause { until_ns: now_ns + ms(self.readiness.interval_ms) };
        match std::mem::replace(&mut self.attempt, pause) {
            Attempt::Connecting(socket) => {
                matches!(rustix::net::sockopt::socket_error(&socket), Ok(Ok(())))
                    && self.connected(socket, now_ns)
            }
            Attempt::Talking(talk) => self.talk(talk, now_ns),
            attempt => {
                self.attempt = attempt;
                false
            }
        }
    }

    /// Handles an established connection. Returns true if the service is ready.
    fn connected(&mut self, socket: OwnedFd, now_ns: u64) -> bool {
        if self.said().1.is_empty() {
            return true;
        }
        let until_ns = now_ns.saturating_add(self.patience_ns);
        self.talk(Talk { socket, sent: 0, heard: Vec::new(), until_ns }, now_ns)
    }

    /// Sends and receives on a connection. Returns true if the expected answer has arrived.
    fn talk(&mut self, mut talk: Talk, now_ns: u64) -> bool {
        let (send, expect) = self.said();
        let before = talk.heard.len();
        match talk.go_on(send, expect) {
            Heard::Expected => true,
            Heard::Waits => {
                // The service answers, so a long wait for the rest of its answer is not worthwhile.
                if talk.heard.len() > before {
                    talk.until_ns = talk.until_ns.min(now_ns.saturating_add(ms(ANSWER_MS)));
                }
                self.attempt = Attempt::Talking(talk);
                false
            }
            // The next attempt comes after the pause.
            Heard::Nothing => false,
        }
    }

    /// Handles the exit of the command. Returns true if the service is ready.
    pub(crate) fn exited(&mut self, exit: Exit, now_ns: u64) -> bool {
        self.pause(now_ns);
        exit.success()
    }

    fn pause(&mut self, now_ns: u64) {
        self.attempt = Attempt::Pause { until_ns: now_ns + ms(self.readiness.interval_ms) };
    }
}

fn socket(address: IpAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

//! Readiness probes, which find out when a started service is ready.

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

/// Time that the first connection waits for its answer, in milliseconds of guest time. If no byte arrives, the
/// service may have dropped input that came too early, or may be slow. So the next connection waits twice as long. If
/// a part of the answer arrives, the connection waits at most this long for more.
const ANSWER_MS: u64 = 250;
/// Divisor of the time limit. A connection waits at most the limit divided by this number, or [`ANSWER_MS`] if that is
/// longer. So several silent connections fit within the limit.
const PATIENCE_PARTS: u64 = 8;
/// Maximum length of an answer, in bytes. If a longer answer does not contain the expected text, the attempt ends.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes that one read takes from the socket.
const READ_BYTES: usize = 4 << 10;

/// Probe that repeats the readiness check of a service until the service is ready.
pub(crate) struct Probe {
    readiness: Readiness,
    /// End of the time limit for the whole probe (`CLOCK_MONOTONIC`, ns).
    pub(crate) deadline_ns: u64,
    attempt: Attempt,
    /// Time that the next connection will wait for its answer, in nanoseconds.
    patience_ns: u64,
    /// Upper bound of `patience_ns`.
    patience_ns_max: u64,
}

enum Attempt {
    /// The probe waits until `until_ns` (`CLOCK_MONOTONIC`) before the next attempt.
    Pause { until_ns: u64 },
    /// The socket is connecting. It becomes writable when the connection has succeeded or failed.
    Connecting(OwnedFd),
    /// The socket is connected, and the expected text has not arrived yet.
    Talking(Talk),
    /// The readiness command runs with this process ID.
    Command(Pid),
}

/// Connection on which the probe sends its text and waits for the expected text.
struct Talk {
    socket: OwnedFd,
    /// Number of bytes of the text that are sent.
    sent: usize,
    heard: Vec<u8>,
    until_ns: u64,
}

/// Progress of the answer on a connection.
enum Heard {
    /// The expected text has arrived.
    Expected,
    /// The answer is incomplete, and the connection is open.
    Waits,
    /// The expected text will not come: the connection has failed or ended, or the answer is too long.
    Nothing,
}

impl Talk {
    /// Sends and receives until the socket would block or the result is known.
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
    /// Creates a probe. Its first attempt follows at the next [`Probe::tick`].
    pub(crate) fn new(readiness: Readiness, now_ns: u64) -> Self {
        let deadline_ns = now_ns + ms(readiness.limit_ms);
        let attempt = Attempt::Pause { until_ns: now_ns };
        let patience_ns = ms(ANSWER_MS);
        let patience_ns_max = patience_ns.max(ms(readiness.limit_ms) / PATIENCE_PARTS);
        Probe { readiness, deadline_ns, attempt, patience_ns, patience_ns_max }
    }

    /// Returns the time at which [`Probe::tick`] has work (`CLOCK_MONOTONIC`, ns).
    pub(crate) fn wake_ns(&self) -> u64 {
        match &self.attempt {
            Attempt::Pause { until_ns } => self.deadline_ns.min(*until_ns),
            Attempt::Talking(talk) => self.deadline_ns.min(talk.until_ns),
            Attempt::Connecting(_) | Attempt::Command(_) => self.deadline_ns,
        }
    }

    /// Returns the socket of the current attempt, and the events that the attempt waits for.
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

    /// Returns the text to send and the text that the answer must contain. Both are empty for a command.
    fn said(&self) -> (&[u8], &[u8]) {
        match &self.readiness.check {
            ReadyCheck::Tcp { send, expect, .. } => (send.as_bytes(), expect.as_bytes()),
            ReadyCheck::Command { .. } => (&[], &[]),
        }
    }

    /// Returns the running readiness command, if there is one.
    pub(crate) fn pid(&self) -> Option<Pid> {
        match self.attempt {
            Attempt::Command(pid) => Some(pid),
            _ => None,
        }
    }

    /// Ends a connection whose answer is overdue. Starts an attempt that is due. Returns true if the service is ready.
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

    /// Handles an event on the current attempt's socket. Returns true if the service is ready.
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

    /// Continues after the connection has succeeded. Returns true if the service is ready.
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
                // The service has begun to answer, so the rest of the answer should follow soon.
                if talk.heard.len() > before {
                    talk.until_ns = talk.until_ns.min(now_ns.saturating_add(ms(ANSWER_MS)));
                }
                self.attempt = Attempt::Talking(talk);
                false
            }
            // The attempt has failed. The next attempt follows after the pause.
            Heard::Nothing => false,
        }
    }

    /// Handles the exit of the readiness command. Returns true if the service is ready.
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

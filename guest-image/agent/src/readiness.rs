//! Finding out whether a service is ready.

use crate::clock::ms;
use crate::failure::{Context as _, Failure};
use crate::spawn::{Program, start};
use everett_protocol::{Exit, Readiness, ReadyCheck, Service};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Pid;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// A service that is not known to be ready yet.
pub(crate) struct Probe {
    readiness: Readiness,
    /// When it should have been ready, on `CLOCK_MONOTONIC`.
    pub(crate) deadline_ns: u64,
    attempt: Attempt,
}

enum Attempt {
    /// The next one is at this time.
    Pause { until_ns: u64 },
    /// The connection is on its way: the socket becomes writable when it is decided.
    Connecting(OwnedFd),
    /// The command runs.
    Command(Pid),
}

impl Probe {
    /// The first attempt is made at once.
    pub(crate) fn new(readiness: Readiness, now_ns: u64) -> Self {
        let deadline_ns = now_ns + ms(readiness.limit_ms);
        Probe { readiness, deadline_ns, attempt: Attempt::Pause { until_ns: now_ns } }
    }

    /// When something is to be done without any event.
    pub(crate) fn wake_ns(&self) -> u64 {
        match self.attempt {
            Attempt::Pause { until_ns } => until_ns.min(self.deadline_ns),
            Attempt::Connecting(_) | Attempt::Command(_) => self.deadline_ns,
        }
    }

    /// The socket whose becoming writable decides the attempt.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        match &self.attempt {
            Attempt::Connecting(socket) => Some(socket),
            _ => None,
        }
    }

    /// The process whose exit decides the attempt.
    pub(crate) fn pid(&self) -> Option<Pid> {
        match self.attempt {
            Attempt::Command(pid) => Some(pid),
            _ => None,
        }
    }

    /// Makes an attempt if it is time to. True when the service is ready.
    pub(crate) fn tick(&mut self, service: &Service, now_ns: u64) -> Result<bool, Failure> {
        if !matches!(self.attempt, Attempt::Pause { until_ns } if until_ns <= now_ns) {
            return Ok(false);
        }
        self.pause(now_ns);
        match &self.readiness.check {
            ReadyCheck::Tcp { address, port } => {
                let socket = socket(*address).context(|| format!("probe {}", service.name))?;
                match rustix::net::connect(&socket, &SocketAddr::new(*address, *port)) {
                    Ok(()) => return Ok(true),
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

    /// The socket is writable. True when the connection was made.
    pub(crate) fn connected(&mut self, now_ns: u64) -> bool {
        let Attempt::Connecting(socket) = &self.attempt else { return false };
        let made = matches!(rustix::net::sockopt::socket_error(socket), Ok(Ok(())));
        self.pause(now_ns);
        made
    }

    /// The command has exited. True when that means ready.
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

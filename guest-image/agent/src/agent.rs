//! The agent's state and its event loop.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::os::fd::OwnedFd;

use everett_protocol::{ExecOutput, Exit, Hello, LineSplitter, Message, Stream, Unit, VERSION};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, WaitStatus, wait};

use crate::boot::Booted;
use crate::capture::Capture;
use crate::clock::{ms, now_ns, timespec};
use crate::commands::Running;
use crate::failure::{Context as _, Failure};
use crate::ports::Ports;
use crate::services::{State, Watched};
use crate::setup::Stage;
use crate::signals::ChildSignals;
use crate::spawn::Started;

/// Pause in polling the control port after the host has closed the port, in milliseconds of guest time.
const HANGUP_PAUSE_MS: u64 = 100;

/// Maximum number of bytes that one read takes from the control port.
const READ_BYTES: usize = 32 << 10;

/// State of the agent.
pub(crate) struct Agent {
    pub(crate) ports: Ports,
    signals: ChildSignals,
    splitter: LineSplitter,
    /// End of the pause after the host closed the control port (`CLOCK_MONOTONIC`, ns).
    hangup_until_ns: Option<u64>,
    pub(crate) stage: Stage,
    /// Upper folder of the overlay, which holds changes to the root. `None` without an overlay (no root disk).
    pub(crate) upper: Option<OwnedFd>,
    pub(crate) services: BTreeMap<String, Watched>,
    /// Names of the services whose threads have real-time priorities that the host has set.
    pub(crate) prioritized: BTreeSet<String>,
    /// True if [`Message::Ready`] was sent since the last start of services, or if no service was ever started.
    pub(crate) ready_announced: bool,
    pub(crate) commands: BTreeMap<u64, Running>,
    captures: Vec<Capture>,
}

/// Event source behind a descriptor that poll(2) reports.
enum Source {
    Control,
    Signals,
    Capture(usize),
    Stdin(u64),
    Probe(String),
}

impl Agent {
    /// Creates the agent. Sends the hello message and the failures of the boot to the host.
    pub(crate) fn new(booted: Booted, signals: ChildSignals) -> Result<Self, Failure> {
        let Booted { mut ports, release, failures } = booted;
        ports.send(&Message::Hello(Hello { version: VERSION, release }))?;
        let mut agent = Agent {
            ports,
            signals,
            splitter: LineSplitter::control(),
            hangup_until_ns: None,
            stage: Stage::Booted,
            upper: None,
            services: BTreeMap::new(),
            prioritized: BTreeSet::new(),
            ready_announced: true,
            commands: BTreeMap::new(),
            captures: Vec::new(),
        };
        for failure in failures {
            agent.report(&failure)?;
        }
        Ok(agent)
    }

    /// Runs the event loop until power-off.
    pub(crate) fn run(mut self) -> Result<Infallible, Failure> {
        loop {
            self.tick_services()?;
            self.tick_commands();
            for source in self.wait()? {
                match source {
                    Source::Control => self.read_control()?,
                    Source::Signals => self.reap()?,
                    Source::Capture(index) => self.captures[index].forward(&mut self.ports)?,
                    Source::Stdin(id) => {
                        if let Err(failure) = self.feed_command(id) {
                            self.report(&failure)?;
                        }
                    }
                    Source::Probe(name) => self.go_on_probing(&name),
                }
            }
        }
    }

    /// Reports a failure to the host.
    pub(crate) fn report(&mut self, failure: &Failure) -> Result<(), Failure> {
        self.ports.send(&Message::Error { message: failure.to_string() })
    }

    /// Registers a started program's output pipes, so that the event loop forwards their lines.
    pub(crate) fn capture(&mut self, started: Started, unit: &Unit, to: ExecOutput) {
        let pipes = [(started.stdout, Stream::Stdout), (started.stderr, Stream::Stderr)];
        for (pipe, stream) in pipes {
            self.captures.extend(pipe.map(|pipe| Capture::new(pipe, unit.clone(), stream, to)));
        }
    }

    /// Forwards the output that an exited program left in its pipes. Later output of its children goes to the log port.
    pub(crate) fn flush_captures(&mut self, unit: &Unit) -> Result<(), Failure> {
        for capture in self.captures.iter_mut().filter(|capture| capture.unit == *unit) {
            capture.forward_all(&mut self.ports)?;
            capture.outlive();
        }
        Ok(())
    }

    /// Sleeps until an event arrives or a timer expires. Returns the sources that have events.
    fn wait(&mut self) -> Result<Vec<Source>, Failure> {
        let now_ns = now_ns();
        if self.hangup_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.hangup_until_ns = None;
        }
        self.captures.retain(|capture| !capture.closed());

        let mut sources = Vec::new();
        let mut fds = Vec::new();
        let mut watch = |source, fd| {
            sources.push(source);
            fds.push(fd);
        };
        if self.hangup_until_ns.is_none() {
            watch(Source::Control, PollFd::new(&self.ports.control, PollFlags::IN));
        }
        // The pipes precede the signals in `fds`, so the host gets a program's output before the report of its exit.
        for (index, capture) in self.captures.iter().enumerate() {
            watch(Source::Capture(index), PollFd::new(capture, PollFlags::IN));
        }
        for (&id, command) in &self.commands {
            if let Some((pipe, _)) = &command.stdin {
                watch(Source::Stdin(id), PollFd::new(pipe, PollFlags::OUT));
            }
        }
        for (name, watched) in &self.services {
            if let State::Starting(probe) = &watched.state
                && let Some((socket, awaited)) = probe.socket()
            {
                watch(Source::Probe(name.clone()), PollFd::new(socket, awaited));
            }
        }
        watch(Source::Signals, PollFd::new(&self.signals, PollFlags::IN));

        let timeout = self.wake_ns().map(|at_ns| timespec(at_ns.saturating_sub(now_ns)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error).context(|| String::from("wait for something to happen")),
        }
        let happened = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>();
        Ok(sources
            .into_iter()
            .zip(happened)
            .filter_map(|(source, happened)| happened.then_some(source))
            .collect())
    }

    /// Returns the time of the earliest timer (`CLOCK_MONOTONIC`, ns).
    fn wake_ns(&self) -> Option<u64> {
        let services = self.services.values().filter_map(Watched::wake_ns);
        let commands = self.commands.values().filter_map(|command| command.deadline_ns);
        services.chain(commands).chain(self.hangup_until_ns).min()
    }

    fn read_control(&mut self) -> Result<(), Failure> {
        let mut buffer = [0u8; READ_BYTES];
        match rustix::io::read(&self.ports.control, &mut buffer) {
            // The host has closed the port. poll(2) would report it at once again, so the agent pauses.
            Ok(0) => self.hangup_until_ns = Some(now_ns() + ms(HANGUP_PAUSE_MS)),
            Ok(length) => self.splitter.push(&buffer[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error).context(|| String::from("read from the control port")),
        }
        while let Some(line) = self.splitter.next_line() {
            match line {
                Ok(line) => self.serve(&line)?,
                Err(error) => self.report(&Failure::new(error.to_string()))?,
            }
        }
        Ok(())
    }

    /// Reaps all exited children, including orphans that PID 1 has inherited.
    fn reap(&mut self) -> Result<(), Failure> {
        self.signals.drain();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let Some(exit) = exit_of(status) else { continue };
                    if !self.service_exited(pid, exit)? {
                        self.command_exited(pid, exit)?;
                    }
                }
                Ok(None) | Err(Errno::CHILD) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context(|| String::from("wait for children")),
            }
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal))
}

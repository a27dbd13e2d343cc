//! Services: start, readiness, exit and restart.

use std::os::fd::AsFd as _;

use everett_protocol::{ExecOutput, Exit, Exited, Message, Restart, Service, Unit};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::agent::Agent;
use crate::clock::{ms, now_ns};
use crate::failure::{Context as _, Failure};
use crate::readiness::Probe;
use crate::setup::Stage;
use crate::spawn::{Program, start};

/// A service of this machine, running or not.
pub(crate) struct Watched {
    pub(crate) service: Service,
    pub(crate) pid: Option<Pid>,
    pub(crate) state: State,
    /// Time of the pending restart (`CLOCK_MONOTONIC`, ns).
    pub(crate) restart_ns: Option<u64>,
}

/// State of a service.
pub(crate) enum State {
    /// Not running, or not ready within the time limit.
    Down,
    /// Being probed.
    Starting(Box<Probe>),
    /// Ready.
    Ready,
}

impl Watched {
    /// Returns the time of the next timer (`CLOCK_MONOTONIC`, ns).
    pub(crate) fn wake_ns(&self) -> Option<u64> {
        match &self.state {
            State::Starting(probe) => Some(probe.wake_ns()),
            State::Down | State::Ready => self.restart_ns,
        }
    }
}

impl Agent {
    /// Starts services in order. Stops at the first that cannot be started.
    pub(crate) fn start_services(&mut self, services: &[Service]) -> Result<(), Failure> {
        if self.stage != Stage::Joined {
            return Err(Failure::new("cannot start services: the machine has not joined its world"));
        }
        for service in services {
            if self.services.get(&service.name).is_some_and(|known| known.pid.is_some()) {
                return Err(Failure::new(format!("cannot start {}: it runs already", service.name)));
            }
            self.start_service(service)?;
        }
        self.ready_announced = false;
        Ok(())
    }

    fn start_service(&mut self, service: &Service) -> Result<(), Failure> {
        let program = Program {
            argv: &service.argv,
            env: &service.env,
            cwd: service.cwd.as_deref(),
            user: service.user.as_deref(),
            stdin: false,
            output: true,
            history: service.history.then(|| self.ports.history.as_fd()),
        };
        let started = start(&program).context(|| format!("start the service {}", service.name))?;
        let state = match &service.ready {
            None => State::Ready,
            Some(readiness) => State::Starting(Box::new(Probe::new(readiness.clone(), now_ns()))),
        };
        let pid = Some(started.pid);
        let watched = Watched { service: service.clone(), pid, state, restart_ns: None };
        self.services.insert(service.name.clone(), watched);
        self.capture(started, &Unit::Service(service.name.clone()), ExecOutput::Log);
        Ok(())
    }

    /// Sends a signal to a service's process group.
    pub(crate) fn signal_service(&self, name: &str, number: i32) -> Result<(), Failure> {
        let watched = self.services.get(name);
        let watched = watched.ok_or_else(|| Failure::new(format!("there is no service {name}")))?;
        let pid = watched.pid.ok_or_else(|| Failure::new(format!("the service {name} does not run")))?;
        let signal = Signal::from_named_raw(number)
            .ok_or_else(|| Failure::new(format!("there is no signal with the number {number}")))?;
        kill_process_group(pid, signal).context(|| format!("send signal {number} to {name}"))
    }

    /// Does the work that is due: restarts, probes, and reports of services that missed their time limit.
    pub(crate) fn tick_services(&mut self) -> Result<(), Failure> {
        let now_ns = now_ns();
        let mut restart = Vec::new();
        let mut not_ready = Vec::new();
        for watched in self.services.values_mut() {
            if watched.restart_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                watched.restart_ns = None;
                restart.push(watched.service.clone());
            }
            let State::Starting(probe) = &mut watched.state else { continue };
            let name = &watched.service.name;
            if probe.deadline_ns <= now_ns {
                not_ready.push((name.clone(), Failure::new("it was not ready in time")));
                watched.state = State::Down;
                continue;
            }
            match probe.tick(&watched.service, now_ns) {
                Ok(false) => {}
                Ok(true) => watched.state = State::Ready,
                Err(failure) => {
                    not_ready.push((name.clone(), failure));
                    watched.state = State::Down;
                }
            }
        }
        for service in restart {
            let failure = self.start_service(&service).err();
            not_ready.extend(failure.map(|failure| (service.name, failure)));
        }
        for (service, failure) in not_ready {
            self.ports.send(&Message::NotReady { service, why: failure.to_string() })?;
        }
        self.announce_ready()
    }

    /// Handles an event on the connection of this service's probe.
    pub(crate) fn go_on_probing(&mut self, name: &str) {
        let Some(watched) = self.services.get_mut(name) else { return };
        if let State::Starting(probe) = &mut watched.state
            && probe.go_on(now_ns())
        {
            watched.state = State::Ready;
        }
    }

    /// Handles the exit of a child. Returns true if it was a service or the probe of one.
    pub(crate) fn service_exited(&mut self, pid: Pid, exit: Exit) -> Result<bool, Failure> {
        let now_ns = now_ns();
        for watched in self.services.values_mut() {
            if let State::Starting(probe) = &mut watched.state
                && probe.pid() == Some(pid)
            {
                if probe.exited(exit, now_ns) {
                    watched.state = State::Ready;
                }
                return Ok(true);
            }
            if watched.pid != Some(pid) {
                continue;
            }
            watched.pid = None;
            watched.state = State::Down;
            watched.restart_ns = match watched.service.restart {
                Restart::Always { delay_ms } => Some(now_ns + ms(delay_ms)),
                Restart::OnFailure { delay_ms } if !exit.success() => Some(now_ns + ms(delay_ms)),
                Restart::OnFailure { .. } | Restart::Never => None,
            };
            let service = watched.service.name.clone();
            let restarting = watched.restart_ns.is_some();
            self.flush_captures(&Unit::Service(service.clone()))?;
            self.ports.send(&Message::Exited(Exited { service, exit, restarting }))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Sends [`Message::Ready`] once after each start of services, when all services are ready.
    fn announce_ready(&mut self) -> Result<(), Failure> {
        let ready = |watched: &Watched| matches!(watched.state, State::Ready);
        if self.ready_announced || !self.services.values().all(ready) {
            return Ok(());
        }
        self.ready_announced = true;
        self.ports.send(&Message::Ready)
    }
}

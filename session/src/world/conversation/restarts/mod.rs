//! Restarts of services by Everett, similar to `docker compose restart`.
//!
//! Each restart is a state machine ([`Stage`]):
//!
//! ```text
//!             time is over
//!      Asked ──────────────► Killed
//!      ▲   │ ended             │ ended
//! runs │   ▼                   │
//!      Ended ◄─────────────────┘
//!        │ started            ready
//!        └─────────► Started ───────► (over)
//! ```
//!
//! If a service has a supervisor, Everett sends the signal through the program at [`INIT_PATH`]. The program signals
//! only the service's first process, as a container engine does. For other services, Everett asks the agent (Everett's
//! program in the guest) to signal the service's whole process group.
//!
//! **A supervised service that seems not to run.** The agent always knows whether a service runs. The program at
//! [`INIT_PATH`] knows it only from a note of the supervisor. The supervisor writes the note shortly after its own
//! start and deletes it shortly before its end.
//!
//! If the note is missing, the program sends no signal, and Everett asks the agent to start the service. If the service
//! does run, the agent refuses, and Everett sends the signal again. If the service's time limit has passed by then,
//! Everett asks the agent to kill the process group (stage `Killed`), for which the agent needs no note.
//!
//! The submodule `ready` ends a restart when the service is ready.
//!
//! **Invariant.** An answer can change a restart's stage only if it answers the restart's latest request.

mod ready;

use everett_guest_image::init::INIT_PATH;
use everett_input::signal;
use everett_input::units::show_duration_ns;
use everett_protocol::{Exec, Exit, Exited, Operation, Reply};
use serde::{Deserialize, Serialize};

use super::{Conversation, Purpose, What};

/// Exit status of the program at [`INIT_PATH`] if the service has no note.
const NOT_RUNNING: Exit = Exit::Code(3);

/// Report about a service that Everett has restarted: the service has started, or it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restarted {
    /// Vtime of the report, in nanoseconds.
    pub vtime_ns: u64,
    /// True if the service is ready, false if it has only started.
    pub ready: bool,
}

/// Restart of a service, in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restart {
    pub(super) stage: Stage,
    /// Vtime at which Everett kills the service if it still runs, in nanoseconds.
    pub(super) kill_ns: u64,
    /// Number of the latest request.
    pub(super) request: u64,
}

/// Stage of a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// Everett has asked the service to exit.
    Asked,
    /// Everett has killed the service, and its end was not reported yet.
    Killed,
    /// The service has ended or seems not to run. Everett has asked the agent to start it.
    Ended,
    /// The agent has started the service. Everett waits until the service is ready.
    Started,
}

impl Conversation {
    /// Asks a service to exit. Everett starts it again after its end.
    pub fn restart_service(&mut self, unit: &str, vtime_ns: u64) {
        let stop = self.script.stop;
        if !self.script.restartable.contains(unit) {
            return self.not_done(vtime_ns, &format!("there is no service {unit}"));
        }
        if self.at.restarts.get(unit).is_some_and(|restart| restart.stage != Stage::Started) {
            return self.not_done(vtime_ns, &format!("{unit} is being restarted"));
        }
        if stop.signal > signal::NAMED_MAX {
            let text = format!("its image stops it by the real-time signal {}", stop.signal);
            return self.not_done(vtime_ns, &text);
        }
        let text = format!("{unit} is asked to end by signal {}", stop.signal);
        self.event(vtime_ns, What::Effect { text });
        let kill_ns = vtime_ns.saturating_add(stop.grace_ns);
        self.at.restarts.insert(unit.to_owned(), Restart { stage: Stage::Asked, kill_ns, request: 0 });
        self.deliver(unit, Stage::Asked, vtime_ns);
    }

    /// Returns true if a service is being restarted.
    #[must_use]
    pub fn is_restarting(&self) -> bool {
        !self.at.restarts.is_empty()
    }

    /// Returns the vtimes at which Everett kills services that it has asked to exit, in nanoseconds.
    pub fn kills_ns(&self) -> impl Iterator<Item = u64> {
        self.asked().map(|(_, kill_ns)| kill_ns)
    }

    /// Returns the services that Everett has asked to exit, each with the vtime at which Everett kills it.
    fn asked(&self) -> impl Iterator<Item = (&String, u64)> {
        let asked = self.at.restarts.iter().filter(|(_, restart)| restart.stage == Stage::Asked);
        asked.map(|(unit, restart)| (unit, restart.kill_ns))
    }

    /// Kills the services that have not exited by their time limit.
    pub fn kill_late(&mut self, now_ns: u64) {
        let late = self.asked().filter(|&(_, kill_ns)| kill_ns <= now_ns);
        for unit in late.map(|(unit, _)| unit.clone()).collect::<Vec<_>>() {
            let grace = show_duration_ns(self.script.stop.grace_ns);
            let text = format!("{unit} has not ended within {grace} and is killed");
            self.event(now_ns, What::Effect { text });
            self.deliver(&unit, Stage::Killed, now_ns);
        }
    }

    /// Extends the time limits after a pause of the machine since `paused_ns`. Services could not use the time of the
    /// pause, so each has as much time left as before it.
    pub fn resumed(&mut self, paused_ns: u64, now_ns: u64) {
        for restart in self.at.restarts.values_mut() {
            let left_ns = restart.kill_ns.saturating_sub(paused_ns).min(self.script.stop.grace_ns);
            restart.kill_ns = now_ns.saturating_add(left_ns);
        }
    }

    /// Takes the reports since the last call.
    pub fn take_restarted(&mut self) -> Vec<Restarted> {
        std::mem::take(&mut self.restarted)
    }

    /// Enters a stage. The next request becomes the restart's latest request.
    fn enter(&mut self, unit: &str, stage: Stage) {
        if let Some(restart) = self.at.restarts.get_mut(unit) {
            (restart.stage, restart.request) = (stage, self.at.next_id);
        }
    }

    /// Enters a stage and sends the signal of this stage.
    fn deliver(&mut self, unit: &str, stage: Stage, vtime_ns: u64) {
        let number = if stage == Stage::Killed { signal::KILL } else { self.script.stop.signal };
        if !self.script.stop.supervised {
            return self.signal_group(unit, stage, number, vtime_ns);
        }
        self.enter(unit, stage);
        let words = [INIT_PATH, "signal", unit, &number.to_string()].map(str::to_owned);
        let purpose = Purpose::Stop(unit.to_owned());
        self.named_request(&format!("stop-{unit}"), purpose, Exec::new(words.to_vec()), vtime_ns);
    }

    /// Enters a stage, and asks the agent to signal the service's process group. If the service has a supervisor, the
    /// group includes it.
    fn signal_group(&mut self, unit: &str, stage: Stage, signal: i32, vtime_ns: u64) {
        self.enter(unit, stage);
        let op = Operation::Signal { service: unit.to_owned(), signal };
        self.request(Purpose::Stop(unit.to_owned()), op, vtime_ns);
    }

    /// Starts a service after its end. The agent starts it at once, even if its restart policy would wait.
    fn start_again(&mut self, unit: &str, vtime_ns: u64) {
        let Some(service) = self.script.services.iter().find(|service| service.name == unit) else { return };
        let services = vec![service.clone()];
        self.enter(unit, Stage::Ended);
        self.request(Purpose::Again(unit.to_owned()), Operation::Start { services }, vtime_ns);
    }

    /// Returns true if `request` is the latest request of the service's restart. Answers to other requests have no
    /// effect.
    pub(super) fn is_latest(&self, unit: &str, request: u64) -> bool {
        self.at.restarts.get(unit).is_some_and(|restart| restart.request == request)
    }

    /// Handles the answer to a request for a signal.
    pub(super) fn signal_answered(&mut self, unit: &str, reply: Reply, vtime_ns: u64) {
        match reply {
            Reply::Exited(NOT_RUNNING) => self.start_again(unit, vtime_ns),
            Reply::Error { message } if does_not_run(&message, unit) => self.start_again(unit, vtime_ns),
            Reply::Exited(exit) if !exit.success() => {
                self.restart_fails(unit, &format!("sending the signal ended with {exit}"), vtime_ns);
            }
            Reply::Error { message } => self.restart_fails(unit, &message, vtime_ns),
            // The signal was sent. Either the service ends or its time limit passes.
            _ => {}
        }
    }

    /// Handles the answer to a request for a start.
    pub(super) fn start_answered(&mut self, unit: &str, reply: Reply, vtime_ns: u64) {
        let Some(restart) = self.at.restarts.get_mut(unit) else { return };
        match reply {
            Reply::Error { message } if !runs_already(&message, unit) => {
                self.restart_fails(unit, &message, vtime_ns);
                self.goes_down(unit, vtime_ns);
            }
            Reply::Error { .. } if restart.kill_ns > vtime_ns => self.deliver(unit, Stage::Asked, vtime_ns),
            Reply::Error { .. } => self.signal_group(unit, Stage::Killed, signal::KILL, vtime_ns),
            _ => {
                restart.stage = Stage::Started;
                self.at.down.remove(unit);
                self.restarted.push(Restarted { vtime_ns, ready: false });
                self.settle(vtime_ns);
            }
        }
    }

    /// Handles the end of a service. Returns true if Everett caused it.
    pub(super) fn stopped(&mut self, exited: &Exited, vtime_ns: u64) -> bool {
        let unit = &exited.service;
        let Some(stage) = self.at.restarts.get(unit).map(|restart| restart.stage) else { return false };
        match stage {
            _ if self.at.powering_off => self.restart_is_over(unit, vtime_ns),
            Stage::Asked | Stage::Killed => self.start_again(unit, vtime_ns),
            // Everett has already sent the request to start the service. When the agent reads the request, it starts
            // the service.
            Stage::Ended => {}
            Stage::Started if exited.restarting => {}
            Stage::Started => self.restart_is_over(unit, vtime_ns),
        }
        stage != Stage::Started
    }

    /// Ends the restart of a service, if one is in progress.
    pub(super) fn restart_is_over(&mut self, unit: &str, vtime_ns: u64) {
        if self.at.restarts.remove(unit).is_some() && self.at.restarts.is_empty() {
            self.at.rest_ns = vtime_ns;
        }
    }

    fn restart_fails(&mut self, unit: &str, why: &str, vtime_ns: u64) {
        self.not_done(vtime_ns, why);
        self.restart_is_over(unit, vtime_ns);
    }

    pub(super) fn not_done(&mut self, vtime_ns: u64, why: &str) {
        self.event(vtime_ns, What::Effect { text: format!("not done: {why}") });
    }
}

/// Returns true if the agent sent no signal because the service does not run (`guest-image/agent/src/services.rs`).
fn does_not_run(message: &str, unit: &str) -> bool {
    message == format!("the service {unit} does not run") || message == format!("there is no service {unit}")
}

/// Returns true if the agent refused to start a service because the service runs.
fn runs_already(message: &str, unit: &str) -> bool {
    message == format!("cannot start {unit}: it runs already")
}

#[cfg(test)]
mod tests;

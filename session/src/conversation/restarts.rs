//! Restarts of services by Everett, as `docker compose restart` does them: a signal asks the service to end, a second one
//! kills it if it does not, and then it is started again.
//!
//! A service with a supervisor gets its signals through the program at [`INIT_PATH`], as the first process of a container
//! gets them. Of other services, the process group gets them.

use everett_guest_image::init::INIT_PATH;
use everett_input::units::show_duration_ns;
use everett_protocol::{Exec, Exit, Operation};

use super::{Conversation, Purpose, What};

/// Signal number of SIGKILL on Linux.
const SIGKILL: i32 = 9;
/// Highest signal with a name. The agent sends no others.
const SIGNAL_MAX: i32 = 31;
/// Exit status of the program at [`INIT_PATH`] if the service does not run.
const NOT_RUNNING: Exit = Exit::Code(3);

/// A service that Everett has restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restarted {
    /// vtime in nanoseconds.
    pub vtime_ns: u64,
    /// True if it is ready, false if it has only been started.
    pub ready: bool,
}

impl Conversation {
    /// Asks a service to end. When it has ended, it is started again.
    pub fn restart_service(&mut self, unit: &str, vtime_ns: u64) {
        let Some(stop) = self.plan.stops.get(unit) else {
            return self.not_done(vtime_ns, &format!("there is no service {unit}"));
        };
        let (signal, grace_ns) = (stop.signal, stop.grace_ns);
        if self.at.restarts.contains_key(unit) {
            return self.not_done(vtime_ns, &format!("{unit} is being restarted"));
        }
        if signal > SIGNAL_MAX {
            return self.not_done(vtime_ns, &format!("its image stops it by the real-time signal {signal}"));
        }
        let text = format!("{unit} is asked to end by signal {signal}");
        self.event(vtime_ns, What::Effect { text });
        self.at.restarts.insert(unit.to_owned(), Some(vtime_ns.saturating_add(grace_ns)));
        self.deliver(unit, signal, vtime_ns);
    }

    /// Returns the next vtime at which a service is killed that was asked to end, in nanoseconds.
    #[must_use]
    pub fn next_kill_ns(&self) -> Option<u64> {
        self.at.restarts.values().flatten().copied().min()
    }

    /// Kills the services whose time to end is over.
    pub fn kill_late(&mut self, now_ns: u64) {
        let late = |at: &Option<u64>| at.is_some_and(|at| at <= now_ns);
        let late: Vec<String> =
            self.at.restarts.iter().filter(|(_, at)| late(at)).map(|(unit, _)| unit.clone()).collect();
        for unit in late {
            let grace_ns = self.plan.stops.get(&unit).map_or(0, |stop| stop.grace_ns);
            let text = format!("{unit} has not ended within {} and is killed", show_duration_ns(grace_ns));
            self.event(now_ns, What::Effect { text });
            self.at.restarts.insert(unit.clone(), None);
            self.deliver(&unit, SIGKILL, now_ns);
        }
    }

    /// Takes the restarts since the last call.
    pub fn take_restarted(&mut self) -> Vec<Restarted> {
        std::mem::take(&mut self.restarted)
    }

    fn deliver(&mut self, unit: &str, signal: i32, vtime_ns: u64) {
        let purpose = Purpose::Stop(unit.to_owned());
        if self.plan.stops.get(unit).is_some_and(|stop| stop.supervised) {
            let words = [INIT_PATH, "signal", unit, &signal.to_string()].map(str::to_owned);
            self.named_request(&format!("stop-{unit}"), purpose, Exec::new(words.to_vec()), vtime_ns);
        } else {
            self.request(purpose, Operation::Signal { service: unit.to_owned(), signal }, vtime_ns);
        }
    }

    /// Handles the end of the program that sends a signal.
    pub(super) fn signal_sent(&mut self, unit: &str, exit: Exit, vtime_ns: u64) {
        match exit {
            exit if exit.success() => {}
            NOT_RUNNING => self.was_not_running(unit, vtime_ns),
            exit => {
                self.at.restarts.remove(unit);
                self.not_done(vtime_ns, &format!("sending the signal ended with {exit}"));
            }
        }
    }

    /// Handles the answer that a service to stop does not run. It is started, unless it has ended in the meantime.
    pub(super) fn was_not_running(&mut self, unit: &str, vtime_ns: u64) {
        if self.at.restarts.remove(unit).is_some() {
            self.start_again(unit, vtime_ns);
        }
    }

    /// Handles the end of a service. Returns true if it was asked to end.
    pub(super) fn stopped(&mut self, unit: &str, vtime_ns: u64) -> bool {
        let asked = self.at.restarts.remove(unit).is_some();
        if asked && !self.at.powering_off {
            self.start_again(unit, vtime_ns);
        }
        asked
    }

    /// Starts a service. The agent starts it at once, even if it was going to do so later.
    fn start_again(&mut self, unit: &str, vtime_ns: u64) {
        let Some(service) = self.plan.services.iter().find(|service| service.name == unit) else { return };
        let services = vec![service.clone()];
        self.request(Purpose::Again(unit.to_owned()), Operation::Start { services }, vtime_ns);
    }

    pub(super) fn started_again(&mut self, unit: &str, vtime_ns: u64) {
        self.at.unready.insert(unit.to_owned());
        self.restarted.push(Restarted { vtime_ns, ready: false });
    }

    /// Handles the agent's report that all services are ready.
    pub(super) fn ready_again(&mut self, vtime_ns: u64) {
        for _ in std::mem::take(&mut self.at.unready) {
            self.restarted.push(Restarted { vtime_ns, ready: true });
        }
    }

    pub(super) fn not_done(&mut self, vtime_ns: u64, why: &str) {
        self.event(vtime_ns, What::Effect { text: format!("not done: {why}") });
    }
}

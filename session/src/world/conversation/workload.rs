//! Drivers (the programs of the workload) while a timeline runs, and checks at its end.

use everett_explorer::property::builtin;
use everett_input::signal;
use everett_input::units::show_duration_ns;
use everett_protocol::{Exit, Operation};

use super::state::DriverState;
use super::{Conversation, Phase, Purpose, What};
use crate::guest::agent_script::{ROUND_VARIABLE, SEED_VARIABLE};

/// Exit status with which a shell reports a program that SIGKILL ended.
const KILLED_STATUS: i32 = 128 + signal::KILL;
const NS_PER_MS: u64 = 1_000_000;

impl Conversation {
    /// Kills the drivers, because the workload ended at `vtime_ns`. Has an effect only in phase `Running`.
    pub fn end(&mut self, vtime_ns: u64) {
        if self.at.phase != Phase::Running {
            return;
        }
        let vtime_ns = vtime_ns.max(self.at.rest_ns);
        self.at.phase = Phase::Stopping;
        for index in 0..self.at.drivers.len() {
            if self.at.drivers[index].runs {
                let service = self.script.drivers[index].service.name.clone();
                self.request(
                    Purpose::StopDriver,
                    Operation::Signal { service, signal: signal::KILL },
                    vtime_ns,
                );
            }
        }
        self.drivers_stopped(vtime_ns);
    }

    /// Starts all drivers. After a restart of the machine, starts only repeated drivers and drivers that never ran.
    pub(super) fn start_drivers(&mut self, vtime_ns: u64) {
        for index in 0..self.at.drivers.len() {
            if self.at.drivers[index].rounds == 0 || self.script.drivers[index].repeat {
                self.start_driver(index, vtime_ns);
            }
        }
    }

    fn start_driver(&mut self, index: usize, vtime_ns: u64) {
        let driver = &mut self.at.drivers[index];
        let round = driver.rounds;
        driver.rounds = round.saturating_add(1);
        driver.runs = true;
        let mut service = self.script.drivers[index].service.clone();
        service.env.insert(SEED_VARIABLE.to_owned(), self.seed_text());
        service.env.insert(ROUND_VARIABLE.to_owned(), round.to_string());
        self.event(vtime_ns, What::Start { unit: service.name.clone(), round });
        self.request(Purpose::Driver(index), Operation::Start { services: vec![service] }, vtime_ns);
    }

    /// Returns the seed for drivers and checks. A running timeline always has a seed.
    fn seed_text(&self) -> String {
        self.at.seed.unwrap_or_default().to_string()
    }

    pub(super) fn driver_refused(&mut self, index: usize, message: &str, vtime_ns: u64) {
        self.at.drivers[index].runs = false;
        let name = self.script.drivers[index].service.name.clone();
        self.goes_down(&name, vtime_ns);
        self.finding(vtime_ns, builtin::DRIVER_EXIT, message);
        self.rest(vtime_ns);
        self.drivers_stopped(vtime_ns);
    }

    pub(super) fn driver_exited(&mut self, index: usize, exit: Exit, vtime_ns: u64) {
        self.at.drivers[index].runs = false;
        let driver = &self.script.drivers[index];
        let (name, repeat) = (driver.service.name.clone(), driver.repeat);
        let again = self.at.phase == Phase::Running && repeat && exit.success();
        if !again {
            self.goes_down(&name, vtime_ns);
        }
        if self.at.phase == Phase::Stopping {
            self.drivers_stopped(vtime_ns);
            return;
        }
        self.event(vtime_ns, What::exit(&name, exit));
        if !exit.success() {
            self.finding(vtime_ns, builtin::DRIVER_EXIT, format!("driver {name} ended with {exit}"));
        }
        if again {
            self.start_driver(index, vtime_ns);
        } else {
            self.rest(vtime_ns);
        }
    }

    /// If all drivers have ended, records `vtime_ns` as the time at which the last driver ended.
    fn rest(&mut self, vtime_ns: u64) {
        if self.has_driven() {
            self.at.rest_ns = vtime_ns;
        }
    }

    /// Returns true in phase `Running` if all drivers have started and ended.
    #[must_use]
    pub fn has_driven(&self) -> bool {
        let ended = |driver: &DriverState| driver.rounds > 0 && !driver.runs;
        self.at.phase == Phase::Running && self.at.drivers.iter().all(ended)
    }

    fn drivers_stopped(&mut self, vtime_ns: u64) {
        if self.at.phase == Phase::Stopping && self.at.drivers.iter().all(|driver| !driver.runs) {
            self.at.phase = Phase::Stopped;
            self.at.rest_ns = vtime_ns;
        }
    }

    /// Returns true if a check is running.
    #[must_use]
    pub fn is_checking(&self) -> bool {
        self.at.pending.values().any(|purpose| matches!(purpose, Purpose::Check(_)))
    }

    /// Starts the check with this index in the agent script, i.e. the list of all requests to the agent (Everett's
    /// program in the guest).
    pub fn check(&mut self, index: usize, vtime_ns: u64) {
        let Some(check) = self.script.checks.get(index) else { return };
        let (name, mut exec) = (check.name.clone(), check.exec.clone());
        exec.env.insert(SEED_VARIABLE.to_owned(), self.seed_text());
        self.at.rest_ns = vtime_ns;
        self.event(vtime_ns, What::Start { unit: name.clone(), round: 0 });
        self.named_request(&name, Purpose::Check(index), exec, vtime_ns);
    }

    pub(super) fn check_ended(&mut self, index: usize, exit: Exit, vtime_ns: u64) {
        let (name, limit_ns) = (self.script.checks[index].name.clone(), self.check_limit_ns(index));
        let lasted_ns = vtime_ns.saturating_sub(self.at.rest_ns);
        self.at.rest_ns = vtime_ns;
        self.event(vtime_ns, What::exit(&name, exit));
        // The agent kills a check at its time limit with SIGKILL.
        let is_killed = matches!(exit, Exit::Signal(signal::KILL) | Exit::Code(KILLED_STATUS));
        match limit_ns.filter(|limit_ns| is_killed && lasted_ns >= *limit_ns) {
            _ if exit.success() => {}
            Some(limit_ns) => self.finding(vtime_ns, builtin::FAILED_CHECK, too_long(&name, limit_ns)),
            None => self.finding(vtime_ns, builtin::FAILED_CHECK, format!("check {name} ended with {exit}")),
        }
    }

    /// Returns the time limit of the check with this index in the agent script, in nanoseconds of vtime.
    #[must_use]
    pub fn check_limit_ns(&self, index: usize) -> Option<u64> {
        Some(self.script.checks.get(index)?.exec.limit_ms?.saturating_mul(NS_PER_MS))
    }

    /// Reports a check that passed its time limit on a machine that does not answer. `answer_ns` is the time since the
    /// limit, in nanoseconds of vtime.
    pub fn check_hangs(&mut self, index: usize, answer_ns: u64, vtime_ns: u64) {
        let Some(check) = self.script.checks.get(index) else { return };
        let told = too_long(&check.name, self.check_limit_ns(index).unwrap_or(0));
        let text =
            format!("{told}, and its machine did not answer for {} after that", show_duration_ns(answer_ns));
        self.noticed(vtime_ns, builtin::FAILED_CHECK, &text);
    }

    pub(super) fn check_refused(&mut self, index: usize, message: &str, vtime_ns: u64) {
        self.at.rest_ns = vtime_ns;
        let name = self.script.checks[index].name.clone();
        self.finding(vtime_ns, builtin::FAILED_CHECK, format!("check {name}: {message}"));
    }
}

/// Describes a check that did not end within its time limit.
fn too_long(name: &str, limit_ns: u64) -> String {
    format!("check {name} did not end within its timeout of {}", show_duration_ns(limit_ns))
}

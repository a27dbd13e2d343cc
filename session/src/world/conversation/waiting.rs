//! Reasons why a machine is not ready or not at rest in time. Findings and errors of the boot quote these reasons.

use everett_protocol::{ReadyCheck, Service};

use super::{Conversation, Phase};

impl Conversation {
    /// Returns the reason why the machine is not ready, or why it is not at rest after the workload. A machine is not
    /// at rest while a driver runs or a service is being restarted. The reason is a clause with subject and verb.
    #[must_use]
    pub fn waits_for(&self) -> String {
        match self.at.phase {
            Phase::Booting => "its agent has not spoken".to_owned(),
            Phase::Mounting => "its root is not mounted".to_owned(),
            Phase::Mounted => "it has not joined the world".to_owned(),
            Phase::Joining => self.services_waited_for(),
            Phase::Ready | Phase::Beginning => {
                "its random numbers were not seeded, so its drivers never started".to_owned()
            }
            Phase::Running | Phase::Stopping => self.drivers_that_run(),
            Phase::Stopped if self.is_restarting() => self.services_restarting(),
            Phase::Stopped | Phase::Done | Phase::Broken => "it waits for nothing".to_owned(),
        }
    }

    /// Returns the clause for services that are not ready. The agent does not say which services are ready, so the
    /// clause names all services that have a readiness check.
    fn services_waited_for(&self) -> String {
        if !self.at.services_started {
            return "its services were not started".to_owned();
        }
        let waited: Vec<String> = self.script.services.iter().filter_map(named_with_condition).collect();
        match &waited[..] {
            [] => "its services are not ready".to_owned(),
            [one] => format!("its service {one} is not ready"),
            several => format!("one of its services is not ready: {}", several.join(", ")),
        }
    }

    fn services_restarting(&self) -> String {
        let names: Vec<&str> = self.at.restarts.keys().map(String::as_str).collect();
        match names[..] {
            [one] => format!("its service {one} is being restarted"),
            _ => format!("its services {} are being restarted", names.join(", ")),
        }
    }

    fn drivers_that_run(&self) -> String {
        let drivers = self.script.drivers.iter().zip(&self.at.drivers);
        let names: Vec<&str> =
            drivers.filter(|(_, state)| state.runs).map(|(driver, _)| driver.service.name.as_str()).collect();
        match names.len() {
            0 => "its agent has not said that its drivers have ended".to_owned(),
            1 => format!("its driver {} did not end when it was killed", names.join("")),
            _ => format!("its drivers {} did not end when they were killed", names.join(", ")),
        }
    }
}

/// Returns a service with its readiness check, such as `redis (tcp port 6379)`. `None` for a service without a check.
fn named_with_condition(service: &Service) -> Option<String> {
    let condition = match &service.ready.as_ref()?.check {
        ReadyCheck::Tcp { port, .. } => format!("tcp port {port}"),
        ReadyCheck::Command { argv, .. } => format!("command {}", argv.join(" ")),
    };
    Some(format!("{} ({condition})", service.name))
}

//! The end of a restart: the service is ready.
//!
//! After each start the agent says once that all services are ready. It says nothing while one of its units is down for
//! good, and drivers and commands of a test template are units, too. On a node with such a unit a service counts as ready
//! when it was started.

use super::{Conversation, Restarted, Stage};

impl Conversation {
    /// Handles the agent's report that all services are ready. Services that it has not started since are not meant.
    pub(in crate::world::conversation) fn ready_again(&mut self, vtime_ns: u64) {
        let started = self.at.restarts.iter().filter(|(_, restart)| restart.stage == Stage::Started);
        for unit in started.map(|(unit, _)| unit.clone()).collect::<Vec<_>>() {
            self.restarted.push(Restarted { vtime_ns, ready: true });
            self.restart_is_over(&unit, vtime_ns);
        }
    }

    /// Notes that a unit is down for good. A unit that the agent cannot have is left out, so their number is bounded.
    pub(in crate::world::conversation) fn goes_down(&mut self, unit: &str, vtime_ns: u64) {
        if self.at.is_unit(unit, &self.plan) {
            self.at.down.insert(unit.to_owned());
            self.settle(vtime_ns);
        }
    }

    /// Takes the services as ready that were started, if the agent will not say that they are.
    pub(super) fn settle(&mut self, vtime_ns: u64) {
        if !self.at.down.is_empty() {
            self.ready_again(vtime_ns);
        }
    }
}

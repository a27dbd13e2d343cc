//! End of a restart, when the service is ready.
//!
//! After each start of services, the agent (Everett's program in the guest) reports once that all services are ready.
//! The agent sends no report while a service, driver or test command of the node is down for good. Everett then takes a
//! restarted service as ready as soon as it has started.

use super::{Conversation, Restarted, Stage};

impl Conversation {
    /// Ends the restarts of all started services, because the agent reported that all services are ready.
    pub(in crate::world::conversation) fn ready_again(&mut self, vtime_ns: u64) {
        let started = self.at.restarts.iter().filter(|(_, restart)| restart.stage == Stage::Started);
        for unit in started.map(|(unit, _)| unit.clone()).collect::<Vec<_>>() {
            self.restarted.push(Restarted { vtime_ns, ready: true });
            self.restart_is_over(&unit, vtime_ns);
        }
    }

    /// Records that a service, driver or test command is down for good. Ignores any other name that the agent sends, so
    /// the set of recorded names is bounded.
    pub(in crate::world::conversation) fn goes_down(&mut self, unit: &str, vtime_ns: u64) {
        if self.at.is_unit(unit, &self.script) {
            self.at.down.insert(unit.to_owned());
            self.settle(vtime_ns);
        }
    }

    /// Ends the restarts of all started services if the agent will not report that they are ready.
    pub(super) fn settle(&mut self, vtime_ns: u64) {
        if !self.at.down.is_empty() {
            self.ready_again(vtime_ns);
        }
    }
}

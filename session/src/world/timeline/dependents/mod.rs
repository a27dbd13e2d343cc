//! Restarts of services that depend on a restarted service (`depends_on` with `restart: true` in compose files).
//!
//! `depends_on` names a condition for which the dependent service waits at its first boot. After Everett has restarted
//! a service and the condition holds again, Everett restarts the dependent service on its node. This restart comes
//! one wire latency later, as if one node had asked the other for it in a message.

use super::Timeline;
use super::director::Stage;
use crate::world::conversation::{Phase, Restarted};

impl Timeline {
    /// Schedules restarts on the nodes that depend on the restarted services of `node`.
    pub(super) fn note_restarts(&mut self, node: usize, restarted: &[Restarted]) {
        if restarted.is_empty() || !matches!(self.course.stage, Stage::Running { .. }) {
            return;
        }
        let distance_ns = self.distance_ns();
        let name = self.nodes[node].conversation.script().node.clone();
        for Restarted { vtime_ns, ready } in restarted {
            let at_ns = vtime_ns.saturating_add(distance_ns);
            for (dependent, session) in self.nodes.iter().enumerate() {
                let mut after = session.conversation.script().after.iter();
                let depends = after.any(|one| one.restart && one.ready == *ready && one.node == name);
                // A world has at most 64 nodes, so the number fits.
                let (true, Ok(dependent)) = (depends, u16::try_from(dependent)) else { continue };
                // One scheduled restart per node is enough.
                if self.course.restarts.iter().all(|&(_, node)| node != dependent) {
                    self.course.restarts.push((at_ns, dependent));
                }
            }
        }
        self.course.restarts.sort_unstable();
    }

    /// Returns the vtime of the next scheduled restart, in nanoseconds.
    pub(super) fn next_restart_ns(&self) -> Option<u64> {
        self.course.restarts.first().map(|&(at_ns, _)| at_ns)
    }

    /// Restarts the services that are due.
    pub(super) fn restart_dependents(&mut self, now: u64) {
        let due = self.course.restarts.partition_point(|&(at_ns, _)| at_ns <= now);
        let due: Vec<(u64, u16)> = self.course.restarts.drain(..due).collect();
        for (_, number) in due {
            let number = usize::from(number);
            let node = self.world.node_mut(number);
            let session = &mut self.nodes[number];
            // A node without power starts its services when it boots. A paused node receives the request to stop its
            // services when it continues.
            if !node.is_on() || session.conversation.phase() != Phase::Running {
                continue;
            }
            // The vtime of a running node can be later than `now`. The vtime of a paused node is earlier.
            let at_ns = node.vtime().max(now);
            for unit in session.conversation.script().restartable.clone() {
                session.conversation.restart_service(&unit, at_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests;

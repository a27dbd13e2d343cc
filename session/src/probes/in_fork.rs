//! Observation of a world's probes in a fork.

use std::sync::Arc;

use everett_explorer::probe::ProbeState;

use super::declared::{Declared, Prober};
use crate::inside::fork::{Fork, ForkObserver};
use crate::world::event::{Event, What, merged};
use crate::world::timeline::Timeline;

/// Observes the probes of the world file in a fork from its present instant on. What explorations report of them are events
/// of the fork. `state` is that of the probes at this instant.
///
/// # Errors
/// Returns an error if the engine has no breakpoints, or if a program that runs lacks the place of a probe.
pub fn observe(fork: &mut Fork, probes: &Arc<Declared>, state: &ProbeState) -> anyhow::Result<()> {
    let mut prober = Prober::new(probes);
    prober.begin(fork.timeline(), state)?;
    fork.observe(Box::new(prober));
    Ok(())
}

impl ForkObserver for Prober {
    fn stopped(&mut self, timeline: &mut Timeline, node: usize) -> anyhow::Result<()> {
        Prober::stopped(self, timeline, node)
    }

    fn add_events(&mut self, timeline: &Timeline, events: Vec<Event>) -> Vec<Event> {
        let events = merged(events, self.take());
        let nodes = timeline.world().nodes();
        let number = |name: &str| nodes.iter().position(|node| node.machine().name() == name);
        let number = |name: &str| number(name).and_then(|number| u16::try_from(number).ok());
        for event in &events {
            if let (What::Fault { id, .. }, Some(plan)) = (&event.what, timeline.plan()) {
                self.fault(plan, *id, number);
            }
        }
        events
    }
}

//! Events and console output before a moment. A timeline that continues from the moment reports them again.

use everett_vmm::output::CONSOLE_BYTES_MAX;

use crate::world::event::Event;
use crate::world::timeline::Timeline;

/// Maximum size of the events before a moment, in bytes. A guest could print without limit.
const EVENTS_BYTES_MAX: usize = 256 << 20;

/// The events before a moment exceed [`EVENTS_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the events before the moment take more than {} MiB, so it cannot be stored", EVENTS_BYTES_MAX >> 20)]
pub struct TooMuch;

/// Events and console output so far.
#[derive(Debug)]
pub struct Recorded {
    events: Vec<Event>,
    consoles: Vec<Vec<u8>>,
    /// Size of `events` in bytes.
    bytes: usize,
}

impl Recorded {
    /// Creates an empty record for `nodes` nodes.
    #[must_use]
    pub fn new(nodes: usize) -> Recorded {
        Recorded { events: Vec::new(), consoles: vec![Vec::new(); nodes], bytes: 0 }
    }

    /// Adds new events and console output from the timeline. Only the last [`CONSOLE_BYTES_MAX`] bytes of each console
    /// stay.
    ///
    /// # Errors
    /// Returns [`TooMuch`] if the events exceed their bound.
    pub fn take(&mut self, timeline: &mut Timeline) -> Result<(), TooMuch> {
        for (node, console) in self.consoles.iter_mut().enumerate() {
            console.append(&mut timeline.machine_mut(node).output().take_console());
            console.drain(..console.len().saturating_sub(CONSOLE_BYTES_MAX));
        }
        self.add(timeline.take_events())
    }

    fn add(&mut self, events: Vec<Event>) -> Result<(), TooMuch> {
        self.bytes += events.iter().map(Event::bytes).sum::<usize>();
        self.events.extend(events);
        if self.bytes > EVENTS_BYTES_MAX { Err(TooMuch) } else { Ok(()) }
    }

    /// Returns the events and each node's console.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Event>, Vec<Vec<u8>>) {
        (self.events, self.consoles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::event::What;

    #[test]
    fn events_are_kept_up_to_a_bound() {
        let event = |bytes| Event {
            vtime_ns: 1,
            node: "a".to_owned(),
            what: What::Effect { text: "x".repeat(bytes) },
        };
        let rest = EVENTS_BYTES_MAX - event(0).bytes();
        let mut recorded = Recorded::new(1);
        assert_eq!(recorded.add(vec![event(rest)]), Ok(()));
        assert_eq!(recorded.add(vec![event(0)]), Err(TooMuch));
        assert_eq!(recorded.into_parts().0.len(), 2);
    }
}

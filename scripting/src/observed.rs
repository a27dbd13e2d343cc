//! Events and messages of a span of a timeline.

use everett_host::interrupt::Interrupt;
use everett_session::explore::path_runner::Watch;
use everett_session::world::event::{Event, What};
use everett_vmm::wire::log::FrameStep;

use super::error::Error;
use super::limits::{EVENT_BYTES_MAX, EVENTS_MAX, MESSAGES_MAX};

/// Events and messages of a span.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    events: Vec<Event>,
    messages: Vec<FrameStep>,
    bytes: usize,
    /// True if there were more events than are kept.
    has_lost_events: bool,
    /// True if there were more messages than are kept.
    has_lost_messages: bool,
}

impl Observed {
    pub(crate) fn event(&mut self, event: Event) {
        self.bytes = self.bytes.saturating_add(event.bytes());
        if self.events.len() < EVENTS_MAX && self.bytes <= EVENT_BYTES_MAX {
            self.events.push(event);
        } else {
            self.has_lost_events = true;
        }
    }

    pub(crate) fn message(&mut self, step: FrameStep) {
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(step);
        } else {
            self.has_lost_messages = true;
        }
    }

    /// Notes that events or messages were dropped before they came here.
    pub(crate) fn dropped(&mut self, (events, messages): (u64, u64)) {
        self.has_lost_events |= events > 0;
        self.has_lost_messages |= messages > 0;
    }

    /// Returns the events, ordered by vtime.
    ///
    /// # Errors
    /// Returns an error if the span had more than are kept.
    pub fn events(&self) -> Result<&[Event], Error> {
        if self.has_lost_events {
            return Err(Error::Failed("the timeline has more events than are kept".to_owned()));
        }
        Ok(&self.events)
    }

    /// Returns the lines that programs and kernels have printed, ordered by vtime. With `node`, a name and all
    /// names of the world, only those of this node.
    ///
    /// # Errors
    /// Returns an error if there is no such node, or if the span had more events than are kept.
    pub fn lines(&self, node: Option<(&str, &[String])>) -> Result<Vec<&Event>, Error> {
        if let Some((node, nodes)) = node
            && !nodes.iter().any(|other| other == node)
        {
            return Err(Error::no_node(node, nodes));
        }
        let is_line = |event: &&Event| matches!(event.what, What::Line { .. } | What::Kernel { .. });
        let is_there = |event: &&Event| node.is_none_or(|(node, _)| node == event.node);
        Ok(self.events()?.iter().filter(is_line).filter(is_there).collect())
    }

    /// Returns the outcomes of messages between nodes, ordered by vtime.
    ///
    /// # Errors
    /// Returns an error if the span had more than are kept.
    pub fn messages(&self) -> Result<&[FrameStep], Error> {
        if self.has_lost_messages {
            return Err(Error::Failed("the timeline has more messages than are kept".to_owned()));
        }
        Ok(&self.messages)
    }
}

/// Observer of a replay that keeps everything.
pub(crate) struct Recorder<'r> {
    pub(crate) observed: &'r mut Observed,
    pub(crate) interrupt: &'r Interrupt,
}

impl Watch for Recorder<'_> {
    fn event(&mut self, event: &Event) {
        self.observed.event(event.clone());
    }

    fn message(&mut self, step: &FrameStep) {
        self.observed.message(*step);
    }

    fn at(&mut self, _: u64) -> bool {
        !self.interrupt.wanted()
    }
}

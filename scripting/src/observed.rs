//! Events and messages of a span of a timeline.

use everett_host::interrupt::Interrupt;
use everett_session::explore::path_runner::Watch;
use everett_session::world::event::Event;
use everett_vmm::wire::log::FrameStep;

use super::error::Error;
use super::limits::{EVENT_BYTES_MAX, EVENTS_MAX, MESSAGES_MAX};

/// Events and messages of a span.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    events: Vec<Event>,
    messages: Vec<FrameStep>,
    bytes: usize,
    /// True if there were more than are kept.
    is_cut: bool,
}

impl Observed {
    pub(crate) fn event(&mut self, event: Event) {
        self.bytes = self.bytes.saturating_add(event.bytes());
        if self.events.len() < EVENTS_MAX && self.bytes <= EVENT_BYTES_MAX {
            self.events.push(event);
        } else {
            self.is_cut = true;
        }
    }

    pub(crate) fn message(&mut self, step: FrameStep) {
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(step);
        } else {
            self.is_cut = true;
        }
    }

    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Returns the events, ordered by vtime.
    ///
    /// # Errors
    /// Returns an error if the span had more than are kept.
    pub fn events(&self) -> Result<&[Event], Error> {
        self.unless_cut()?;
        Ok(&self.events)
    }

    /// Returns the outcomes of frames between nodes, ordered by vtime.
    ///
    /// # Errors
    /// Returns an error if the span had more than are kept.
    pub fn messages(&self) -> Result<&[FrameStep], Error> {
        self.unless_cut()?;
        Ok(&self.messages)
    }

    fn unless_cut(&self) -> Result<(), Error> {
        match self.is_cut {
            true => Err(Error::Failed("the timeline has more events or messages than are kept".to_owned())),
            false => Ok(()),
        }
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

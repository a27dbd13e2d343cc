//! System calls, steps, events and messages together, as a trace shows them.

use everett_vmm::wire::log::FrameStep;

use super::follow::Observer;
use super::place::Place;
use super::steps::Steps;
use super::syscalls::Calls;
use crate::debug::cursor::Listener;
use crate::world::event::Event;

/// Observer of system calls, steps, events and messages.
pub struct Everything<'e> {
    /// Observer of system calls.
    pub calls: Calls<'e>,
    /// Observer of steps.
    pub steps: Steps<'e>,
    /// Takes each event.
    pub event: &'e mut dyn FnMut(&Event),
    /// Takes each outcome of a frame.
    pub message: &'e mut dyn FnMut(&FrameStep),
}

impl Listener for Everything<'_> {
    fn event(&mut self, event: &Event) {
        (self.event)(event);
    }

    fn message(&mut self, step: &FrameStep) {
        (self.message)(step);
    }

    fn goes_on(&mut self) -> bool {
        self.calls.goes_on()
    }
}

impl Observer for Everything<'_> {
    fn functions(&self) -> Vec<&'static str> {
        [self.calls.functions(), self.steps.functions()].concat()
    }

    fn at(&mut self, function: usize, place: &Place<'_>) -> anyhow::Result<()> {
        let count = self.calls.functions().len();
        match function.checked_sub(count) {
            None => self.calls.at(function, place),
            Some(function) => self.steps.at(function, place),
        }
    }
}

//! LAPIC and IOAPIC on one bus: takes interrupt lines, yields vectors for the CPU.

use serde::{Deserialize, Serialize};

use super::ioapic::IoApic;
use super::lapic::Lapic;
use crate::events::EventQueue;

/// The interrupt controllers of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    /// The CPU's interrupt controller.
    pub lapic: Lapic,
    /// The devices' interrupt controller.
    pub ioapic: IoApic,
}

impl Interrupts {
    /// Sets the line of a pin high or low.
    pub fn set_line(&mut self, pin: u8, high: bool) {
        if let Some(message) = self.ioapic.set_line(pin, high) {
            self.lapic.deliver(message);
        }
    }

    /// Drives the line of a pin high and low again, which is an edge.
    pub fn pulse(&mut self, pin: u8) {
        self.set_line(pin, true);
        self.set_line(pin, false);
    }

    /// Writes a LAPIC register. An end of interrupt goes on to the IOAPIC.
    pub fn write_lapic(&mut self, offset: u64, size: u8, value: u32, now: u64, events: &mut EventQueue) {
        if let Some(vector) = self.lapic.write(offset, size, value, now, events) {
            let lapic = &mut self.lapic;
            self.ioapic.end_of_interrupt(vector, |message| lapic.deliver(message));
        }
    }

    /// Writes an IOAPIC register.
    pub fn write_ioapic(&mut self, offset: u64, size: u8, value: u32) {
        if let Some(message) = self.ioapic.write(offset, size, value) {
            self.lapic.deliver(message);
        }
    }
}

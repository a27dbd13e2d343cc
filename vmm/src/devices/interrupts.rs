//! LAPIC and IOAPIC on one bus: lines in, a vector for the CPU out.

use serde::{Deserialize, Serialize};

use super::ioapic::IoApic;
use super::lapic::Lapic;
use crate::events::EventQueue;

/// The interrupt controllers of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    /// The CPU's.
    pub lapic: Lapic,
    /// The devices'.
    pub ioapic: IoApic,
}

impl Interrupts {
    /// Drive the line of a pin.
    pub fn set_line(&mut self, pin: u8, high: bool) {
        if let Some(message) = self.ioapic.set_line(pin, high) {
            self.lapic.deliver(message);
        }
    }

    /// Drive the line of a pin high and low again: an edge.
    pub fn pulse(&mut self, pin: u8) {
        self.set_line(pin, true);
        self.set_line(pin, false);
    }

    /// Store to the LAPIC.
    pub fn write_lapic(&mut self, offset: u64, size: u8, value: u32, now: u64, events: &mut EventQueue) {
        if let Some(vector) = self.lapic.write(offset, size, value, now, events) {
            let lapic = &mut self.lapic;
            self.ioapic.end_of_interrupt(vector, |message| lapic.deliver(message));
        }
    }

    /// Store to the IOAPIC.
    pub fn write_ioapic(&mut self, offset: u64, size: u8, value: u32) {
        if let Some(message) = self.ioapic.write(offset, size, value) {
            self.lapic.deliver(message);
        }
    }
}

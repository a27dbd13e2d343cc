//! LAPIC and IOAPIC, connected to each other: devices set interrupt lines, the CPU gets vectors.

use serde::{Deserialize, Serialize};

use super::ioapic::IoApic;
use super::lapic::Lapic;
use crate::events::EventQueue;

/// Interrupt controllers of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    /// Interrupt controller of the CPU.
    pub lapic: Lapic,
    /// Interrupt controller for the devices' lines.
    pub ioapic: IoApic,
}

impl Interrupts {
    /// Sets the interrupt line of a pin high or low.
    pub fn set_line(&mut self, pin: u8, high: bool) {
        if let Some(message) = self.ioapic.set_line(pin, high) {
            self.lapic.deliver(message);
        }
    }

    /// Sets the line of a pin high and then low, which is one edge.
    pub fn pulse(&mut self, pin: u8) {
        self.set_line(pin, true);
        self.set_line(pin, false);
    }

    /// Writes a LAPIC register. Passes an end of interrupt on to the IOAPIC.
    pub fn write_lapic(&mut self, offset: u64, size: u8, value: u32, now: u64, events: &mut EventQueue) {
        if let Some(vector) = self.lapic.write(offset, size, value, now, events) {
            let lapic = &mut self.lapic;
            self.ioapic.end_of_interrupt(vector, |message| lapic.deliver(message));
        }
    }

    /// Writes an IOAPIC register. An unmasked pin may interrupt the CPU at once.
    pub fn write_ioapic(&mut self, offset: u64, size: u8, value: u32) {
        if let Some(message) = self.ioapic.write(offset, size, value) {
            self.lapic.deliver(message);
        }
    }
}

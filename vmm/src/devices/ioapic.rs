//! The I/O APIC (82093AA data sheet): 24 pins, with an index register and a data register.
//!
//! Each pin has a line. An edge-triggered pin sends a message when its line becomes active. If the pin is masked at
//! that time, the edge is lost. A level-triggered pin sends a message while its line is active and its remote IRR bit
//! is clear. Sending sets remote IRR, and the end of interrupt clears it.

use serde::{Deserialize, Serialize};

use super::lapic::Message;

/// Number of interrupt pins.
pub const PINS: usize = 24;
/// Version register: version 0x11 in bits 0-7, and the index of the last redirection entry in bits 16-23.
const VERSION: u32 = ((PINS as u32 - 1) << 16) | 0x11;

const REMOTE_IRR: u64 = 1 << 14;
const LEVEL: u64 = 1 << 15;
const MASKED: u64 = 1 << 16;
const ACTIVE_LOW: u64 = 1 << 13;
const LOGICAL: u64 = 1 << 11;
/// Writable bits of a redirection entry: the destination and bits 0-16, except delivery status and remote IRR.
const WRITABLE: u64 = 0xff00_0000_0001_afff;

/// The I/O APIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoApic {
    id: u32,
    index: u32,
    entries: [u64; PINS],
    /// Levels of the lines: bit i is set if the line of pin i is high.
    lines: u32,
}

impl Default for IoApic {
    fn default() -> IoApic {
        IoApic { id: 0, index: 0, entries: [MASKED; PINS], lines: 0 }
    }
}

impl IoApic {
    /// Reads a register: a doubleword at offset 0 (index) or 0x10 (data). Any other access returns zero.
    pub fn read(&self, offset: u64, size: u8) -> u32 {
        match (offset, size) {
            (0, 4) => self.index,
            (0x10, 4) => match self.index {
                0 | 2 => self.id,
                1 => VERSION,
                0x10..0x40 => {
                    let entry = self.entries[(self.index as usize - 0x10) / 2];
                    (if self.index & 1 == 0 { entry } else { entry >> 32 }) as u32
                }
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Writes a register. Returns the message that a pin sends due to the write, if any.
    pub fn write(&mut self, offset: u64, size: u8, value: u32) -> Option<Message> {
        match (offset, size) {
            (0, 4) => self.index = value & 0xff,
            (0x10, 4) => match self.index {
                0 => self.id = value & 0x0f00_0000,
                0x10..0x40 => return self.set_entry((self.index as usize - 0x10) / 2, value),
                _ => {}
            },
            _ => {}
        }
        None
    }

    /// Sets the line of a pin high or low. Returns the message that the pin sends due to the change, if any.
    ///
    /// # Panics
    /// Panics if `pin` is not below [`PINS`]. The guest cannot cause this, because Everett chooses the pins.
    pub fn set_line(&mut self, pin: u8, high: bool) -> Option<Message> {
        let pin = usize::from(pin);
        let before = self.active(pin);
        if high {
            self.lines |= 1 << pin;
        } else {
            self.lines &= !(1 << pin);
        }
        if self.entries[pin] & LEVEL != 0 {
            return self.service_level(pin);
        }
        let rising = !before && self.active(pin);
        (rising && self.entries[pin] & MASKED == 0).then(|| self.message(pin))
    }

    /// Handles the CPU's end of interrupt for `vector`. Calls `send` for each level-triggered pin that is still active.
    pub fn end_of_interrupt(&mut self, vector: u8, mut send: impl FnMut(Message)) {
        for pin in 0..PINS {
            let entry = self.entries[pin];
            if entry as u8 == vector && entry & LEVEL != 0 && entry & REMOTE_IRR != 0 {
                self.entries[pin] &= !REMOTE_IRR;
                if let Some(message) = self.service_level(pin) {
                    send(message);
                }
            }
        }
    }

    fn set_entry(&mut self, pin: usize, half: u32) -> Option<Message> {
        let old = self.entries[pin];
        let new = if self.index & 1 == 0 {
            old & !0xffff_ffff | u64::from(half)
        } else {
            old & 0xffff_ffff | u64::from(half) << 32
        };
        self.entries[pin] = new & WRITABLE | old & REMOTE_IRR;
        if self.entries[pin] & LEVEL == 0 {
            // An edge-triggered pin has no remote IRR. Linux switches a pin to edge and back to clear a stuck remote
            // IRR.
            self.entries[pin] &= !REMOTE_IRR;
            return None;
        }
        self.service_level(pin)
    }

    fn service_level(&mut self, pin: usize) -> Option<Message> {
        let entry = self.entries[pin];
        if !self.active(pin) || entry & (MASKED | REMOTE_IRR) != 0 {
            return None;
        }
        self.entries[pin] |= REMOTE_IRR;
        Some(self.message(pin))
    }

    fn active(&self, pin: usize) -> bool {
        let high = self.lines & 1 << pin != 0;
        high != (self.entries[pin] & ACTIVE_LOW != 0)
    }

    fn message(&self, pin: usize) -> Message {
        let entry = self.entries[pin];
        Message {
            destination: (entry >> 56) as u8,
            logical: entry & LOGICAL != 0,
            mode: (entry >> 8 & 7) as u8,
            vector: entry as u8,
            level: entry & LEVEL != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(ioapic: &mut IoApic, pin: u32, entry: u64) -> Option<Message> {
        ioapic.write(0, 4, 0x11 + 2 * pin);
        ioapic.write(0x10, 4, (entry >> 32) as u32);
        ioapic.write(0, 4, 0x10 + 2 * pin);
        ioapic.write(0x10, 4, entry as u32)
    }
    fn get(ioapic: &mut IoApic, pin: u32) -> u64 {
        ioapic.write(0, 4, 0x10 + 2 * pin);
        let low = u64::from(ioapic.read(0x10, 4));
        ioapic.write(0, 4, 0x11 + 2 * pin);
        low | u64::from(ioapic.read(0x10, 4)) << 32
    }

    #[test]
    fn registers_read_as_written() {
        let mut ioapic = IoApic::default();
        ioapic.write(0, 4, 1);
        assert_eq!(ioapic.read(0x10, 4), 0x0017_0011);
        set(&mut ioapic, 5, u64::MAX);
        assert_eq!(get(&mut ioapic, 5), WRITABLE, "status bits cannot be written");
        assert_eq!(get(&mut ioapic, 6), MASKED);
    }

    #[test]
    fn an_edge_sends_once_and_is_lost_while_masked() {
        let mut ioapic = IoApic::default();
        ioapic.set_line(4, true);
        assert_eq!(set(&mut ioapic, 4, 0x31), None, "unmasking is not an edge");
        assert_eq!(ioapic.set_line(4, true), None);
        ioapic.set_line(4, false);
        let message = ioapic.set_line(4, true).unwrap();
        assert_eq!((message.vector, message.level, message.destination), (0x31, false, 0));
    }

    #[test]
    fn a_level_repeats_until_it_falls() {
        let mut ioapic = IoApic::default();
        set(&mut ioapic, 16, LEVEL | 0x40);
        assert!(ioapic.set_line(16, true).is_some());
        assert_eq!(ioapic.set_line(16, true), None, "remote IRR is set");
        assert_ne!(get(&mut ioapic, 16) & REMOTE_IRR, 0);
        let mut sent = 0;
        ioapic.end_of_interrupt(0x41, |_| sent += 1);
        assert_eq!(sent, 0, "another vector");
        ioapic.end_of_interrupt(0x40, |_| sent += 1);
        assert_eq!(sent, 1, "still active");
        ioapic.set_line(16, false);
        ioapic.end_of_interrupt(0x40, |_| sent += 1);
        assert_eq!(sent, 1);
    }

    #[test]
    fn a_masked_level_sends_when_unmasked_and_low_pins_invert() {
        let mut ioapic = IoApic::default();
        set(&mut ioapic, 16, LEVEL | MASKED | 0x40);
        assert_eq!(ioapic.set_line(16, true), None);
        assert!(set(&mut ioapic, 16, LEVEL | 0x40).is_some());
        assert_eq!(set(&mut ioapic, 17, LEVEL | ACTIVE_LOW | MASKED | 0x41), None);
        assert!(set(&mut ioapic, 17, LEVEL | ACTIVE_LOW | 0x41).is_some(), "a low line is active");
    }

    #[test]
    fn switching_to_edge_clears_remote_irr() {
        let mut ioapic = IoApic::default();
        set(&mut ioapic, 16, LEVEL | 0x40);
        ioapic.set_line(16, true);
        ioapic.set_line(16, false);
        set(&mut ioapic, 16, MASKED | 0x40);
        set(&mut ioapic, 16, LEVEL | 0x40);
        assert!(ioapic.set_line(16, true).is_some());
    }

    proptest! {
        #[test]
        fn garbage_is_harmless(steps in proptest::collection::vec((0u8..5, any::<u16>(), any::<u32>()), 1..200)) {
            let mut ioapic = IoApic::default();
            for (kind, offset, value) in steps {
                match kind {
                    0 => { ioapic.read(u64::from(offset), (value & 15) as u8); }
                    1 => { ioapic.write(u64::from(offset), (value & 15) as u8, value); }
                    2 => { ioapic.write(0, 4, value); }
                    3 => { ioapic.write(0x10, 4, value); }
                    _ => {
                        ioapic.set_line((value % 24) as u8, offset & 1 == 0);
                        ioapic.end_of_interrupt(value as u8, |_| {});
                    }
                }
            }
            let stored = postcard::to_stdvec(&ioapic).unwrap();
            prop_assert_eq!(postcard::from_bytes::<IoApic>(&stored).unwrap(), ioapic);
        }
    }
}

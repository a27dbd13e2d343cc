//! Passes the CPU's accesses to devices, at the exact vtime of the instruction. Reads of addresses without a device
//! return all ones; writes to them are ignored.

use super::stop::End;
use super::{Machine, State};
use crate::devices::lapic::reg::TIMER_CURRENT;
use crate::devices::power::PowerRequest;
use crate::layout::{
    APIC_BYTES, HPET, HPET_BYTES, IOAPIC, LAPIC, PM_TIMER_PORT, RESET_PORT, RTC_GSI, RTC_PORT,
    SLEEP_CONTROL_PORT, SLEEP_STATUS_PORT, UART_GSI, UART_PORT, VIRTIO, VIRTIO_STRIDE,
};

/// Offset of virtio-mmio's interrupt status register. Tests can plant a leak (deliberate nondeterminism, see
/// `leak.rs`), which puts noise into the values that the guest reads from this register.
const LEAKY_STATUS: u64 = virtio_bindings::virtio_mmio::VIRTIO_MMIO_INTERRUPT_STATUS as u64;

/// End of the port range of the PM timer.
const PM_TIMER_END: u16 = PM_TIMER_PORT + 4;

enum Target {
    Lapic(u64),
    IoApic(u64),
    Virtio(usize, u64),
    Hpet(u64),
    Nothing,
}

/// Returns a value of `size` bytes in which all bits are one.
fn ones(size: u8) -> u64 {
    match size {
        1 => 0xff,
        2 => 0xffff,
        4 => 0xffff_ffff,
        _ => u64::MAX,
    }
}

impl State {
    fn target(&self, gpa: u64, size: u8) -> Target {
        let inside = |base: u64, bytes: u64| gpa.checked_sub(base).filter(|o| o + u64::from(size) <= bytes);
        if let Some(offset) = inside(VIRTIO, VIRTIO_STRIDE * self.virtio.len() as u64) {
            Target::Virtio((offset / VIRTIO_STRIDE) as usize, offset % VIRTIO_STRIDE)
        } else if let Some(offset) = inside(LAPIC, APIC_BYTES) {
            Target::Lapic(offset)
        } else if let Some(offset) = inside(IOAPIC, APIC_BYTES) {
            Target::IoApic(offset)
        } else if let (Some(offset), true) = (inside(HPET, HPET_BYTES), self.legacy.is_some()) {
            Target::Hpet(offset)
        } else {
            Target::Nothing
        }
    }
}

impl Machine {
    pub(super) fn mmio_read(&mut self, gpa: u64, size: u8, now: u64) -> u64 {
        self.stats.mmio += 1;
        match self.state.target(gpa, size) {
            Target::Lapic(offset) => {
                let noise = if offset == TIMER_CURRENT { self.leak.mmio_noise() } else { 0 };
                u64::from(self.state.interrupts.lapic.read(offset, size, now) ^ noise)
            }
            Target::IoApic(offset) => u64::from(self.state.interrupts.ioapic.read(offset, size)),
            Target::Virtio(slot, offset) => {
                // The leak alters only the bit for a configuration change, so that the guest keeps running.
                let noisy = offset == LEAKY_STATUS && self.leak.mmio_noise() & 0x10 != 0;
                self.state.virtio[slot].read(offset, size) | if noisy { 2 } else { 0 }
            }
            Target::Hpet(offset) => {
                self.state.legacy.as_ref().map_or(0, |legacy| legacy.hpet.read(offset, size, now))
            }
            Target::Nothing => {
                self.output.unknown_access(now, false, gpa, size, None);
                ones(size)
            }
        }
    }

    pub(super) fn mmio_write(&mut self, gpa: u64, size: u8, value: u64, now: u64) {
        self.stats.mmio += 1;
        match self.state.target(gpa, size) {
            Target::Lapic(offset) => {
                let State { interrupts, events, .. } = &mut self.state;
                interrupts.write_lapic(offset, size, value as u32, now, events);
            }
            Target::IoApic(offset) => self.state.interrupts.write_ioapic(offset, size, value as u32),
            Target::Virtio(slot, offset) => {
                self.with_virtio(slot, |transport, cx| transport.write(offset, size, value, cx));
            }
            Target::Hpet(offset) => {
                let State { legacy, events, .. } = &mut self.state;
                if let Some(legacy) = legacy {
                    legacy.hpet.write(offset, size, value, now, events);
                }
            }
            Target::Nothing => self.output.unknown_access(now, false, gpa, size, Some(value)),
        }
    }

    pub(super) fn pio_read(&mut self, port: u16, size: u8, now: u64) -> u64 {
        self.stats.pio += 1;
        let state = &mut self.state;
        if let Some(value) = state.legacy.as_ref().and_then(|legacy| legacy.read(port, size)) {
            return value;
        }
        match (port, size) {
            (UART_PORT..=0x3ff, 1) => {
                let value = state.uart.read(port - UART_PORT);
                state.interrupts.set_line(UART_GSI, state.uart.line());
                u64::from(value)
            }
            (RTC_PORT..=0x71, 1) => {
                let value = state.rtc.read(port - RTC_PORT, now, &mut state.events);
                state.interrupts.set_line(RTC_GSI, state.rtc.line());
                u64::from(value)
            }
            (PM_TIMER_PORT, 4) | (SLEEP_CONTROL_PORT | SLEEP_STATUS_PORT | RESET_PORT, 1) => {
                u64::from(state.power.read(port, now))
            }
            // The guest may also read the PM timer byte by byte or in words.
            (PM_TIMER_PORT..PM_TIMER_END, _) => {
                u64::from(state.power.read(PM_TIMER_PORT, now)) >> (8 * (port - PM_TIMER_PORT)) & ones(size)
            }
            _ => {
                self.output.unknown_access(now, true, u64::from(port), size, None);
                ones(size)
            }
        }
    }

    pub(super) fn pio_write(&mut self, port: u16, size: u8, value: u32, now: u64) -> Result<(), End> {
        self.stats.pio += 1;
        let state = &mut self.state;
        match state.legacy.as_mut().and_then(|legacy| legacy.write(port, size, value)) {
            Some(true) => return Err(End::PowerOff),
            Some(false) => return Ok(()),
            None => {}
        }
        match (port, size) {
            (UART_PORT..=0x3ff, 1) => {
                if let Some(byte) = state.uart.write(port - UART_PORT, value as u8) {
                    self.output.serial(now, byte);
                }
                state.interrupts.set_line(UART_GSI, state.uart.line());
            }
            (RTC_PORT..=0x71, 1) => {
                state.rtc.write(port - RTC_PORT, value as u8, now, &mut state.events);
                state.interrupts.set_line(RTC_GSI, state.rtc.line());
            }
            (SLEEP_CONTROL_PORT | SLEEP_STATUS_PORT | RESET_PORT, 1) => {
                match state.power.write(port, value as u8) {
                    Some(PowerRequest::Off) => return Err(End::PowerOff),
                    Some(PowerRequest::Reset) => return Err(End::Reset),
                    None => {}
                }
            }
            // Ports for POST codes and for delays. Linux writes to both; Everett ignores the writes.
            (0x80 | 0xed, _) => {}
            _ => self.output.unknown_access(now, true, u64::from(port), size, Some(u64::from(value))),
        }
        Ok(())
    }
}

//! Older PC devices, for machines in clock modes `exit` and `branch`, where kernels must not use the TSC.
//!
//! A kernel without a TSC reads the time from the HPET, and every read is an exit. The HPET also interrupts for the
//! kernel's ticks, because the kernel cannot find out the LAPIC timer's frequency. Linux uses HPET ticks only on
//! platforms that are not hardware-reduced and have a PIC. So these machines have ACPI's fixed PM1 registers and the
//! mask registers of two PICs, neither of which ever interrupts. A kernel without a TSC also mixes a PIT's count into
//! the random layout of its address space. The PIT of these machines stands still and adds no randomness, but the
//! kernel also mixes in its boot seed.

use serde::{Deserialize, Serialize};

use super::hpet::Hpet;
use super::power::SLEEP_TYPE_S5;
use crate::layout::{PIC_PORTS, PIT_PORT, PM1_CONTROL_PORT, PM1_EVENT_PORT};

/// Last of the PIT's ports, its control port.
const PIT_LAST_PORT: u16 = PIT_PORT + 3;
/// SCI_EN bit of PM1 control. It is always set, because the platform is in ACPI mode from power-on.
const SCI_ENABLED: u16 = 1;
const SLEEP_ENABLE: u16 = 1 << 13;

/// Registers of the legacy devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Legacy {
    /// HPET with its counter and comparators.
    pub hpet: Hpet,
    /// Interrupt masks of the two PICs.
    masks: [u8; 2],
    pm1_enable: u16,
    pm1_control: u16,
}

impl Legacy {
    /// Reads a port. Returns `None` if none of these devices has the port.
    pub fn read(&self, port: u16, size: u8) -> Option<u64> {
        Some(match (port, size) {
            // PIC command port: no interrupt is requested, and none is in service.
            (port, 1) if port == PIC_PORTS[0] || port == PIC_PORTS[1] => 0,
            (port, 1) if port == PIC_PORTS[0] + 1 => self.masks[0].into(),
            (port, 1) if port == PIC_PORTS[1] + 1 => self.masks[1].into(),
            (PIT_PORT..=PIT_LAST_PORT, 1) => 0,
            // PM1 status: no event has happened.
            (PM1_EVENT_PORT, 2) => 0,
            (PM1_EVENT_PORT, 4) => u64::from(self.pm1_enable) << 16,
            (port, 2) if port == PM1_EVENT_PORT + 2 => self.pm1_enable.into(),
            (PM1_CONTROL_PORT, 2) => (self.pm1_control | SCI_ENABLED).into(),
            _ => return None,
        })
    }

    /// Writes a port. Returns `None` if none of these devices has the port. Otherwise returns true if the guest powers
    /// off.
    pub fn write(&mut self, port: u16, size: u8, value: u32) -> Option<bool> {
        match (port, size) {
            (port, 1) if port == PIC_PORTS[0] || port == PIC_PORTS[1] => {}
            (port, 1) if port == PIC_PORTS[0] + 1 => self.masks[0] = value as u8,
            (port, 1) if port == PIC_PORTS[1] + 1 => self.masks[1] = value as u8,
            (PIT_PORT..=PIT_LAST_PORT, 1) => {}
            (PM1_EVENT_PORT, 2) => {}
            (PM1_EVENT_PORT, 4) => self.pm1_enable = (value >> 16) as u16,
            (port, 2) if port == PM1_EVENT_PORT + 2 => self.pm1_enable = value as u16,
            (PM1_CONTROL_PORT, 2) => {
                let value = value as u16;
                self.pm1_control = value & !SLEEP_ENABLE;
                let s5 = value >> 10 & 7 == u16::from(SLEEP_TYPE_S5);
                return Some(value & SLEEP_ENABLE != 0 && s5);
            }
            _ => return None,
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pics_keep_their_masks_so_that_kernels_find_them() {
        let mut legacy = Legacy::default();
        assert_eq!(legacy.write(0x21, 1, 0xfb), Some(false));
        assert_eq!(
            (legacy.read(0x21, 1), legacy.read(0xa1, 1), legacy.read(0x22, 1)),
            (Some(0xfb), Some(0), None)
        );
    }

    #[test]
    fn only_s5_with_enable_powers_off() {
        let mut legacy = Legacy::default();
        let s5 = u32::from(SLEEP_TYPE_S5) << 10;
        assert_eq!(legacy.write(PM1_CONTROL_PORT, 2, s5), Some(false));
        assert_eq!(legacy.write(PM1_CONTROL_PORT, 2, 3 << 10 | 1 << 13), Some(false));
        assert_eq!(legacy.read(PM1_CONTROL_PORT, 2), Some(3 << 10 | 1));
        assert_eq!(legacy.write(PM1_CONTROL_PORT, 2, s5 | 1 << 13), Some(true));
        assert_eq!(legacy.write(PM1_CONTROL_PORT, 4, 0), None);
    }
}

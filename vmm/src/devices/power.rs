//! ACPI's fixed registers: sleep control and status of a hardware-reduced platform, reset, and the PM timer.

use serde::{Deserialize, Serialize};

use crate::clock::NANOS;
use crate::layout::{PM_TIMER_PORT, RESET_PORT, RESET_VALUE, SLEEP_CONTROL_PORT, SLEEP_STATUS_PORT};

/// Sleep type of `\_S5` (soft off), which the DSDT declares.
pub const SLEEP_TYPE_S5: u8 = 5;
/// SLP_EN bit of the sleep control register.
const SLEEP_ENABLE: u8 = 1 << 5;
/// WAK_STS bit of the sleep status register.
const WAKE_STATUS: u8 = 1 << 7;
/// Frequency of the PM timer in Hz (ACPI 4.8.2.1).
const PM_TIMER_HZ: u128 = 3_579_545;
/// Mask of the PM timer, which has 24 bits because TMR_VAL_EXT is clear.
const PM_TIMER_MASK: u128 = 0xff_ffff;

/// Request of the guest to power off or to reset the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerRequest {
    /// Power off (S5).
    Off,
    /// Reset.
    Reset,
}

/// State of the fixed registers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    sleep_control: u8,
}

impl Power {
    /// Reads a port of the fixed registers. `now` is the vtime in nanoseconds.
    pub fn read(&self, port: u16, now: u64) -> u32 {
        match port {
            SLEEP_CONTROL_PORT => u32::from(self.sleep_control),
            SLEEP_STATUS_PORT | RESET_PORT => 0,
            PM_TIMER_PORT => ((u128::from(now) * PM_TIMER_HZ / u128::from(NANOS)) & PM_TIMER_MASK) as u32,
            _ => u32::MAX,
        }
    }

    /// Writes a port of the fixed registers. Returns the request that the guest makes by the write, if any.
    pub fn write(&mut self, port: u16, value: u8) -> Option<PowerRequest> {
        match port {
            SLEEP_CONTROL_PORT => {
                self.sleep_control = value & !SLEEP_ENABLE;
                let s5 = value >> 2 & 7 == SLEEP_TYPE_S5;
                (value & SLEEP_ENABLE != 0 && s5).then_some(PowerRequest::Off)
            }
            RESET_PORT => (value == RESET_VALUE).then_some(PowerRequest::Reset),
            // Writing WAK_STS clears the bit, which is never set, because the machine never wakes from a sleep.
            SLEEP_STATUS_PORT if value & WAKE_STATUS != 0 => None,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_s5_with_enable_powers_off() {
        let mut power = Power::default();
        assert_eq!(power.write(SLEEP_CONTROL_PORT, SLEEP_TYPE_S5 << 2), None);
        assert_eq!(power.write(SLEEP_CONTROL_PORT, 3 << 2 | SLEEP_ENABLE), None);
        assert_eq!(
            power.write(SLEEP_CONTROL_PORT, SLEEP_TYPE_S5 << 2 | SLEEP_ENABLE),
            Some(PowerRequest::Off)
        );
        assert_eq!(power.write(RESET_PORT, 6), None);
        assert_eq!(power.write(RESET_PORT, RESET_VALUE), Some(PowerRequest::Reset));
    }

    #[test]
    fn the_pm_timer_counts_and_wraps() {
        let power = Power::default();
        assert_eq!(power.read(PM_TIMER_PORT, 0), 0);
        assert_eq!(power.read(PM_TIMER_PORT, NANOS), 3_579_545);
        assert_eq!(power.read(PM_TIMER_PORT, 5 * NANOS), 5 * 3_579_545 - (1 << 24));
    }
}

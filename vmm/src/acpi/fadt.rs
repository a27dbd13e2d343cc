//! The fixed description table: ports of power management, and what the platform lacks (ACPI 6.5, section 5.2.9).

use super::table::Table;
use crate::devices::rtc::CENTURY;
use crate::layout::{
    PM_TIMER_PORT, PM1_CONTROL_PORT, PM1_EVENT_PORT, RESET_PORT, RESET_VALUE, SCI_GSI, SLEEP_CONTROL_PORT,
    SLEEP_STATUS_PORT,
};

const REVISION: u8 = 6;
const MINOR_REVISION: u8 = 5;
const LENGTH: usize = 276;

/// Flags (ACPI 5.2.9, table 5.10).
mod flag {
    pub(super) const WBINVD: u32 = 1;
    pub(super) const PWR_BUTTON: u32 = 1 << 4;
    pub(super) const SLP_BUTTON: u32 = 1 << 5;
    pub(super) const RESET_REG_SUP: u32 = 1 << 10;
    pub(super) const HEADLESS: u32 = 1 << 12;
    pub(super) const HW_REDUCED_ACPI: u32 = 1 << 20;
}

/// IA-PC boot flag (ACPI 5.2.9.3): VGA is not present. The flags for legacy devices, an 8042 and "no RTC" stay clear.
const BOOT_NO_VGA: u16 = 1 << 2;
/// IA-PC boot flag: no ASPM control.
const BOOT_NO_ASPM: u16 = 1 << 4;

/// Access sizes of registers (ACPI 5.2.3.2).
#[derive(Clone, Copy)]
enum Access {
    Byte = 1,
    Word = 2,
    Dword = 3,
}

/// Returns the FADT.
pub(super) fn table(dsdt: u64, legacy: bool) -> Vec<u8> {
    let mut fadt = Table::new(*b"FACP", REVISION).zeroes(LENGTH);
    let mut flags = flag::WBINVD | flag::PWR_BUTTON | flag::SLP_BUTTON | flag::RESET_REG_SUP | flag::HEADLESS;
    if legacy {
        fadt.set(46, u16::from(SCI_GSI).to_le_bytes());
        fadt.set(56, u32::from(PM1_EVENT_PORT).to_le_bytes());
        fadt.set(64, u32::from(PM1_CONTROL_PORT).to_le_bytes());
        fadt.set(88, [4]); // PM1_EVT_LEN
        fadt.set(89, [2]); // PM1_CNT_LEN
        fadt.set(148, port(PM1_EVENT_PORT, 32, Access::Word));
        fadt.set(172, port(PM1_CONTROL_PORT, 16, Access::Word));
    } else {
        flags |= flag::HW_REDUCED_ACPI;
    }
    fadt.set(76, u32::from(PM_TIMER_PORT).to_le_bytes());
    fadt.set(91, [4]); // PM_TMR_LEN
    fadt.set(108, [CENTURY]);
    fadt.set(109, (BOOT_NO_VGA | BOOT_NO_ASPM).to_le_bytes());
    fadt.set(112, flags.to_le_bytes());
    fadt.set(116, port(RESET_PORT, 8, Access::Byte));
    fadt.set(128, [RESET_VALUE]);
    fadt.set(131, [MINOR_REVISION]);
    fadt.set(140, dsdt.to_le_bytes());
    fadt.set(208, port(PM_TIMER_PORT, 32, Access::Dword));
    fadt.set(244, port(SLEEP_CONTROL_PORT, 8, Access::Byte));
    fadt.set(256, port(SLEEP_STATUS_PORT, 8, Access::Byte));
    fadt.set(268, *b"Everett\0"); // the hypervisor's vendor
    fadt.finish()
}

/// Returns the generic address of a register at a port (ACPI 5.2.3.2).
fn port(address: u16, bits: u8, access: Access) -> [u8; 12] {
    const SYSTEM_IO: u8 = 1;
    let mut register = [0; 12];
    register[..4].copy_from_slice(&[SYSTEM_IO, bits, 0, access as u8]);
    register[4..6].copy_from_slice(&address.to_le_bytes());
    register
}

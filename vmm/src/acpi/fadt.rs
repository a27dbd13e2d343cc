//! The FADT (fixed ACPI description table): power management ports, and features that the platform lacks (ACPI 6.5,
//! section 5.2.9).

use super::table::Table;
use crate::devices::rtc::CENTURY;
use crate::layout::{
    PM_TIMER_PORT, PM1_CONTROL_PORT, PM1_EVENT_PORT, RESET_PORT, RESET_VALUE, SCI_GSI, SLEEP_CONTROL_PORT,
    SLEEP_STATUS_PORT,
};

const REVISION: u8 = 6;
const MINOR_REVISION: u8 = 5;
const LENGTH: usize = 276;

/// Offsets of the non-zero fields (ACPI section 5.2.9, table 5.9).
mod offset {
    pub(super) const SCI_INT: usize = 46;
    pub(super) const PM1A_EVT_BLK: usize = 56;
    pub(super) const PM1A_CNT_BLK: usize = 64;
    pub(super) const PM_TMR_BLK: usize = 76;
    pub(super) const PM1_EVT_LEN: usize = 88;
    pub(super) const PM1_CNT_LEN: usize = 89;
    pub(super) const PM_TMR_LEN: usize = 91;
    pub(super) const CENTURY: usize = 108;
    pub(super) const IAPC_BOOT_ARCH: usize = 109;
    pub(super) const FLAGS: usize = 112;
    pub(super) const RESET_REG: usize = 116;
    pub(super) const RESET_VALUE: usize = 128;
    pub(super) const MINOR_VERSION: usize = 131;
    pub(super) const X_DSDT: usize = 140;
    pub(super) const X_PM1A_EVT_BLK: usize = 148;
    pub(super) const X_PM1A_CNT_BLK: usize = 172;
    pub(super) const X_PM_TMR_BLK: usize = 208;
    pub(super) const SLEEP_CONTROL_REG: usize = 244;
    pub(super) const SLEEP_STATUS_REG: usize = 256;
    pub(super) const HYPERVISOR_VENDOR: usize = 268;
}

/// Flags (ACPI section 5.2.9, table 5.10).
mod flag {
    pub(super) const WBINVD: u32 = 1;
    pub(super) const PWR_BUTTON: u32 = 1 << 4;
    pub(super) const SLP_BUTTON: u32 = 1 << 5;
    pub(super) const RESET_REG_SUP: u32 = 1 << 10;
    pub(super) const HEADLESS: u32 = 1 << 12;
    pub(super) const HW_REDUCED_ACPI: u32 = 1 << 20;
}

/// IA-PC boot flag (ACPI section 5.2.9.3): VGA is not present. The flags for legacy devices, an 8042 and "no RTC" stay
/// clear.
const BOOT_NO_VGA: u16 = 1 << 2;
/// IA-PC boot flag: no ASPM control.
const BOOT_NO_ASPM: u16 = 1 << 4;

/// Access sizes of registers (ACPI section 5.2.3.2).
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
        fadt.set(offset::SCI_INT, u16::from(SCI_GSI).to_le_bytes());
        fadt.set(offset::PM1A_EVT_BLK, u32::from(PM1_EVENT_PORT).to_le_bytes());
        fadt.set(offset::PM1A_CNT_BLK, u32::from(PM1_CONTROL_PORT).to_le_bytes());
        fadt.set(offset::PM1_EVT_LEN, [4]);
        fadt.set(offset::PM1_CNT_LEN, [2]);
        fadt.set(offset::X_PM1A_EVT_BLK, port(PM1_EVENT_PORT, 32, Access::Word));
        fadt.set(offset::X_PM1A_CNT_BLK, port(PM1_CONTROL_PORT, 16, Access::Word));
    } else {
        flags |= flag::HW_REDUCED_ACPI;
    }
    fadt.set(offset::PM_TMR_BLK, u32::from(PM_TIMER_PORT).to_le_bytes());
    fadt.set(offset::PM_TMR_LEN, [4]);
    fadt.set(offset::CENTURY, [CENTURY]);
    fadt.set(offset::IAPC_BOOT_ARCH, (BOOT_NO_VGA | BOOT_NO_ASPM).to_le_bytes());
    fadt.set(offset::FLAGS, flags.to_le_bytes());
    fadt.set(offset::RESET_REG, port(RESET_PORT, 8, Access::Byte));
    fadt.set(offset::RESET_VALUE, [RESET_VALUE]);
    fadt.set(offset::MINOR_VERSION, [MINOR_REVISION]);
    fadt.set(offset::X_DSDT, dsdt.to_le_bytes());
    fadt.set(offset::X_PM_TMR_BLK, port(PM_TIMER_PORT, 32, Access::Dword));
    fadt.set(offset::SLEEP_CONTROL_REG, port(SLEEP_CONTROL_PORT, 8, Access::Byte));
    fadt.set(offset::SLEEP_STATUS_REG, port(SLEEP_STATUS_PORT, 8, Access::Byte));
    fadt.set(offset::HYPERVISOR_VENDOR, *b"Everett\0");
    fadt.finish()
}

/// Returns the generic address structure of a register at a port (ACPI section 5.2.3.2).
fn port(address: u16, bits: u8, access: Access) -> [u8; 12] {
    const SYSTEM_IO: u8 = 1;
    let mut register = [0; 12];
    register[..4].copy_from_slice(&[SYSTEM_IO, bits, 0, access as u8]);
    register[4..6].copy_from_slice(&address.to_le_bytes());
    register
}

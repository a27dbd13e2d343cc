//! ACPI tables: how the guest finds its devices (ACPI 6.5). Hardware-reduced: no SCI, no fixed events, no PIC, no PIT.
//!
//! RSDP, XSDT, FADT, MADT and DSDT in one block at [`ACPI`]. The FADT still announces the PM timer by its extended
//! address, which Linux honours on hardware-reduced platforms too; the DSDT is in [`dsdt`].

mod dsdt;

use acpi_tables::Aml;
use acpi_tables::fadt::{FADTBuilder, Flags};
use acpi_tables::gas::{AccessSize, AddressSpace, GAS};
use acpi_tables::madt::{EnabledStatus, IoApic, LocalInterruptController, MADT, ProcessorLocalApic};
use acpi_tables::rsdp::Rsdp;
use acpi_tables::sdt::Sdt;
use acpi_tables::xsdt::XSDT;

use crate::devices::rtc::CENTURY;
use crate::layout::{
    ACPI, ACPI_BYTES, IOAPIC, LAPIC, PM_TIMER_PORT, RESET_PORT, RESET_VALUE, SLEEP_CONTROL_PORT,
    SLEEP_STATUS_PORT,
};

const OEM: [u8; 6] = *b"EVERET";
const TABLE: [u8; 8] = *b"EVERETT1";
const REVISION: u32 = 1;
/// IA-PC boot flags (ACPI 5.2.9.3): VGA not present, no ASPM control. No legacy devices, no 8042; there is an RTC.
const BOOT_NO_VGA: u16 = 1 << 2;
const BOOT_NO_ASPM: u16 = 1 << 4;

/// All tables for a machine with `virtio_slots` virtio devices, as they lie at [`ACPI`]: the RSDP is first.
///
/// # Panics
/// If they do not fit into [`ACPI_BYTES`]: the slots are bounded by us, not by the guest.
pub(crate) fn tables(virtio_slots: usize) -> Vec<u8> {
    let mut block = Block { bytes: Vec::new() };
    // The RSDP is first and points to the XSDT, which comes when its addresses are known.
    block.bytes.resize(Rsdp::len(), 0);

    let dsdt = block.append(&bytes(&dsdt::table(virtio_slots)));
    let fadt = block.append(&bytes(&fadt(dsdt)));
    let madt = block.append(&bytes(&madt()));
    let mut xsdt = XSDT::new(OEM, TABLE, REVISION);
    xsdt.add_entry(fadt);
    xsdt.add_entry(madt);
    let xsdt = block.append(&bytes(&xsdt));

    block.bytes[..Rsdp::len()].copy_from_slice(&bytes(&Rsdp::new(OEM, xsdt)));
    assert!(block.bytes.len() as u64 <= ACPI_BYTES);
    block.bytes
}

struct Block {
    bytes: Vec<u8>,
}

impl Block {
    /// Append a table, aligned. Returns its guest-physical address.
    fn append(&mut self, table: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let gpa = ACPI + self.bytes.len() as u64;
        self.bytes.extend_from_slice(table);
        gpa
    }
}

fn bytes(table: &dyn Aml) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.to_aml_bytes(&mut bytes);
    bytes
}

fn port(address: u16, bits: u8, access: AccessSize) -> GAS {
    GAS::new(AddressSpace::SystemIo, bits, 0, access, u64::from(address))
}

fn fadt(dsdt: u64) -> acpi_tables::fadt::FADT {
    let mut fadt = FADTBuilder::new(OEM, TABLE, REVISION)
        .dsdt_64(dsdt)
        .flag(Flags::Wbinvd)
        .flag(Flags::PwrButton)
        .flag(Flags::SlpButton)
        .flag(Flags::ResetRegSup)
        .flag(Flags::Headless)
        .flag(Flags::HwReducedAcpi);
    fadt.iapc_boot_arch = (BOOT_NO_VGA | BOOT_NO_ASPM).into();
    fadt.century = CENTURY;
    fadt.reset_reg = port(RESET_PORT, 8, AccessSize::ByteAccess);
    fadt.reset_value = RESET_VALUE;
    fadt.sleep_control_reg = port(SLEEP_CONTROL_PORT, 8, AccessSize::ByteAccess);
    fadt.sleep_status_reg = port(SLEEP_STATUS_PORT, 8, AccessSize::ByteAccess);
    fadt.pm_tmr_blk = u32::from(PM_TIMER_PORT).into();
    fadt.pm_tmr_len = 4;
    fadt.x_pm_tmr_blk = port(PM_TIMER_PORT, 32, AccessSize::DwordAccess);
    fadt.hypervisor_vendor_identity = u64::from_le_bytes(*b"Everett\0").into();
    fadt.finalize()
}

fn madt() -> MADT {
    // Addresses fit: both are below 4 GiB.
    let mut madt = MADT::new(OEM, TABLE, REVISION, LocalInterruptController::Address(LAPIC as u32));
    madt.add_structure(ProcessorLocalApic::new(0, 0, EnabledStatus::Enabled));
    madt.add_structure(IoApic::new(0, IOAPIC as u32, 0));
    madt
}

/// A definition block with this AML.
fn definition_block(aml: &[u8]) -> Sdt {
    let mut table = Sdt::new(*b"DSDT", 36, 2, OEM, TABLE, REVISION);
    table.append_slice(aml);
    table
}

#[cfg(test)]
mod tests;

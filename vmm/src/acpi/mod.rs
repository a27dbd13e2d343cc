//! ACPI tables, by which the guest finds its devices (ACPI 6.5). Hardware-reduced: no SCI, no fixed events, no PIC, no
//! PIT.
//!
//! RSDP, XSDT, FADT, MADT and DSDT lie in one block at [`ACPI`]. The FADT still announces the PM timer by its extended
//! address, which Linux honours on hardware-reduced platforms, too. The DSDT is in [`dsdt`].
//!
//! With *legacy* devices (`crate::devices::legacy`) the platform is not hardware-reduced: it has PM1 blocks and an SCI
//! that never occurs, two PICs, and an HPET with its table.

mod dsdt;

use acpi_tables::Aml;
use acpi_tables::fadt::{FADTBuilder, Flags};
use acpi_tables::gas::{AccessSize, AddressSpace, GAS};
use acpi_tables::madt::{EnabledStatus, IoApic, LocalInterruptController, MADT, ProcessorLocalApic};
use acpi_tables::rsdp::Rsdp;
use acpi_tables::sdt::Sdt;
use acpi_tables::xsdt::XSDT;

use crate::devices::hpet::CAPABILITIES;
use crate::devices::rtc::CENTURY;
use crate::layout::{
    ACPI, ACPI_BYTES, HPET, IOAPIC, LAPIC, PM_TIMER_PORT, PM1_CONTROL_PORT, PM1_EVENT_PORT, RESET_PORT,
    RESET_VALUE, SCI_GSI, SLEEP_CONTROL_PORT, SLEEP_STATUS_PORT, TIMER_GSI,
};

const OEM: [u8; 6] = *b"EVERET";
const TABLE: [u8; 8] = *b"EVERETT1";
const REVISION: u32 = 1;
/// IA-PC boot flag (ACPI 5.2.9.3): VGA is not present. The flags for legacy devices, an 8042 and "no RTC" stay clear.
const BOOT_NO_VGA: u16 = 1 << 2;
/// IA-PC boot flag: no ASPM control.
const BOOT_NO_ASPM: u16 = 1 << 4;

/// Returns all tables of a machine with `virtio_slots` virtio devices, as they lie at [`ACPI`]; the RSDP is first.
///
/// # Panics
/// Panics if the tables do not fit into [`ACPI_BYTES`]. Everett, not the guest, chooses the number of slots.
pub(crate) fn tables(virtio_slots: usize, legacy: bool) -> Vec<u8> {
    let mut block = Block { bytes: Vec::new() };
    // The RSDP is first and points to the XSDT, so it is written last, when the XSDT's address is known.
    block.bytes.resize(Rsdp::len(), 0);

    let dsdt = block.append(&bytes(&dsdt::table(virtio_slots)));
    let fadt = block.append(&bytes(&fadt(dsdt, legacy)));
    let madt = block.append(&if legacy { legacy_madt() } else { bytes(&madt()) });
    let hpet = legacy.then(|| block.append(&bytes(&hpet())));
    let mut xsdt = XSDT::new(OEM, TABLE, REVISION);
    xsdt.add_entry(fadt);
    xsdt.add_entry(madt);
    if let Some(hpet) = hpet {
        xsdt.add_entry(hpet);
    }
    let xsdt = block.append(&bytes(&xsdt));

    block.bytes[..Rsdp::len()].copy_from_slice(&bytes(&Rsdp::new(OEM, xsdt)));
    assert!(block.bytes.len() as u64 <= ACPI_BYTES);
    block.bytes
}

struct Block {
    bytes: Vec<u8>,
}

impl Block {
    /// Appends a table, aligned to 16 bytes. Returns its guest-physical address.
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

fn fadt(dsdt: u64, legacy: bool) -> acpi_tables::fadt::FADT {
    let mut fadt = FADTBuilder::new(OEM, TABLE, REVISION)
        .dsdt_64(dsdt)
        .flag(Flags::Wbinvd)
        .flag(Flags::PwrButton)
        .flag(Flags::SlpButton)
        .flag(Flags::ResetRegSup)
        .flag(Flags::Headless);
    if legacy {
        fadt.sci_int = u16::from(SCI_GSI).into();
        fadt.pm1a_evt_blk = u32::from(PM1_EVENT_PORT).into();
        fadt.pm1_evt_len = 4;
        fadt.x_pm1a_evt_blk = port(PM1_EVENT_PORT, 32, AccessSize::WordAccess);
        fadt.pm1a_cnt_blk = u32::from(PM1_CONTROL_PORT).into();
        fadt.pm1_cnt_len = 2;
        fadt.x_pm1a_cnt_blk = port(PM1_CONTROL_PORT, 16, AccessSize::WordAccess);
    } else {
        fadt = fadt.flag(Flags::HwReducedAcpi);
    }
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
    // Both addresses are below 4 GiB, so the casts lose nothing.
    let mut madt = MADT::new(OEM, TABLE, REVISION, LocalInterruptController::Address(LAPIC as u32));
    madt.add_structure(ProcessorLocalApic::new(0, 0, EnabledStatus::Enabled));
    madt.add_structure(IoApic::new(0, IOAPIC as u32, 0));
    madt
}

/// Returns the MADT with two PICs (PCAT_COMPAT) and interrupt source overrides for the timer and the SCI.
/// ISA's IRQ 0 is at the pin at which the HPET replaces the PIT. The override makes the SCI active high: its line is
/// never driven, and an undriven active-low line would interrupt without end. `acpi_tables` supports none of this.
fn legacy_madt() -> Vec<u8> {
    /// Interrupt source override (type 2, 10 bytes): bus ISA, IRQ 0, its pin, polarity and trigger as on ISA.
    const TIMER: [u8; 10] = [2, 10, 0, 0, TIMER_GSI, 0, 0, 0, 0, 0];
    /// Interrupt source override: active high, level-triggered.
    const SCI: [u8; 10] = [2, 10, 0, SCI_GSI, SCI_GSI, 0, 0, 0, 0b1101, 0];
    const LENGTH: usize = 4;
    const CHECKSUM: usize = 9;
    const FLAGS: usize = 40;
    let mut table = bytes(&madt());
    table.extend(SCI);
    table.extend(TIMER);
    table[FLAGS] |= 1;
    // The table has only a few dozen bytes, so its length fits into one byte.
    table[LENGTH] = table.len() as u8;
    table[CHECKSUM] = 0;
    table[CHECKSUM] = table.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    table
}

/// Returns the HPET's table (IA-PC HPET specification 1.0a, 3.2.4).
fn hpet() -> Sdt {
    let mut table = Sdt::new(*b"HPET", 36, 1, OEM, TABLE, REVISION);
    // Event timer block ID: the lower half of the capabilities register.
    table.append_slice(&(CAPABILITIES as u32).to_le_bytes());
    // Address: memory, 64 bits wide.
    table.append_slice(&[0, 64, 0, 0]);
    table.append_slice(&HPET.to_le_bytes());
    // HPET number, minimum period in ticks without lost interrupts, no page protection.
    table.append_slice(&[0, 100, 0, 0]);
    table
}

/// Returns a definition block with this AML.
fn definition_block(aml: &[u8]) -> Sdt {
    let mut table = Sdt::new(*b"DSDT", 36, 2, OEM, TABLE, REVISION);
    table.append_slice(aml);
    table
}

#[cfg(test)]
mod tests;

//! ACPI tables, which describe the machine's devices to the guest (ACPI 6.5). The platform is hardware-reduced: no SCI,
//! no fixed events, no PIC, no PIT.
//!
//! RSDP, XSDT, FADT, MADT and DSDT lie in one block at [`ACPI`]. The FADT still announces the PM timer, by its extended
//! address. Linux uses a PM timer with such an address on hardware-reduced platforms, too.
//!
//! With *legacy* devices (`crate::devices::legacy`), the platform is not hardware-reduced. It then has PM1 blocks, an
//! SCI that never occurs, two PICs, and an HPET with its table.
//!
//! - this file: the block, and its small tables
//! - [`table`]: header and checksum of any table
//! - [`fadt`]: the FADT, with the ports of ACPI's fixed registers
//! - [`dsdt`], [`aml`]: the DSDT, which lists the devices, and the byte code in which it is written
//!
//! Everett encodes these tables itself, without a library. Guests read them, so a changed byte requires a new machine
//! version.

mod aml;
mod dsdt;
mod fadt;
mod table;

use table::{Table, checksum};

use crate::devices::hpet::CAPABILITIES;
use crate::layout::{ACPI, ACPI_BYTES, HPET, IOAPIC, LAPIC, SCI_GSI, TIMER_GSI};

const RSDP_LENGTH: usize = 36;

/// Returns all tables of a machine with `virtio_slots` virtio devices, as one block for address [`ACPI`]. The RSDP is
/// first.
///
/// # Panics
/// Panics if the tables do not fit into [`ACPI_BYTES`]. The guest has no influence on their size.
pub(crate) fn tables(virtio_slots: usize, legacy: bool) -> Vec<u8> {
    let mut block = Block { bytes: Vec::new() };
    // The RSDP comes first but is written last, because it contains the XSDT's address.
    block.bytes.resize(RSDP_LENGTH, 0);

    let dsdt = block.append(&dsdt::table(virtio_slots));
    let mut listed = vec![block.append(&fadt::table(dsdt, legacy)), block.append(&madt(legacy))];
    if legacy {
        listed.push(block.append(&hpet()));
    }
    let listed: Vec<u8> = listed.iter().flat_map(|address| address.to_le_bytes()).collect();
    let xsdt = block.append(&Table::new(*b"XSDT", 1).bytes(&listed).finish());

    block.bytes[..RSDP_LENGTH].copy_from_slice(&rsdp(xsdt));
    assert!(block.bytes.len() as u64 <= ACPI_BYTES);
    block.bytes
}

struct Block {
    bytes: Vec<u8>,
}

impl Block {
    /// Appends a table at the next multiple of 16 bytes. Returns its guest-physical address.
    fn append(&mut self, table: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let gpa = ACPI + self.bytes.len() as u64;
        self.bytes.extend_from_slice(table);
        gpa
    }
}

/// Returns the RSDP (ACPI 5.2.5.3). It has two checksums: one of the ACPI 1.0 fields, one of all fields.
fn rsdp(xsdt: u64) -> [u8; RSDP_LENGTH] {
    const REVISION: u8 = 2;
    let mut rsdp = [0; RSDP_LENGTH];
    rsdp[..8].copy_from_slice(b"RSD PTR ");
    rsdp[9..15].copy_from_slice(table::OEM);
    rsdp[15] = REVISION;
    rsdp[20] = RSDP_LENGTH as u8;
    rsdp[24..32].copy_from_slice(&xsdt.to_le_bytes());
    rsdp[8] = checksum(&rsdp[..20]);
    rsdp[32] = checksum(&rsdp);
    rsdp
}

/// Returns the MADT (ACPI 5.2.12): one processor and one I/O APIC.
///
/// With legacy devices it also announces two PICs, and has interrupt source overrides for the timer and the SCI. ISA's
/// IRQ 0 is at the pin of the HPET, which replaces the PIT. The override for the SCI makes it active high. No device
/// drives the SCI's line, and an active-low line would then interrupt without end.
fn madt(legacy: bool) -> Vec<u8> {
    /// Local APIC (type 0, 8 bytes) of processor 0, enabled.
    const PROCESSOR: [u8; 8] = [0, 8, 0, 0, 1, 0, 0, 0];
    /// Interrupt source override (type 2, 10 bytes): bus ISA, IRQ 0, its pin, ISA's polarity and trigger mode.
    const TIMER: [u8; 10] = [2, 10, 0, 0, TIMER_GSI, 0, 0, 0, 0, 0];
    /// Interrupt source override for the SCI: active high, level-triggered.
    const SCI: [u8; 10] = [2, 10, 0, SCI_GSI, SCI_GSI, 0, 0, 0, 0b1101, 0];
    // The flag is PCAT_COMPAT. The addresses below are under 4 GiB, so their casts lose nothing.
    let flags = u32::from(legacy);
    let madt = Table::new(*b"APIC", 1)
        .bytes(&(LAPIC as u32).to_le_bytes())
        .bytes(&flags.to_le_bytes())
        .bytes(&PROCESSOR)
        // I/O APIC number 0 (type 1, 12 bytes), whose pins begin at interrupt 0.
        .bytes(&[1, 12, 0, 0])
        .bytes(&(IOAPIC as u32).to_le_bytes())
        .bytes(&[0; 4]);
    if legacy { madt.bytes(&SCI).bytes(&TIMER).finish() } else { madt.finish() }
}

/// Returns the HPET's table (IA-PC HPET specification 1.0a, 3.2.4).
fn hpet() -> Vec<u8> {
    Table::new(*b"HPET", 1)
        // Event timer block ID: the lower half of the HPET's capabilities register.
        .bytes(&(CAPABILITIES as u32).to_le_bytes())
        // Address: memory, 64 bits wide.
        .bytes(&[0, 64, 0, 0])
        .bytes(&HPET.to_le_bytes())
        // HPET number; minimum period in ticks at which no interrupt is lost; no page protection.
        .bytes(&[0, 100, 0, 0])
        .finish()
}

#[cfg(test)]
mod tests;

//! ACPI tables, by which the guest finds its devices (ACPI 6.5). Hardware-reduced: no SCI, no fixed events, no PIC, no
//! PIT.
//!
//! RSDP, XSDT, FADT, MADT and DSDT lie in one block at [`ACPI`]. The FADT still announces the PM timer by its extended
//! address, which Linux honours on hardware-reduced platforms, too.
//!
//! With *legacy* devices (`crate::devices::legacy`) the platform is not hardware-reduced: it has PM1 blocks and an SCI
//! that never occurs, two PICs, and an HPET with its table.
//!
//! - this file: the block, and its small tables
//! - [`table`]: header and checksum of any table
//! - [`fadt`]: the FADT
//! - [`dsdt`], [`aml`]: the DSDT, and the code that it consists of
//!
//! Everett writes these bytes itself: guests read them, so they are part of a machine version.

mod aml;
mod dsdt;
mod fadt;
mod table;

use table::{Table, checksum};

use crate::devices::hpet::CAPABILITIES;
use crate::layout::{ACPI, ACPI_BYTES, HPET, IOAPIC, LAPIC, SCI_GSI, TIMER_GSI};

const RSDP_LENGTH: usize = 36;

/// Returns all tables of a machine with `virtio_slots` virtio devices, as they lie at [`ACPI`]; the RSDP is first.
///
/// # Panics
/// Panics if the tables do not fit into [`ACPI_BYTES`]. Everett, not the guest, chooses the number of slots.
pub(crate) fn tables(virtio_slots: usize, legacy: bool) -> Vec<u8> {
    let mut block = Block { bytes: Vec::new() };
    // The RSDP is first and points to the XSDT, so it is written last, when the XSDT's address is known.
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
    /// Appends a table, aligned to 16 bytes. Returns its guest-physical address.
    fn append(&mut self, table: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let gpa = ACPI + self.bytes.len() as u64;
        self.bytes.extend_from_slice(table);
        gpa
    }
}

/// Returns the root pointer (ACPI 5.2.5.3), which has two checksums: over the fields of ACPI 1.0, and over all.
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
/// With legacy devices it has two PICs and interrupt source overrides for the timer and the SCI. ISA's IRQ 0 is at the
/// pin at which the HPET replaces the PIT. The override makes the SCI active high: its line is never driven, and an
/// undriven active-low line would interrupt without end.
fn madt(legacy: bool) -> Vec<u8> {
    /// Local APIC (type 0, 8 bytes) of processor 0, enabled.
    const PROCESSOR: [u8; 8] = [0, 8, 0, 0, 1, 0, 0, 0];
    /// Interrupt source override (type 2, 10 bytes): bus ISA, IRQ 0, its pin, polarity and trigger as on ISA.
    const TIMER: [u8; 10] = [2, 10, 0, 0, TIMER_GSI, 0, 0, 0, 0, 0];
    /// Interrupt source override: active high, level-triggered.
    const SCI: [u8; 10] = [2, 10, 0, SCI_GSI, SCI_GSI, 0, 0, 0, 0b1101, 0];
    // The flag PCAT_COMPAT. The addresses are below 4 GiB, so their casts lose nothing.
    let flags = u32::from(legacy);
    let madt = Table::new(*b"APIC", 1)
        .bytes(&(LAPIC as u32).to_le_bytes())
        .bytes(&flags.to_le_bytes())
        .bytes(&PROCESSOR)
        // I/O APIC (type 1, 12 bytes) 0, for interrupts from 0.
        .bytes(&[1, 12, 0, 0])
        .bytes(&(IOAPIC as u32).to_le_bytes())
        .bytes(&[0; 4]);
    if legacy { madt.bytes(&SCI).bytes(&TIMER).finish() } else { madt.finish() }
}

/// Returns the HPET's table (IA-PC HPET specification 1.0a, 3.2.4).
fn hpet() -> Vec<u8> {
    Table::new(*b"HPET", 1)
        // Event timer block ID: the lower half of the capabilities register.
        .bytes(&(CAPABILITIES as u32).to_le_bytes())
        // Address: memory, 64 bits wide.
        .bytes(&[0, 64, 0, 0])
        .bytes(&HPET.to_le_bytes())
        // HPET number, minimum period in ticks without lost interrupts, no page protection.
        .bytes(&[0, 100, 0, 0])
        .finish()
}

#[cfg(test)]
mod tests;

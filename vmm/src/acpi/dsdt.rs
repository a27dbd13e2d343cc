//! The DSDT (differentiated system description table): devices with their resources, the sleep state `\_S5` (power
//! off), and two devices for the VM generation ID. One holds the ID's address; the other interrupts when the ID
//! changes.

use super::aml::{
    device, eisa_id, integer, interrupt, memory, name, notify, package, ports, resources, scope,
    serialized_method, string,
};
use super::table::Table;
use crate::devices::power::SLEEP_TYPE_S5;
use crate::layout::{
    EVENT_GSI, GENERATION_ID, RTC_GSI, RTC_PORT, UART_GSI, UART_PORT, VIRTIO, VIRTIO_GSI, VIRTIO_STRIDE,
};

/// Returns the DSDT of a machine with `virtio_slots` virtio devices.
pub(super) fn table(virtio_slots: usize) -> Vec<u8> {
    let mut devices = vec![processor(), uart(), rtc()];
    devices.extend((0..virtio_slots).map(virtio));
    devices.extend([generation(), events()]);

    let s5 = u32::from(SLEEP_TYPE_S5);
    Table::new(*b"DSDT", 2)
        .bytes(&name("\\_S5_", &package(&[s5, s5, 0, 0])))
        .bytes(&scope("\\_SB_", &devices))
        .finish()
}

fn processor() -> Vec<u8> {
    device("C000", &[name("_HID", &string("ACPI0007")), name("_UID", &integer(0))])
}

fn uart() -> Vec<u8> {
    let resources = resources(&[ports(UART_PORT, 8), interrupt(UART_GSI, true)]);
    let id = eisa_id(*b"PNP", 0x0501);
    device("COM1", &[name("_HID", &id), name("_UID", &integer(0)), name("_CRS", &resources)])
}

fn rtc() -> Vec<u8> {
    let resources = resources(&[ports(RTC_PORT, 2), interrupt(RTC_GSI, true)]);
    device("RTC0", &[name("_HID", &eisa_id(*b"PNP", 0x0b00)), name("_CRS", &resources)])
}

fn virtio(slot: usize) -> Vec<u8> {
    let base = VIRTIO + slot as u64 * VIRTIO_STRIDE;
    // The registers lie below 4 GiB, so the casts lose nothing.
    let registers = memory(base as u32, VIRTIO_STRIDE as u32);
    let resources = resources(&[registers, interrupt(VIRTIO_GSI[slot], false)]);
    let terms = [
        name("_HID", &string("LNRO0005")),
        name("_UID", &integer(slot as u32)),
        name("_CCA", &integer(1)),
        name("_CRS", &resources),
    ];
    device(&format!("VR{slot:02}"), &terms)
}

/// Returns the device that holds the address of the VM generation ID. If this ID changes, the guest knows that it runs
/// in a copy of its machine, and reseeds its random generator.
fn generation() -> Vec<u8> {
    let terms = [
        name("_HID", &string("VMGENCTR")),
        name("_CID", &string("VM_Gen_Counter")),
        name("_DDN", &string("VM_Gen_Counter")),
        name("ADDR", &package(&[GENERATION_ID as u32, 0])),
    ];
    device("VGEN", &terms)
}

/// Returns the generic event device, which tells the guest that the generation ID has changed (ACPI 5.6.9).
fn events() -> Vec<u8> {
    const CHANGED: u32 = 0x80;
    let terms = [
        name("_HID", &string("ACPI0013")),
        name("_UID", &integer(0)),
        name("_CRS", &resources(&[interrupt(EVENT_GSI, true)])),
        serialized_method("_EVT", 1, &[notify("\\_SB_.VGEN", CHANGED)]),
    ];
    device("GED0", &terms)
}

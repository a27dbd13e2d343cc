//! The differentiated definition block: devices with their resources, `\_S5`, and the generation ID with its event
//! device.

use acpi_tables::Aml;
use acpi_tables::aml::{
    Device, EISAName, IO, Interrupt, Memory32Fixed, Method, Name, Notify, Package, Path, ResourceTemplate,
    Scope, Zero,
};
use acpi_tables::sdt::Sdt;

use super::definition_block;
use crate::devices::power::SLEEP_TYPE_S5;
use crate::layout::{
    EVENT_GSI, GENERATION_ID, RTC_GSI, RTC_PORT, UART_GSI, UART_PORT, VIRTIO, VIRTIO_GSI, VIRTIO_STRIDE,
};

/// Returns an edge-triggered, active-high, exclusive interrupt.
fn edge(gsi: u8) -> Interrupt {
    Interrupt::new(true, true, false, false, u32::from(gsi))
}
/// Returns a level-triggered, active-high, exclusive interrupt.
fn level(gsi: u8) -> Interrupt {
    Interrupt::new(true, false, false, false, u32::from(gsi))
}

/// Returns the DSDT of a machine with `virtio_slots` virtio devices.
pub(super) fn table(virtio_slots: usize) -> Sdt {
    let mut devices = Vec::new();
    processor(&mut devices);
    uart(&mut devices);
    rtc(&mut devices);
    for slot in 0..virtio_slots {
        virtio(slot, &mut devices);
    }
    generation(&mut devices);

    let mut aml = Vec::new();
    let s5 = SLEEP_TYPE_S5;
    Name::new("\\_S5_".into(), &Package::new(vec![&s5, &s5, &Zero {}, &Zero {}])).to_aml_bytes(&mut aml);
    aml.extend(Scope::raw("\\_SB_".into(), devices));
    definition_block(&aml)
}

fn processor(aml: &mut Vec<u8>) {
    Device::new(
        "C000".into(),
        vec![&Name::new("_HID".into(), &"ACPI0007"), &Name::new("_UID".into(), &Zero {})],
    )
    .to_aml_bytes(aml);
}

fn uart(aml: &mut Vec<u8>) {
    let ports = IO::new(UART_PORT, UART_PORT, 1, 8);
    let interrupt = edge(UART_GSI);
    Device::new(
        "COM1".into(),
        vec![
            &Name::new("_HID".into(), &EISAName::new("PNP0501")),
            &Name::new("_UID".into(), &Zero {}),
            &Name::new("_CRS".into(), &ResourceTemplate::new(vec![&ports, &interrupt])),
        ],
    )
    .to_aml_bytes(aml);
}

fn rtc(aml: &mut Vec<u8>) {
    let ports = IO::new(RTC_PORT, RTC_PORT, 1, 2);
    let interrupt = edge(RTC_GSI);
    Device::new(
        "RTC0".into(),
        vec![
            &Name::new("_HID".into(), &EISAName::new("PNP0B00")),
            &Name::new("_CRS".into(), &ResourceTemplate::new(vec![&ports, &interrupt])),
        ],
    )
    .to_aml_bytes(aml);
}

fn virtio(slot: usize, aml: &mut Vec<u8>) {
    let name = format!("VR{slot:02}");
    let base = VIRTIO + slot as u64 * VIRTIO_STRIDE;
    // The window lies below 4 GiB.
    let registers = Memory32Fixed::new(true, base as u32, VIRTIO_STRIDE as u32);
    let interrupt = level(VIRTIO_GSI[slot]);
    let uid = slot as u8;
    Device::new(
        name.as_str().into(),
        vec![
            &Name::new("_HID".into(), &"LNRO0005"),
            &Name::new("_UID".into(), &uid),
            &Name::new("_CCA".into(), &acpi_tables::aml::One {}),
            &Name::new("_CRS".into(), &ResourceTemplate::new(vec![&registers, &interrupt])),
        ],
    )
    .to_aml_bytes(aml);
}

/// Appends the generation ID, and the generic event device that signals its changes (ACPI 5.6.9).
fn generation(aml: &mut Vec<u8>) {
    let address = GENERATION_ID as u32;
    Device::new(
        "VGEN".into(),
        vec![
            &Name::new("_HID".into(), &"VMGENCTR"),
            &Name::new("_CID".into(), &"VM_Gen_Counter"),
            &Name::new("_DDN".into(), &"VM_Gen_Counter"),
            &Name::new("ADDR".into(), &Package::new(vec![&address, &Zero {}])),
        ],
    )
    .to_aml_bytes(aml);

    let changed = 0x80u8;
    let interrupt = edge(EVENT_GSI);
    let target = Path::new("\\_SB_.VGEN");
    let notify = Notify::new(&target, &changed);
    Device::new(
        "GED0".into(),
        vec![
            &Name::new("_HID".into(), &"ACPI0013"),
            &Name::new("_UID".into(), &Zero {}),
            &Name::new("_CRS".into(), &ResourceTemplate::new(vec![&interrupt])),
            &Method::new("_EVT".into(), 1, true, vec![&notify]),
        ],
    )
    .to_aml_bytes(aml);
}

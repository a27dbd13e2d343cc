use super::*;
use crate::layout::{
    PM_TIMER_PORT, PM1_CONTROL_PORT, PM1_EVENT_PORT, RESET_PORT, RESET_VALUE, SLEEP_CONTROL_PORT,
    VIRTIO_SLOTS_MAX, VIRTIO_STRIDE,
};

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, &b| sum.wrapping_add(b))
}
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}
/// Returns the table at a guest-physical address. Its length field says where it ends.
fn table_at(block: &[u8], gpa: u64) -> &[u8] {
    let start = (gpa - ACPI) as usize;
    &block[start..start + u32_at(block, start + 4) as usize]
}

#[test]
fn every_table_is_reachable_and_sums_to_zero() {
    for slots in [0, 1, VIRTIO_SLOTS_MAX] {
        let block = tables(slots, false);
        assert_eq!(&block[..8], b"RSD PTR ");
        assert_eq!((sum(&block[..20]), sum(&block[..36])), (0, 0));
        let xsdt = table_at(&block, u64_at(&block, 24));
        assert_eq!((&xsdt[..4], sum(xsdt)), (&b"XSDT"[..], 0));
        let entries: Vec<&[u8]> =
            (36..xsdt.len()).step_by(8).map(|i| table_at(&block, u64_at(xsdt, i))).collect();
        let signatures: Vec<&[u8]> = entries.iter().map(|t| &t[..4]).collect();
        assert_eq!(signatures, [b"FACP", b"APIC"]);
        let dsdt = table_at(&block, u64_at(entries[0], 140));
        for table in entries.iter().chain([&dsdt]) {
            assert_eq!(sum(table), 0, "{}", String::from_utf8_lossy(&table[..4]));
        }
        let devices = dsdt.windows(8).filter(|w| w == b"LNRO0005").count();
        assert_eq!(devices, slots);
    }
}

#[test]
fn the_fadt_is_hardware_reduced_without_legacy() {
    let block = tables(1, false);
    let xsdt = table_at(&block, u64_at(&block, 24));
    let fadt = table_at(&block, u64_at(xsdt, 36));
    assert_eq!(fadt.len(), 276);
    let flags = u32_at(fadt, 112);
    assert_ne!(flags & 1 << 20, 0, "HW_REDUCED_ACPI");
    assert_ne!(flags & 1 << 10, 0, "RESET_REG_SUP");
    let boot = u16::from_le_bytes(fadt[109..111].try_into().unwrap());
    assert_eq!(boot & 0b100011, 0, "no legacy devices, no 8042, and the RTC is there");
    assert_eq!(u64_at(fadt, 120), u64::from(RESET_PORT));
    assert_eq!(fadt[128], RESET_VALUE);
    assert_eq!(u64_at(fadt, 212), u64::from(PM_TIMER_PORT));
    assert_eq!(u64_at(fadt, 248), u64::from(SLEEP_CONTROL_PORT));
}

#[test]
fn each_slot_has_its_own_window_and_pin() {
    use crate::layout::{EVENT_GSI, RTC_GSI, UART_GSI, VIRTIO, VIRTIO_GSI};
    let mut pins: Vec<u8> = VIRTIO_GSI.into_iter().chain([EVENT_GSI, RTC_GSI, UART_GSI]).collect();
    pins.sort_unstable();
    pins.dedup();
    assert_eq!(pins.len(), VIRTIO_SLOTS_MAX + 3);
    assert!(pins.iter().all(|&pin| usize::from(pin) < crate::devices::ioapic::PINS));
    assert!(VIRTIO + VIRTIO_SLOTS_MAX as u64 * VIRTIO_STRIDE <= IOAPIC);
}

#[test]
fn legacy_devices_have_tables_and_the_platform_is_not_reduced() {
    let block = tables(2, true);
    let xsdt = table_at(&block, u64_at(&block, 24));
    let entries: Vec<&[u8]> =
        (36..xsdt.len()).step_by(8).map(|i| table_at(&block, u64_at(xsdt, i))).collect();
    let signatures: Vec<&[u8]> = entries.iter().map(|t| &t[..4]).collect();
    assert_eq!(signatures, [b"FACP", b"APIC", b"HPET"]);
    assert!(entries.iter().all(|table| sum(table) == 0));
    let [fadt, madt, hpet] = entries[..] else { panic!() };
    assert_eq!(u32_at(fadt, 112) & 1 << 20, 0, "HW_REDUCED_ACPI");
    assert_eq!((u32_at(fadt, 56), u32_at(fadt, 64)), (PM1_EVENT_PORT.into(), PM1_CONTROL_PORT.into()));
    assert_eq!((u32_at(madt, 40), &madt[madt.len() - 10..][..5]), (1, &[2, 10, 0, 0, TIMER_GSI][..]));
    assert_eq!(u64_at(hpet, 44), HPET);
}

/// Guests read these bytes, so a changed byte changes all trails.
#[test]
fn the_bytes_are_those_of_this_machine_version() {
    let digest = |slots, legacy| blake3::hash(&tables(slots, legacy)).to_hex().to_string();
    let digests = [(0, false), (3, false), (VIRTIO_SLOTS_MAX, false), (0, true), (VIRTIO_SLOTS_MAX, true)]
        .map(|(slots, legacy)| digest(slots, legacy)[..16].to_owned());
    assert_eq!(
        digests,
        ["8e54fb55000344e2", "ced3b2b075e69590", "338673caa441fbce", "180c55c89f897e38", "709df9ac4f9a8a98"]
    );
}

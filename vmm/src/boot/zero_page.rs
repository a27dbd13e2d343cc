//! Writes the zero page, i.e. `struct boot_params` (Documentation/arch/x86/zero-page.rst), which gives the kernel its
//! memory map, command line, initramfs, RSDP and boot seed.

use vm_memory::{ByteValued, Bytes, GuestAddress};

use super::{BootError, KERNEL_SEED_BYTES, place};
use crate::layout::{
    ACPI, ACPI_BYTES, BOOT_PARAMS, CMDLINE, CMDLINE_BYTES_MAX, GENERATION_ID, HIGH_RAM, LOW_RAM_END, PAGE,
    SETUP_DATA,
};
use crate::ram::Ram;

/// Offsets in the zero page.
mod offset {
    pub(super) const ACPI_RSDP_ADDR: u64 = 0x070;
    pub(super) const E820_ENTRIES: u64 = 0x1e8;
    pub(super) const BOOT_FLAG: u64 = 0x1fe;
    pub(super) const HEADER: u64 = 0x202;
    pub(super) const VERSION: u64 = 0x206;
    pub(super) const TYPE_OF_LOADER: u64 = 0x210;
    pub(super) const LOADFLAGS: u64 = 0x211;
    pub(super) const RAMDISK_IMAGE: u64 = 0x218;
    pub(super) const RAMDISK_SIZE: u64 = 0x21c;
    pub(super) const CMD_LINE_PTR: u64 = 0x228;
    pub(super) const MAX_INITRD_ADDR: u64 = 0x22c;
    pub(super) const KERNEL_ALIGNMENT: u64 = 0x230;
    pub(super) const CMDLINE_SIZE: u64 = 0x238;
    pub(super) const SETUP_DATA: u64 = 0x250;
    pub(super) const E820_TABLE: u64 = 0x2d0;
}

/// E820 type of usable RAM.
const E820_RAM: u32 = 1;
/// E820 type of a reserved range.
const E820_RESERVED: u32 = 2;
/// E820 type of ACPI tables.
const E820_ACPI: u32 = 3;
/// Type of the `setup_data` entry with the kernel's seed.
const SETUP_RNG_SEED: u32 = 9;
/// Version of the boot protocol: 2.15.
const PROTOCOL: u16 = 0x20f;
/// Loader type for loaders without an assigned number.
const LOADER_UNDEFINED: u8 = 0xff;
/// Load flags: LOADED_HIGH.
const LOADFLAGS: u8 = 1;

/// Writes the zero page and the structures that it points to. `initramfs` is the initramfs' address and length.
pub(super) fn write(
    ram: &Ram,
    cmdline: &[u8],
    initramfs: Option<(u64, u64)>,
    kernel_seed: &[u8; KERNEL_SEED_BYTES],
) -> Result<(), BootError> {
    place(ram, "command line", CMDLINE, cmdline)?;

    // struct setup_data { u64 next; u32 type; u32 len; u8 data[]; }
    let mut setup = vec![0; 8];
    setup.extend_from_slice(&SETUP_RNG_SEED.to_le_bytes());
    setup.extend_from_slice(&(kernel_seed.len() as u32).to_le_bytes());
    setup.extend_from_slice(kernel_seed);
    place(ram, "setup_data", SETUP_DATA, &setup)?;

    let page = Page(ram);
    page.set(offset::ACPI_RSDP_ADDR, ACPI)?;
    page.set(offset::BOOT_FLAG, 0xaa55u16)?;
    page.set(offset::HEADER, u32::from_le_bytes(*b"HdrS"))?;
    page.set(offset::VERSION, PROTOCOL)?;
    page.set(offset::TYPE_OF_LOADER, LOADER_UNDEFINED)?;
    page.set(offset::LOADFLAGS, LOADFLAGS)?;
    page.set(offset::CMD_LINE_PTR, CMDLINE as u32)?;
    page.set(offset::CMDLINE_SIZE, CMDLINE_BYTES_MAX as u32 - 1)?;
    page.set(offset::KERNEL_ALIGNMENT, 0x20_0000u32)?;
    page.set(offset::MAX_INITRD_ADDR, (ram.len() - 1) as u32)?;
    page.set(offset::SETUP_DATA, SETUP_DATA)?;
    if let Some((gpa, bytes)) = initramfs {
        // Address and length fit into 32 bits, because RAM ends below 4 GiB.
        page.set(offset::RAMDISK_IMAGE, gpa as u32)?;
        page.set(offset::RAMDISK_SIZE, bytes as u32)?;
    }
    let map = memory_map(ram.len());
    page.set(offset::E820_ENTRIES, map.len() as u8)?;
    for (i, &(start, end, kind)) in map.iter().enumerate() {
        let entry = offset::E820_TABLE + 20 * i as u64;
        page.set(entry, start)?;
        page.set(entry + 8, end - start)?;
        page.set(entry + 16, kind)?;
    }
    Ok(())
}

/// Returns the guest's memory map as (start, end, type).
fn memory_map(ram_bytes: u64) -> [(u64, u64, u32); 5] {
    [
        (0, LOW_RAM_END, E820_RAM),
        (LOW_RAM_END, 0xa_0000, E820_RESERVED),
        (ACPI, ACPI + ACPI_BYTES, E820_ACPI),
        (GENERATION_ID, GENERATION_ID + PAGE, E820_RESERVED),
        (HIGH_RAM, ram_bytes, E820_RAM),
    ]
}

struct Page<'a>(&'a Ram);

impl Page<'_> {
    /// Writes an integer at an offset of the zero page, little-endian as on the x86 host.
    fn set<T: ByteValued>(&self, offset: u64, value: T) -> Result<(), BootError> {
        let gpa = BOOT_PARAMS + offset;
        self.0.memory().write_obj(value, GuestAddress(gpa)).map_err(|_| BootError::Placement {
            what: "boot_params",
            bytes: size_of::<T>() as u64,
            gpa,
        })
    }
}

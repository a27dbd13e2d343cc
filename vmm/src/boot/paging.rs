//! CPU state that the 64-bit boot protocol requires: long mode, flat segments, an identity map of the low 4 GiB.

use everett_cpu::CpuState;
use everett_cpu::state::{Segment, TableRegister};
use vm_memory::{Bytes, GuestAddress};

use super::BootError;
use crate::layout::{GDT, PAGE, PAGE_TABLES};
use crate::ram::Ram;

/// Flags of a table entry: present, writable.
const TABLE: u64 = 3;
/// Flags of a 2 MiB page: present, writable, large.
const LARGE: u64 = 0x83;
/// Number of page directories. Each maps 1 GiB.
const DIRECTORIES: u64 = 4;
/// GDT entries: null, unused, code at 0x10 (`__BOOT_CS`), data at 0x18 (`__BOOT_DS`).
const GDT_ENTRIES: [u64; 4] = [0, 0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff];

/// Writes page tables and a GDT. Returns a CPU state that uses them.
pub(super) fn write(ram: &Ram) -> Result<CpuState, BootError> {
    let set = |gpa: u64, value: u64| {
        ram.memory().write_obj(value, GuestAddress(gpa)).map_err(|_| BootError::Placement {
            what: "boot tables",
            bytes: 8,
            gpa,
        })
    };
    let pdpt = PAGE_TABLES + PAGE;
    set(PAGE_TABLES, pdpt | TABLE)?;
    for i in 0..DIRECTORIES {
        let directory = pdpt + PAGE * (i + 1);
        set(pdpt + 8 * i, directory | TABLE)?;
        for j in 0..512 {
            set(directory + 8 * j, i << 30 | j << 21 | LARGE)?;
        }
    }
    for (i, &entry) in GDT_ENTRIES.iter().enumerate() {
        set(GDT + 8 * i as u64, entry)?;
    }

    let data = Segment { selector: 0x18, base: 0, limit: u32::MAX, access: 0xc093 };
    let mut cpu = CpuState {
        cr3: PAGE_TABLES,
        gdtr: TableRegister { base: GDT, limit: (GDT_ENTRIES.len() * 8 - 1) as u16 },
        ..CpuState::default()
    };
    cpu.seg = [data; 6];
    cpu.seg[1] = Segment { selector: 0x10, base: 0, limit: u32::MAX, access: 0xa09b };
    Ok(cpu)
}

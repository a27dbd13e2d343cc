use std::fs;

use everett_input::causes::with_causes;
use proptest::prelude::*;

use super::small_kernel::small_kernel;
use super::*;
use crate::layout::RAM_BYTES_MIN;

fn boot(kernel: &[u8], initramfs: Option<&[u8]>) -> Result<(Ram, CpuState), BootError> {
    let folder = tempfile::tempdir().unwrap();
    let kernel_path = folder.path().join("vmlinux");
    fs::write(&kernel_path, kernel).unwrap();
    let initramfs_path = folder.path().join("initramfs");
    if let Some(content) = initramfs {
        fs::write(&initramfs_path, content).unwrap();
    }
    let ram = Ram::new(RAM_BYTES_MIN).unwrap();
    let files = BootFiles {
        kernel: &kernel_path,
        initramfs: initramfs.map(|_| initramfs_path.as_path()),
        cmdline: "console=ttyS0",
    };
    let data = BootData { acpi: b"RSD PTR ", kernel_seed: &[7; 32], generation: &[9; 16] };
    load(&ram, &files, &data).map(|cpu| (ram, cpu))
}

fn error(kernel: &[u8], initramfs: Option<&[u8]>) -> String {
    with_causes(&boot(kernel, initramfs).unwrap_err())
}

fn u64_at(ram: &Ram, gpa: u64) -> u64 {
    ram.memory().read_obj(GuestAddress(gpa)).unwrap()
}

#[test]
fn everything_is_where_the_protocol_says() {
    let (ram, cpu) = boot(&small_kernel(b"\xf4code", 100), Some(&[0xcd; 5000])).unwrap();
    assert_eq!((cpu.rip, cpu.gpr[6]), (0x100_0000, BOOT_PARAMS));
    assert_eq!(u64_at(&ram, 0x100_0000) & 0xff, 0xf4);
    let initramfs = u64_at(&ram, BOOT_PARAMS + 0x218);
    assert_eq!(initramfs >> 32, 5000);
    assert_eq!(u64_at(&ram, (initramfs & 0xffff_ffff) + 4992), 0xcdcd_cdcd_cdcd_cdcd);
    assert_eq!(u64_at(&ram, BOOT_PARAMS + 0x70), ACPI);
    let setup = u64_at(&ram, BOOT_PARAMS + 0x250);
    assert_eq!(u64_at(&ram, setup + 8), 9 | 32 << 32);
    assert_eq!(u64_at(&ram, setup + 16), 0x0707_0707_0707_0707);
    let mut cmdline = [0; 14];
    ram.memory()
        .read_slice(&mut cmdline, GuestAddress(u64_at(&ram, BOOT_PARAMS + 0x228) & 0xffff_ffff))
        .unwrap();
    assert_eq!(&cmdline, b"console=ttyS0\0");
}

#[test]
fn the_boot_page_tables_are_an_identity_map() {
    let (ram, cpu) = boot(&small_kernel(b"x", 0), None).unwrap();
    for gva in [0u64, 0x12_3456, 0x100_0000, 0xbfff_ffff, 0xfee0_0000, 0xffff_ffff] {
        let pdpt = u64_at(&ram, cpu.cr3 + 8 * (gva >> 39)) & !0xfff;
        let directory = u64_at(&ram, pdpt + 8 * (gva >> 30 & 511)) & !0xfff;
        let entry = u64_at(&ram, directory + 8 * (gva >> 21 & 511));
        assert_eq!(entry & 0x83, 0x83);
        assert_eq!(entry & !0x1f_ffff | gva & 0x1f_ffff, gva);
    }
}

#[test]
fn malformed_kernels_are_named() {
    let good = small_kernel(&[0x90; 64], 0);
    assert!(error(b"#!/bin/sh", None).ends_with("vmlinux: not a kernel: no ELF header"));
    let mut bzimage = vec![0; 0x400];
    bzimage[0x202..0x206].copy_from_slice(b"HdrS");
    assert!(error(&bzimage, None).contains("bzImage"));
    let patched = |offset: usize, value: u8| {
        let mut file = good.clone();
        file[offset] = value;
        file
    };
    assert!(error(&patched(4, 1), None).contains("not a 64-bit x86 kernel"));
    assert!(error(&patched(0x12, 183), None).contains("not a 64-bit x86 kernel"));
    assert!(error(&patched(0x10, 1), None).contains("not an executable"));
    assert!(error(&patched(0x1b, 5), None).contains("entry point"));
    assert!(error(&patched(64, 6), None).contains("no loadable segment"));
    let segment = "not a kernel: a segment is longer in the file than in memory";
    assert!(error(&patched(64 + 40, 63), None).ends_with(segment));
    for length in [5, 30, 70, 150] {
        assert!(error(&good[..length], None).contains("truncated"), "{length}");
    }
    assert!(error(&small_kernel(&[0x90; 64], 1 << 30), None).contains("does not fit into 32 MiB"));
}

#[test]
fn malformed_initramfs_files_are_named() {
    let kernel = small_kernel(b"x", 0);
    assert!(error(&kernel, Some(&[])).ends_with("initramfs: the initramfs is empty"));
    assert!(error(&kernel, Some(&vec![1; 20 << 20])).contains("give the machine more memory"));
    assert!(error(&kernel, Some(&vec![1; 33 << 20])).contains("give the machine more memory"));
}

#[test]
fn command_lines_are_checked() {
    assert!(checked_cmdline(DEFAULT_CMDLINE).is_ok());
    assert!(checked_cmdline(&"x".repeat(2047)).is_ok());
    assert!(checked_cmdline(&"x".repeat(2048)).is_err());
    assert!(checked_cmdline("a\nb").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// If a damaged kernel file loads, its segments and its entry point lie in RAM.
    #[test]
    fn damaged_kernels_never_panic(at in 0usize..184, value in any::<u8>(), cut in 0usize..184) {
        let mut file = small_kernel(&[0x90; 64], 4096);
        file[at] = value;
        file.truncate(file.len() - cut);
        if let Ok(kernel) = Kernel::parse(file) {
            let loaded = kernel.load(&Ram::new(RAM_BYTES_MIN).unwrap()).is_ok();
            prop_assert!(!loaded || kernel.end() <= RAM_BYTES_MIN && kernel.entry() < kernel.end());
        }
    }
}

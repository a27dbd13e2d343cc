//! Boot of a machine: loads files into RAM and sets the CPU to the kernel's first instruction.
//!
//! The loader follows Linux's 64-bit boot protocol (Documentation/arch/x86/boot.rst and zero-page.rst), without
//! firmware and real mode. The kernel is an uncompressed ELF64 `vmlinux`; the image builder unpacks bzImages. Users
//! supply the files, which may be malformed, so each error names its file.

mod cmdline;
mod elf;
mod paging;
mod small_kernel;
mod zero_page;

pub use small_kernel::{SMALL_KERNEL_ENTRY, small_kernel};

pub use cmdline::{DEFAULT_CMDLINE, EXIT_CMDLINE, checked_cmdline};
pub use elf::Kernel;

use std::path::{Path, PathBuf};

use everett_cpu::CpuState;
use everett_input::file;
use vm_memory::{Bytes, GuestAddress};

use crate::layout::{ACPI, BOOT_PARAMS, GENERATION_ID, HIGH_RAM, PAGE, RAM_BYTES_MAX};
use crate::ram::Ram;

/// Bytes of the seed of the guest kernel's random generator.
pub const KERNEL_SEED_BYTES: usize = 32;

/// Error of booting a machine from its files.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: file::Reason,
    },
    /// The kernel file is not a kernel that can be loaded.
    #[error("{}", path.display())]
    Kernel {
        /// Path of the kernel.
        path: PathBuf,
        /// Defect of the file.
        source: elf::ElfError,
    },
    /// RAM is too small for the initramfs and the kernel together.
    #[error(
        "{}: an initramfs of {bytes} bytes does not fit between the kernel's end at {kernel_end:#x} and the end of \
         memory at {ram_bytes:#x}; give the machine more memory",
        path.display()
    )]
    InitramfsTooLarge {
        /// Path of the initramfs.
        path: PathBuf,
        /// Length of the initramfs in bytes.
        bytes: u64,
        /// First free guest-physical address above the kernel.
        kernel_end: u64,
        /// Bytes of RAM.
        ram_bytes: u64,
    },
    /// The initramfs is empty.
    #[error("{}: the initramfs is empty", path.display())]
    InitramfsEmpty {
        /// Path of the initramfs.
        path: PathBuf,
    },
    /// The command line is too long, or contains control characters.
    #[error("kernel command line: {0}")]
    Cmdline(&'static str),
    /// A structure would lie outside RAM, at least in part. This cannot happen in RAM of at least `RAM_BYTES_MIN`
    /// bytes.
    #[error("{what} of {bytes} bytes do not fit at {gpa:#x}")]
    Placement {
        /// Name of the structure.
        what: &'static str,
        /// Length of the structure in bytes.
        bytes: u64,
        /// Guest-physical address at which the structure would begin.
        gpa: u64,
    },
}

/// Files and command line to boot.
#[derive(Debug, Clone, Copy)]
pub struct BootFiles<'a> {
    /// Path of an uncompressed `vmlinux`.
    pub kernel: &'a Path,
    /// Path of an uncompressed cpio archive, if any.
    pub initramfs: Option<&'a Path>,
    /// Kernel command line.
    pub cmdline: &'a str,
}

/// Data to put into RAM besides the files.
#[derive(Debug, Clone, Copy)]
pub struct BootData<'a> {
    /// ACPI tables, beginning with the RSDP.
    pub acpi: &'a [u8],
    /// Seed of the guest kernel's random generator.
    pub kernel_seed: &'a [u8; KERNEL_SEED_BYTES],
    /// VM generation ID, whose change tells a guest that it runs in a copy of its machine.
    pub generation: &'a [u8; 16],
}

/// Copies files and data into RAM. Returns the CPU state at the kernel's entry.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed, if the command line is invalid, or if the files do not
/// fit into RAM.
pub fn load(ram: &Ram, files: &BootFiles<'_>, data: &BootData<'_>) -> Result<CpuState, BootError> {
    let bad_kernel = |source| BootError::Kernel { path: files.kernel.to_owned(), source };
    let kernel = Kernel::parse(read(files.kernel)?).map_err(bad_kernel)?;
    kernel.load(ram).map_err(bad_kernel)?;
    let initramfs = files.initramfs.map(|path| load_initramfs(ram, path, kernel.end())).transpose()?;
    let cmdline = checked_cmdline(files.cmdline)?;

    place(ram, "ACPI tables", ACPI, data.acpi)?;
    place(ram, "generation ID", GENERATION_ID, data.generation)?;
    zero_page::write(ram, &cmdline, initramfs, data.kernel_seed)?;
    let mut cpu = paging::write(ram)?;
    cpu.rip = kernel.entry();
    cpu.gpr[6] = BOOT_PARAMS;
    Ok(cpu)
}

fn read(path: &Path) -> Result<Vec<u8>, BootError> {
    let failed = |error: file::Error| BootError::Read { path: error.path, source: error.reason };
    file::read(path, RAM_BYTES_MAX).map_err(failed)
}

/// Copies the initramfs to the top of RAM. Returns its address and its length in bytes.
fn load_initramfs(ram: &Ram, path: &Path, kernel_end: u64) -> Result<(u64, u64), BootError> {
    let content = read(path)?;
    let bytes = content.len() as u64;
    if bytes == 0 {
        return Err(BootError::InitramfsEmpty { path: path.to_owned() });
    }
    let too_large =
        || BootError::InitramfsTooLarge { path: path.to_owned(), bytes, kernel_end, ram_bytes: ram.len() };
    let gpa = ram.len().checked_sub(bytes).ok_or_else(too_large)? & !(PAGE - 1);
    if gpa < kernel_end.max(HIGH_RAM) {
        return Err(too_large());
    }
    place(ram, "initramfs", gpa, &content)?;
    Ok((gpa, bytes))
}

fn place(ram: &Ram, what: &'static str, gpa: u64, content: &[u8]) -> Result<(), BootError> {
    let bytes = content.len() as u64;
    ram.memory().write_slice(content, GuestAddress(gpa)).map_err(|_| BootError::Placement {
        what,
        bytes,
        gpa,
    })
}

#[cfg(test)]
mod tests;

//! From files to a machine that is about to execute the kernel's first instruction, by Linux's 64-bit boot protocol
//! (Documentation/arch/x86/boot.rst and zero-page.rst): no firmware, no real mode.
//!
//! The kernel is an uncompressed ELF64 `vmlinux`; unpacking a bzImage is the image builder's work. Everything read here
//! comes from the user and may be malformed: each error names the file.

mod cmdline;
mod elf;
mod paging;
mod small;
mod zero_page;

pub use small::{SMALL_KERNEL_ENTRY, small_kernel};

pub use cmdline::{DEFAULT_CMDLINE, EXIT_CMDLINE, checked_cmdline};
pub use elf::Kernel;

use std::path::{Path, PathBuf};

use everett_cpu::CpuState;
use vm_memory::{Bytes, GuestAddress};

use crate::layout::{ACPI, BOOT_PARAMS, GENERATION_ID, HIGH_RAM, PAGE, RAM_BYTES_MAX};
use crate::ram::Ram;

/// Bytes of the seed for the guest's random generator.
pub const BOOT_SEED_BYTES: usize = 32;

/// Why a machine cannot be booted from these files.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// A file cannot be read.
    #[error("cannot read {0}")]
    Read(#[from] everett_input::file::Error),
    /// A kernel that is not one.
    #[error("{}: {reason}", path.display())]
    Kernel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: elf::ElfError,
    },
    /// The initramfs and the kernel do not fit into RAM together.
    #[error(
        "{}: an initramfs of {bytes} bytes does not fit between the kernel's end at {kernel_end:#x} and the end of \
         memory at {ram_bytes:#x}; give the machine more memory",
        path.display()
    )]
    InitramfsTooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// First free address above the kernel.
        kernel_end: u64,
        /// Bytes of RAM.
        ram_bytes: u64,
    },
    /// An initramfs without content.
    #[error("{}: the initramfs is empty", path.display())]
    InitramfsEmpty {
        /// The file.
        path: PathBuf,
    },
    /// A command line that the kernel would cut or misread.
    #[error("kernel command line: {0}")]
    Cmdline(&'static str),
    /// A structure did not fit where the layout has it: more devices than the tables can name, say.
    #[error("{what} of {bytes} bytes do not fit at {gpa:#x}")]
    Placement {
        /// What.
        what: &'static str,
        /// Its length.
        bytes: u64,
        /// Where it should go.
        gpa: u64,
    },
}

/// What to boot.
#[derive(Debug, Clone, Copy)]
pub struct BootFiles<'a> {
    /// `vmlinux`.
    pub kernel: &'a Path,
    /// Uncompressed cpio archive, if any.
    pub initramfs: Option<&'a Path>,
    /// Kernel command line.
    pub cmdline: &'a str,
}

/// What goes into RAM besides the files.
#[derive(Debug, Clone, Copy)]
pub struct BootData<'a> {
    /// ACPI tables, the RSDP first.
    pub acpi: &'a [u8],
    /// Seed for the guest's random generator.
    pub seed: &'a [u8; BOOT_SEED_BYTES],
    /// The VM generation ID.
    pub generation: &'a [u8; 16],
}

/// Put everything into RAM. Returns the CPU at the kernel's entry.
///
/// # Errors
/// When a file cannot be read or is not what it should be, or does not fit.
pub fn load(ram: &Ram, files: &BootFiles<'_>, data: &BootData<'_>) -> Result<CpuState, BootError> {
    let bad_kernel = |reason| BootError::Kernel { path: files.kernel.to_owned(), reason };
    let kernel = Kernel::parse(read(files.kernel)?).map_err(bad_kernel)?;
    kernel.load(ram).map_err(bad_kernel)?;
    let initramfs = files.initramfs.map(|path| load_initramfs(ram, path, kernel.end())).transpose()?;
    let cmdline = checked_cmdline(files.cmdline)?;

    place(ram, "ACPI tables", ACPI, data.acpi)?;
    place(ram, "generation ID", GENERATION_ID, data.generation)?;
    zero_page::write(ram, &cmdline, initramfs, data.seed)?;
    let mut cpu = paging::write(ram)?;
    cpu.rip = kernel.entry();
    cpu.gpr[6] = BOOT_PARAMS;
    Ok(cpu)
}

fn read(path: &Path) -> Result<Vec<u8>, BootError> {
    Ok(everett_input::file::read(path, RAM_BYTES_MAX)?)
}

/// Put the initramfs at the top of RAM. Returns its address and length.
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

//! Guest of a few instructions that dirties random pages, as a server dirties its memory.

use std::path::{Path, PathBuf};

use everett_assembler::{Assembler, Error, al, qword_ptr, r8, r9, r10, rax, rbx, rcx};
use everett_input::causes::with_causes;
use everett_vmm::MachineConfig;
use everett_vmm::boot::{SMALL_KERNEL_ENTRY, small_kernel};

/// Number of the first page that the guest dirties. Lower pages hold its code, so all dirtied pages are data.
pub const FIRST_PAGE: u64 = 0x200_0000 >> 12;
/// Number of instructions in the loop of [`kernel`]'s guest. Each iteration writes to one page.
pub const INSTRUCTIONS_A_PAGE: u64 = 11;

/// Assembles the guest: an endless loop of a pseudo-random step and a store to the page that the step selects.
/// `pages` must be a power of two. With `batches`, the guest decrements RCX after each store, and writes to a port
/// without a device whenever RCX reaches zero.
fn code(pages: u64, batches: bool) -> Result<Vec<u8>, Error> {
    let mut a = Assembler::new();
    let top = a.create_label();
    a.mov(rax, 0x9e37_79b9_7f4a_7c15u64)?;
    a.mov(r8, FIRST_PAGE << 12)?;
    a.mov(r9, pages - 1)?;
    a.set_label(top)?;
    a.mov(r10, rax)?;
    a.shl(r10, 13)?;
    a.xor(rax, r10)?;
    a.mov(r10, rax)?;
    a.shr(r10, 7)?;
    a.xor(rax, r10)?;
    a.mov(rbx, rax)?;
    a.and(rbx, r9)?;
    a.shl(rbx, 12)?;
    a.mov(qword_ptr(r8 + rbx), rax)?;
    if batches {
        a.dec(rcx)?;
        a.jnz(top)?;
        a.out(0x80, al)?;
    }
    a.jmp(top)?;
    a.assemble(SMALL_KERNEL_ENTRY)
}

/// Writes the guest's kernel file into `folder` and returns its path.
///
/// # Errors
/// Returns a one-line message if the file cannot be assembled or written.
pub fn kernel(folder: &Path, pages: u64) -> Result<PathBuf, String> {
    file(folder, code(pages, false))
}

/// Writes the kernel file of a guest that also decrements RCX after each write to a page. When RCX reaches zero, the
/// guest writes to a port without a device.
///
/// # Errors
/// Returns a one-line message if the file cannot be assembled or written.
pub fn kernel_in_batches(folder: &Path, pages: u64) -> Result<PathBuf, String> {
    file(folder, code(pages, true))
}

fn file(folder: &Path, code: Result<Vec<u8>, Error>) -> Result<PathBuf, String> {
    let code = code.map_err(|error| with_causes(&error))?;
    let path = folder.join("vmlinux");
    std::fs::write(&path, small_kernel(&code, 0)).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Returns the configuration of a machine with 256 MiB and this kernel.
pub fn config(kernel: &Path) -> MachineConfig {
    let mut config = MachineConfig::new(kernel);
    config.memory_bytes = 256 << 20;
    config
}

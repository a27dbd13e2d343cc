//! A guest of a few instructions that dirties pages at random: what a server does to its memory, without the server.

use std::path::{Path, PathBuf};

use everett_vmm::MachineConfig;
use everett_vmm::boot::{SMALL_KERNEL_ENTRY, small_kernel};
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, al, qword_ptr, r8, r9, r10, rax, rbx, rcx};

/// The first page that it dirties: above its code, so that all of these are data.
pub const FIRST_PAGE: u64 = 0x200_0000 >> 12;
/// Instructions that one dirtied page takes.
pub const INSTRUCTIONS_A_PAGE: u64 = 10;

/// The guest: for ever, a xorshift step, then a store to the page that it names. `pages` is a power of two. With `batches` it
/// asks a port that nobody has whenever RCX has come to zero.
fn code(pages: u64, batches: bool) -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(64)?;
    let mut top = a.create_label();
    a.mov(rax, 0x9e37_79b9_7f4a_7c15u64)?;
    a.mov(r8, FIRST_PAGE << 12)?;
    a.mov(r9, pages - 1)?;
    a.set_label(&mut top)?;
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

/// Its kernel file, written into `folder`.
///
/// # Errors
/// One line.
pub fn kernel(folder: &Path, pages: u64) -> Result<PathBuf, String> {
    file(folder, code(pages, false))
}

/// That of a guest that asks a port that nobody has after each RCX pages.
///
/// # Errors
/// One line.
pub fn kernel_in_batches(folder: &Path, pages: u64) -> Result<PathBuf, String> {
    file(folder, code(pages, true))
}

fn file(folder: &Path, code: Result<Vec<u8>, IcedError>) -> Result<PathBuf, String> {
    let code = code.map_err(|error| error.to_string())?;
    let path = folder.join("vmlinux");
    std::fs::write(&path, small_kernel(&code, 0)).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// A machine of 256 MiB with this kernel.
pub fn config(kernel: &Path) -> MachineConfig {
    let mut config = MachineConfig::new(kernel);
    config.memory_bytes = 256 << 20;
    config
}

//! A guest of a few instructions that dirties pages at random: what a server does to its memory, without the server.

use std::path::{Path, PathBuf};

use everett_vmm::MachineConfig;
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, qword_ptr, r8, r9, r10, rax, rbx};

/// Where the guest's code starts.
const ENTRY: u64 = 0x100_0000;
/// The first page that it dirties: above its code, so that all of these are data.
pub const FIRST_PAGE: u64 = 0x200_0000 >> 12;
/// Instructions that one dirtied page takes.
pub const INSTRUCTIONS_A_PAGE: u64 = 10;

/// The guest: for ever, a xorshift step, then a store to the page that it names. `pages` is a power of two.
fn code(pages: u64) -> Result<Vec<u8>, IcedError> {
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
    a.jmp(top)?;
    a.assemble(ENTRY)
}

/// A kernel file with one segment, written into `folder`.
///
/// # Errors
/// One line.
pub fn kernel(folder: &Path, pages: u64) -> Result<PathBuf, String> {
    let code = code(pages).map_err(|error| error.to_string())?;
    let mut file = vec![0; 120];
    let mut set = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    set(0, b"\x7fELF\x02\x01\x01");
    set(0x10, &[2, 0, 62, 0]);
    set(0x18, &ENTRY.to_le_bytes());
    set(0x20, &64u64.to_le_bytes());
    set(0x36, &[56, 0, 1, 0]);
    // The program header: PT_LOAD at offset 120.
    set(64, &[1]);
    set(72, &120u64.to_le_bytes());
    set(88, &ENTRY.to_le_bytes());
    set(96, &(code.len() as u64).to_le_bytes());
    set(104, &(code.len() as u64).to_le_bytes());
    file.extend_from_slice(&code);
    let path = folder.join("vmlinux");
    std::fs::write(&path, file).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// A machine of 256 MiB with this kernel.
pub fn config(kernel: &Path) -> MachineConfig {
    let mut config = MachineConfig::new(kernel);
    config.memory_bytes = 256 << 20;
    config
}

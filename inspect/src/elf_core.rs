//! Headers and notes of ELF core files for x86-64 (System V ABI, "ELF Header", "Program Header" and "Note Section").

use crate::memory::PAGE;
use crate::registers::ProgramRegisters;

/// Length of the file's header, in bytes.
pub(crate) const FILE_HEADER_BYTES: usize = 64;
/// Length of a program header, in bytes.
pub(crate) const PROGRAM_HEADER_BYTES: usize = 56;
/// Owner of the notes that Linux writes.
pub(crate) const OWNER: &str = "CORE";
/// Kind of a note with [`status`] (`NT_PRSTATUS`).
pub(crate) const REGISTERS: u32 = 1;

/// Program header of a part of memory.
pub(crate) struct ProgramHeader {
    /// Access: 1 for execution, 2 for writing, 4 for reading.
    pub(crate) flags: u32,
    /// Offset of the content in the file.
    pub(crate) offset: u64,
    /// Linear address.
    pub(crate) address: u64,
    /// Guest-physical address.
    pub(crate) physical: u64,
    /// Length in the file and in memory, in bytes.
    pub(crate) bytes: u64,
}

impl ProgramHeader {
    /// Returns the header as the file has it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let &ProgramHeader { flags, offset, address, physical, bytes } = self;
        header(1, flags, [offset, address, physical, bytes, bytes, PAGE])
    }
}

/// Returns the program header of the notes.
pub(crate) fn notes_header(offset: u64, bytes: u64) -> Vec<u8> {
    header(4, 4, [offset, 0, 0, bytes, 0, 4])
}

fn header(kind: u32, flags: u32, words: [u64; 6]) -> Vec<u8> {
    let mut header = [kind, flags].map(u32::to_le_bytes).concat();
    header.extend(words.map(u64::to_le_bytes).concat());
    header
}

/// Returns the header of a core file.
pub(crate) fn file_header(program_headers: u16) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    // Kind, machine and version of the file.
    put(16, &4u16.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(32, &(FILE_HEADER_BYTES as u64).to_le_bytes());
    put(52, &(FILE_HEADER_BYTES as u16).to_le_bytes());
    put(54, &(PROGRAM_HEADER_BYTES as u16).to_le_bytes());
    put(56, &program_headers.to_le_bytes());
    header
}

/// Appends a note: the lengths of its owner and content, its kind, its owner, and its content.
pub(crate) fn put_note(notes: &mut Vec<u8>, owner: &str, kind: u32, content: &[u8]) {
    notes.extend([owner.len() as u32 + 1, content.len() as u32, kind].map(u32::to_le_bytes).concat());
    notes.extend(owner.bytes().chain([0]));
    notes.resize(notes.len().next_multiple_of(4), 0);
    notes.extend(content);
    notes.resize(notes.len().next_multiple_of(4), 0);
}

/// Returns the state of a thread (`struct elf_prstatus`): no signal, its ID, the ID of its parent, its registers, and
/// whether a note with its floating-point registers follows.
pub(crate) fn status(ids: [u32; 2], registers: &ProgramRegisters, has_floating: bool) -> Vec<u8> {
    let [thread, parent] = ids;
    let mut status = vec![0; 32];
    status.extend([thread, parent, 0, 0].map(u32::to_le_bytes).concat());
    // Times that the thread has used.
    status.resize(112, 0);
    status.extend(registers.0.map(u64::to_le_bytes).concat());
    status.extend(u64::from(has_floating).to_le_bytes());
    status
}

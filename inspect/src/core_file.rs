//! A process's memory and registers as an ELF core file, which debuggers open (System V ABI, "Program Header"; Linux,
//! `fs/binfmt_elf.c`).
//!
//! The file has the pages that are in memory. Debuggers read other pages of programs and libraries from their files, and
//! say of the rest that they cannot be accessed.

use std::io::{self, Write};
use std::ops::Range;

use crate::elf_core::{
    self, FILE_HEADER_BYTES, OWNER, PROGRAM_HEADER_BYTES, ProgramHeader, file_header, notes_header, put_note,
};
use crate::limits::{CORE_BYTES_MAX, CORE_PARTS_MAX, PAGE_ENTRIES_MAX};
use crate::mapping::{Access, Mapping};
use crate::memory::{AddressSpace, PAGE};
use crate::registers::CpuRegisters;
use crate::task::Process;
use crate::{Error, Guest};

/// Owner of the notes with registers that only some processors have.
const OWNER_OF_XSAVE: &str = "LINUX";

/// Kinds of notes (Linux, `include/uapi/linux/elf.h`).
mod note {
    pub(super) const FLOATING: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const AUXILIARY: u32 = 6;
    pub(super) const XSAVE: u32 = 0x202;
    pub(super) const FILES: u32 = 0x4649_4c45;
}

/// Maximum number of entries of the auxiliary vector that are read. Linux has at most 32.
const AUXILIARY_MAX: u64 = 64;

/// A process at an instant, ready to be written as a core file.
pub struct CoreFile<'g> {
    memory: AddressSpace<'g>,
    mappings: Vec<Mapping>,
    /// Parts of the address space that are in memory.
    parts: Vec<(Range<u64>, Access)>,
    notes: Vec<u8>,
}

impl<'g> Guest<'g> {
    /// Returns the core file of a process. `None` for threads of the kernel and for zombies.
    ///
    /// # Errors
    /// Returns an error if the process's structures cannot be read, or if its memory exceeds the bounds in
    /// [`limits`](crate::limits).
    pub fn core_file(&self, process: &Process, cpu: &CpuRegisters) -> Result<Option<CoreFile<'g>>, Error> {
        let (Some(mm), Some(memory)) = (process.mm, self.memory_of_process(process)?) else {
            return Ok(None);
        };
        let mappings = self.mappings(process)?;
        let mut notes = Vec::new();
        // Debuggers begin with the first thread.
        for thread in &process.threads {
            let registers = self.program_registers(process, thread, cpu)?;
            let floating = self.floating_registers(thread, cpu)?;
            put_note(
                &mut notes,
                OWNER,
                elf_core::REGISTERS,
                &elf_core::status([thread.tid, process.parent], &registers, floating.is_some()),
            );
            if let Some(floating) = floating {
                put_note(&mut notes, OWNER, note::FLOATING, &floating.legacy);
                if let Some(area) = floating.xsave() {
                    put_note(&mut notes, OWNER_OF_XSAVE, note::XSAVE, &area);
                }
            }
        }
        put_note(&mut notes, OWNER, note::PROCESS, &description(process));
        put_note(&mut notes, OWNER, note::AUXILIARY, &self.auxiliary_bytes_of(mm)?);
        put_note(&mut notes, OWNER, note::FILES, &files(&mappings));
        let parts = parts(memory, &mappings)?;
        Ok(Some(CoreFile { memory, mappings, parts, notes }))
    }

    /// Returns the bytes of a process's auxiliary vector. `None` for threads of the kernel and for zombies.
    ///
    /// # Errors
    /// Returns an error if the vector cannot be read.
    pub fn auxiliary_bytes(&self, process: &Process) -> Result<Option<Vec<u8>>, Error> {
        process.mm.map(|mm| self.auxiliary_bytes_of(mm)).transpose()
    }

    fn auxiliary_bytes_of(&self, mm: u64) -> Result<Vec<u8>, Error> {
        let words = self.auxiliary(mm)?.into_iter().flat_map(|(kind, value)| [kind, value]);
        Ok(words.flat_map(u64::to_le_bytes).collect())
    }

    /// Returns the auxiliary vector, with which the kernel told the program where it was loaded: kinds and values, with
    /// the kind 0 at the end.
    pub(crate) fn auxiliary(&self, mm: u64) -> Result<Vec<(u64, u64)>, Error> {
        let start = mm.wrapping_add(self.kernel.layout.mm_auxiliary.offset());
        let word = |at| self.word(at).map_err(Error::reading("the auxiliary vector of a process"));
        let mut vector = Vec::new();
        for at in (0..AUXILIARY_MAX).map(|n| start.wrapping_add(16 * n)) {
            let kind = word(at)?;
            vector.push((kind, word(at.wrapping_add(8))?));
            if kind == 0 {
                break;
            }
        }
        Ok(vector)
    }
}

/// Returns the parts of all mappings that are in memory.
fn parts(memory: AddressSpace<'_>, mappings: &[Mapping]) -> Result<Vec<(Range<u64>, Access)>, Error> {
    let mut entries_left = PAGE_ENTRIES_MAX;
    let (mut parts, mut bytes) = (Vec::new(), 0u64);
    for mapping in mappings {
        for part in memory.mapped(mapping.start..mapping.end, &mut entries_left)? {
            bytes = bytes.saturating_add(part.end - part.start);
            if bytes > CORE_BYTES_MAX {
                return Err(Error::TooMany { what: "bytes in a core file", max: CORE_BYTES_MAX as usize });
            }
            if parts.len() >= CORE_PARTS_MAX {
                return Err(Error::TooMany { what: "parts of memory in a core file", max: CORE_PARTS_MAX });
            }
            parts.push((part, mapping.access));
        }
    }
    Ok(parts)
}

impl CoreFile<'_> {
    /// Returns the process's mappings.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns the file's length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.content_at() + self.parts.iter().map(|(part, _)| part.end - part.start).sum::<u64>()
    }

    /// Returns the offset of the first part's content.
    fn content_at(&self) -> u64 {
        let headers = FILE_HEADER_BYTES + PROGRAM_HEADER_BYTES * (self.parts.len() + 1);
        ((headers + self.notes.len()) as u64).next_multiple_of(PAGE)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let content_at = self.content_at();
        let mut head = file_header(self.parts.len() as u16 + 1).to_vec();
        let notes_at = (FILE_HEADER_BYTES + PROGRAM_HEADER_BYTES * (self.parts.len() + 1)) as u64;
        head.extend(notes_header(notes_at, self.notes.len() as u64));
        let mut at = content_at;
        for (part, Access { read, write, execute, .. }) in &self.parts {
            let flags = u32::from(*execute) | u32::from(*write) << 1 | u32::from(*read) << 2;
            let bytes = part.end - part.start;
            let header = ProgramHeader { flags, offset: at, address: part.start, physical: 0, bytes };
            head.extend(header.bytes());
            at += bytes;
        }
        head.extend(&self.notes);
        head.resize(content_at as usize, 0);
        out.write_all(&head)?;
        let mut page = [0; PAGE as usize];
        for (part, _) in &self.parts {
            for address in (part.start..part.end).step_by(PAGE as usize) {
                self.memory.read(address, &mut page).map_err(io::Error::other)?;
                out.write_all(&page)?;
            }
        }
        Ok(())
    }
}

/// Returns the description of a process (`struct elf_prpsinfo`).
fn description(process: &Process) -> Vec<u8> {
    let first = process.threads.first();
    let letter = first.map_or('?', |thread| thread.state.letter()) as u8;
    let mut text = vec![0, letter, u8::from(letter == b'Z'), 0, 0, 0, 0, 0];
    text.extend([0; 8]);
    text.extend([process.user, 0, process.pid, process.parent, 0, 0].map(u32::to_le_bytes).concat());
    let name = first.map(|thread| thread.name.as_str()).unwrap_or_default();
    // Both texts end with a zero byte.
    for (words, bytes) in [(name, 16), (&*process.command.join(" "), 80)] {
        let end = text.len() + bytes;
        text.extend(words.bytes().take(bytes - 1));
        text.resize(end, 0);
    }
    text
}

/// Returns the mapped files: their number, the unit of offsets, for each its range and offset, then their paths.
fn files(mappings: &[Mapping]) -> Vec<u8> {
    let files: Vec<_> = mappings.iter().filter_map(|mapping| Some((mapping, mapping.file?))).collect();
    let mut words = vec![files.len() as u64, PAGE];
    words.extend(files.iter().flat_map(|(mapping, file)| [mapping.start, mapping.end, file.offset / PAGE]));
    let mut content: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    for (mapping, _) in files {
        content.extend(mapping.name.bytes().filter(|byte| *byte != 0));
        content.push(0);
    }
    content
}

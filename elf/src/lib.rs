//! Reads ELF files: kernels, modules, programs, libraries and debug files (System V ABI, chapters 4 and 5).
//!
//! - this file: [`Elf`], the header of a file, and its segments
//! - `sections`: finds [`Sections`] by name, and lists the [`Symbols`] in their tables
//! - `needs`: lists what a program [`Needs`]: an interpreter, libraries and versions of the libraries' symbols
//! - `error`: [`Error`], the reasons why a file cannot be read
//!
//! Only files of 64 bits and little-endian byte order are read. The layout of headers comes from the crate `object`.
//! Files may be hostile, so nothing here panics. Most tables have a maximum number of entries; only the length of the
//! file bounds the other tables. A small file can have many long names, because names may share bytes. The length of a
//! name is therefore bounded, too.
//!
//! Not here: whether a machine can boot or run a file, debug information, and reading the file from a disk.

mod error;
mod needs;
mod sections;

use std::fmt;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::FileHeader as _;

pub use error::{Error, Part};
pub use needs::{DYNAMIC_MAX, NAME_BYTES_MAX, Needs, VERSIONS_MAX};
pub use sections::{Compression, Packed, Section, Sections, Symbol, SymbolKind, SymbolTable, Symbols};

/// Magic number at the start of each ELF file.
pub const MAGIC: [u8; 4] = elf::ELFMAG;

/// Maximum number of program headers. Kernels have five, programs a dozen.
pub const SEGMENTS_MAX: usize = 256;

/// Returns true if the file starts with the ELF magic number.
#[must_use]
pub fn is_elf(file: &[u8]) -> bool {
    file.starts_with(&MAGIC)
}

/// An ELF file of 64 bits and little-endian byte order.
#[derive(Debug, Clone, Copy)]
pub struct Elf<'a> {
    file: &'a [u8],
    header: &'a FileHeader64<LE>,
}

/// Purpose of a file (`e_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program for fixed addresses (`ET_EXEC`).
    Executable,
    /// A library, or a program that runs at any address (`ET_DYN`).
    Shared,
    /// An object file, a kernel module, a core, or another purpose.
    Other,
}

/// Processor that a file is for (`e_machine`). Its `Display` is the processor's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine(u16);

impl Machine {
    /// x86-64.
    pub const X86_64: Machine = Machine(elf::EM_X86_64.0);
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match elf::Machine(self.0) {
            elf::EM_X86_64 => f.write_str("x86-64"),
            elf::EM_386 => f.write_str("i386"),
            elf::EM_AARCH64 => f.write_str("aarch64"),
            elf::EM_RISCV => f.write_str("RISC-V"),
            elf::Machine(other) => write!(f, "machine {other}"),
        }
    }
}

/// Purpose of a segment (`p_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// A part of the file that is loaded into memory (`PT_LOAD`).
    Load,
    /// The table of dynamic entries (`PT_DYNAMIC`).
    Dynamic,
    /// The path of the dynamic linker (`PT_INTERP`).
    Interpreter,
    /// Another purpose.
    Other,
}

/// Program header, with the numbers that the file states. They are not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Purpose of the segment.
    pub kind: SegmentKind,
    /// True if the segment is mapped executable.
    pub is_executable: bool,
    /// Offset of the contents in the file.
    pub offset: u64,
    /// Virtual address.
    pub address: u64,
    /// Physical address.
    pub physical: u64,
    /// Length of the contents in the file, in bytes.
    pub file_bytes: u64,
    /// Length in memory, in bytes. The bytes after the contents are zero.
    pub memory_bytes: u64,
}

impl Segment {
    fn of(header: &ProgramHeader64<LE>) -> Segment {
        let kind = match header.p_type.get(LE) {
            elf::PT_LOAD => SegmentKind::Load,
            elf::PT_DYNAMIC => SegmentKind::Dynamic,
            elf::PT_INTERP => SegmentKind::Interpreter,
            _ => SegmentKind::Other,
        };
        Segment {
            kind,
            is_executable: header.p_flags.get(LE).contains(elf::PF_X),
            offset: header.p_offset.get(LE),
            address: header.p_vaddr.get(LE),
            physical: header.p_paddr.get(LE),
            file_bytes: header.p_filesz.get(LE),
            memory_bytes: header.p_memsz.get(LE),
        }
    }

    /// Returns the segment's contents in `file`, from which the segment was read.
    ///
    /// # Errors
    /// Returns an error if the contents reach beyond the end of the file.
    pub fn content<'a>(&self, file: &'a [u8]) -> Result<&'a [u8], Error> {
        part(file, self.offset, self.file_bytes).ok_or(Error::Truncated(Part::Segments))
    }
}

impl<'a> Elf<'a> {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Returns an error if the file is not an ELF file, is not of 64 bits and little-endian, or is shorter than its
    /// header.
    pub fn parse(file: &'a [u8]) -> Result<Elf<'a>, Error> {
        if !is_elf(file) {
            return Err(Error::NotElf);
        }
        if file.get(4..6).is_some_and(|ident| ident != [elf::ELFCLASS64.0, elf::ELFDATA2LSB.0]) {
            return Err(Error::Class);
        }
        if file.len() < size_of::<FileHeader64<LE>>() {
            return Err(Error::Truncated(Part::Header));
        }
        let damaged = |source| Error::Damaged { part: Part::Header, source };
        Ok(Elf { file, header: FileHeader64::parse(file).map_err(damaged)? })
    }

    /// Returns the purpose of the file.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.header.e_type.get(LE) {
            elf::ET_EXEC => Kind::Executable,
            elf::ET_DYN => Kind::Shared,
            _ => Kind::Other,
        }
    }

    /// Returns the processor that the file is for.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine(self.header.e_machine.get(LE).0)
    }

    /// Returns the virtual address of the first instruction; 0 if the file has none.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.header.e_entry.get(LE)
    }

    /// Returns the segments in the order of their headers, at most [`SEGMENTS_MAX`]. Their contents are not checked.
    ///
    /// # Errors
    /// Returns an error if there are more, or if their headers are damaged or reach beyond the end of the file.
    pub fn segments(&self) -> Result<Vec<Segment>, Error> {
        Ok(self.program_headers()?.iter().map(Segment::of).collect())
    }

    /// Returns the segments that are loaded into memory ([`SegmentKind::Load`]), in the order of their headers. Their
    /// contents are complete.
    ///
    /// # Errors
    /// Returns an error if [`Elf::segments`] fails, or if contents reach beyond the end of the file.
    pub fn load_segments(&self) -> Result<Vec<Segment>, Error> {
        let mut segments = self.segments()?;
        segments.retain(|segment| segment.kind == SegmentKind::Load);
        for segment in &segments {
            segment.content(self.file)?;
        }
        Ok(segments)
    }

    fn program_headers(&self) -> Result<&'a [ProgramHeader64<LE>], Error> {
        let part = Part::ProgramHeaders;
        let damaged = |source| Error::Damaged { part, source };
        let count = self.header.phnum(LE, self.file).map_err(damaged)? as usize;
        if count > SEGMENTS_MAX {
            return Err(Error::TooMany { part, max: SEGMENTS_MAX });
        }
        let bytes = (count * size_of::<ProgramHeader64<LE>>()) as u64;
        self.table(part, self.header.e_phoff.get(LE), bytes)?;
        self.header.program_headers(LE, self.file).map_err(damaged)
    }

    /// Checks that a table of the file ends within the file.
    fn table(&self, which: Part, offset: u64, bytes: u64) -> Result<(), Error> {
        part(self.file, offset, bytes).map(|_| ()).ok_or(Error::Truncated(which))
    }
}

/// Returns `bytes` bytes of the file from `offset` on. `None` if they reach beyond the end of the file.
fn part(file: &[u8], offset: u64, bytes: u64) -> Option<&[u8]> {
    file.get(usize::try_from(offset).ok()?..)?.get(..usize::try_from(bytes).ok()?)
}

/// Returns the text that starts at offset `at` of a table and ends before a zero byte. `None` if `at` is beyond the
/// table, or if no zero byte follows within the first `max + 1` bytes.
fn text(strings: &[u8], at: usize, max: usize) -> Option<&[u8]> {
    let rest = strings.get(at..)?;
    let end = rest.iter().take(max.saturating_add(1)).position(|byte| *byte == 0)?;
    rest.get(..end)
}

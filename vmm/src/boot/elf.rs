//! Loader of an uncompressed Linux kernel. It checks an ELF64 executable and copies its segments to their physical
//! addresses.

use std::fmt;

use vm_memory::{Bytes, GuestAddress};

use crate::layout::HIGH_RAM;
use crate::ram::Ram;

/// Defect of a kernel file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElfError {
    /// The file has no ELF header.
    NotElf,
    /// The file is a bzImage, i.e. a compressed kernel.
    BzImage,
    /// The ELF file is not for 64-bit little-endian x86.
    WrongMachine,
    /// The ELF file is not an executable; it is an object file or a core, for example.
    NotExecutable,
    /// Headers or contents lie beyond the end of the file.
    Truncated,
    /// The file has no loadable segment.
    NoSegments,
    /// A segment is not between 1 MiB and the end of RAM. Boot data is below 1 MiB.
    OutsideRam {
        /// Physical address of the segment.
        start: u64,
        /// Length of the segment in bytes.
        bytes: u64,
        /// Bytes of RAM.
        ram_bytes: u64,
    },
    /// The entry point lies outside all loaded segments.
    Entry {
        /// Address of the entry point.
        entry: u64,
    },
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("not a kernel: no ELF header"),
            ElfError::BzImage => f.write_str("a compressed bzImage: unpack it to vmlinux first"),
            ElfError::WrongMachine => f.write_str("not a 64-bit x86 kernel"),
            ElfError::NotExecutable => f.write_str("not a kernel: the ELF file is not an executable"),
            ElfError::Truncated => f.write_str("truncated: the file is shorter than its headers say"),
            ElfError::NoSegments => f.write_str("not a kernel: it has no loadable segment"),
            ElfError::OutsideRam { start, bytes, ram_bytes } => write!(
                f,
                "its segment of {bytes} bytes at {start:#x} does not fit into {} MiB of memory",
                ram_bytes >> 20
            ),
            ElfError::Entry { entry } => write!(f, "its entry point {entry:#x} is in none of its segments"),
        }
    }
}

/// Maximum number of program headers. Kernels have four or five.
const SEGMENTS_MAX: u16 = 64;
/// Bytes of the ELF64 file header.
const HEADER_BYTES: usize = 64;
const PT_LOAD: u32 = 1;

#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    paddr: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

/// Parsed kernel file.
#[derive(Debug)]
pub struct Kernel {
    file: Vec<u8>,
    segments: Vec<Segment>,
    entry: u64,
}

impl Kernel {
    /// Checks a kernel file and finds its segments.
    ///
    /// # Errors
    /// Returns an error if the file is not an executable ELF64 file for x86-64, or if its headers or segments extend
    /// beyond its end.
    pub fn parse(file: Vec<u8>) -> Result<Kernel, ElfError> {
        if file.get(..4) != Some(b"\x7fELF") {
            let bzimage = file.get(0x202..0x206) == Some(b"HdrS");
            return Err(if bzimage { ElfError::BzImage } else { ElfError::NotElf });
        }
        if file.len() < HEADER_BYTES {
            return Err(ElfError::Truncated);
        }
        // ELFCLASS64, little-endian, EM_X86_64.
        if file.get(4..6) != Some(&[2, 1]) || u16_at(&file, 0x12)? != 62 {
            return Err(ElfError::WrongMachine);
        }
        // ET_EXEC, or ET_DYN of a relocatable kernel.
        if !(2..=3).contains(&u16_at(&file, 0x10)?) {
            return Err(ElfError::NotExecutable);
        }
        let entry = u64_at(&file, 0x18)?;
        let table = u64_at(&file, 0x20)?;
        let (entry_bytes, count) = (u16_at(&file, 0x36)?, u16_at(&file, 0x38)?);
        let mut segments = Vec::new();
        for i in 0..count.min(SEGMENTS_MAX) {
            let header =
                table.checked_add(u64::from(i) * u64::from(entry_bytes)).ok_or(ElfError::Truncated)?;
            let field = |offset: u64| u64_at(&file, header.checked_add(offset).ok_or(ElfError::Truncated)?);
            if field(0)? as u32 != PT_LOAD {
                continue;
            }
            let segment = Segment {
                offset: field(0x08)?,
                paddr: field(0x18)?,
                file_bytes: field(0x20)?,
                memory_bytes: field(0x28)?,
            };
            let end = segment.offset.checked_add(segment.file_bytes).ok_or(ElfError::Truncated)?;
            if end > file.len() as u64 || segment.file_bytes > segment.memory_bytes {
                return Err(ElfError::Truncated);
            }
            if segment.memory_bytes > 0 {
                segments.push(segment);
            }
        }
        if segments.is_empty() {
            return Err(ElfError::NoSegments);
        }
        let inside = |s: &Segment| entry.checked_sub(s.paddr).is_some_and(|offset| offset < s.memory_bytes);
        if !segments.iter().any(inside) {
            return Err(ElfError::Entry { entry });
        }
        Ok(Kernel { file, segments, entry })
    }

    /// Copies the segments into RAM. The RAM must be zero before, so `.bss` is zero.
    ///
    /// # Errors
    /// Returns an error if a segment is not between 1 MiB and the end of RAM.
    pub fn load(&self, ram: &Ram) -> Result<(), ElfError> {
        for s in &self.segments {
            let outside =
                || ElfError::OutsideRam { start: s.paddr, bytes: s.memory_bytes, ram_bytes: ram.len() };
            let end = s.paddr.checked_add(s.memory_bytes).ok_or_else(outside)?;
            if s.paddr < HIGH_RAM || end > ram.len() {
                return Err(outside());
            }
            let content = &self.file[s.offset as usize..(s.offset + s.file_bytes) as usize];
            ram.memory().write_slice(content, GuestAddress(s.paddr)).map_err(|_| outside())?;
        }
        Ok(())
    }

    /// Returns the physical address of the first instruction.
    pub fn entry(&self) -> u64 {
        self.entry
    }
    /// Returns the first physical address above the kernel.
    pub fn end(&self) -> u64 {
        self.segments.iter().map(|s| s.paddr.saturating_add(s.memory_bytes)).max().unwrap_or(HIGH_RAM)
    }
}

fn bytes_at<const N: usize>(file: &[u8], offset: u64) -> Result<[u8; N], ElfError> {
    usize::try_from(offset)
        .ok()
        .and_then(|start| file.get(start..)?.first_chunk())
        .copied()
        .ok_or(ElfError::Truncated)
}
fn u16_at(file: &[u8], offset: u64) -> Result<u16, ElfError> {
    bytes_at(file, offset).map(u16::from_le_bytes)
}
fn u64_at(file: &[u8], offset: u64) -> Result<u64, ElfError> {
    bytes_at(file, offset).map(u64::from_le_bytes)
}

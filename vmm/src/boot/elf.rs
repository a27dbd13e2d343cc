//! Loader of an uncompressed Linux kernel. It checks an ELF64 executable and copies its segments to their physical
//! addresses.

use everett_elf::{Elf, Kind, Machine, Segment};
use vm_memory::{Bytes, GuestAddress};

use crate::layout::HIGH_RAM;
use crate::ram::Ram;

/// Defect of a kernel file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The file has no ELF header.
    #[error("not a kernel: no ELF header")]
    NotElf,
    /// The file is a bzImage, i.e. a compressed kernel.
    #[error("a compressed bzImage: unpack it to vmlinux first")]
    BzImage,
    /// The ELF file is not for 64-bit little-endian x86.
    #[error("not a 64-bit x86 kernel")]
    WrongMachine,
    /// The ELF file is not an executable; it is an object file or a core, for example.
    #[error("not a kernel: the ELF file is not an executable")]
    NotExecutable,
    /// Headers or contents lie beyond the end of the file.
    #[error("truncated: the file is shorter than its headers say")]
    Truncated,
    /// The headers contradict themselves.
    #[error("not a kernel: the ELF headers are damaged")]
    Damaged(#[source] everett_elf::Error),
    /// The file has no loadable segment.
    #[error("not a kernel: it has no loadable segment")]
    NoSegments,
    /// A segment has more bytes in the file than in memory.
    #[error("not a kernel: a segment is longer in the file than in memory")]
    SegmentLength,
    /// A segment is not between 1 MiB and the end of RAM. Boot data is below 1 MiB.
    #[error("its segment of {bytes} bytes at {start:#x} does not fit into {} MiB of memory", ram_bytes >> 20)]
    OutsideRam {
        /// Physical address of the segment.
        start: u64,
        /// Length of the segment in bytes.
        bytes: u64,
        /// Bytes of RAM.
        ram_bytes: u64,
    },
    /// The entry point lies outside all loaded segments.
    #[error("its entry point {entry:#x} is in none of its segments")]
    Entry {
        /// Address of the entry point.
        entry: u64,
    },
}

impl From<everett_elf::Error> for ElfError {
    fn from(error: everett_elf::Error) -> ElfError {
        match error {
            everett_elf::Error::NotElf => ElfError::NotElf,
            everett_elf::Error::Class => ElfError::WrongMachine,
            everett_elf::Error::Truncated(_) => ElfError::Truncated,
            other => ElfError::Damaged(other),
        }
    }
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
    /// Returns an error if the file is not an executable ELF64 file for x86-64, if its headers are damaged, or if
    /// headers or segments extend beyond the file's end. Also returns an error if a segment is longer in the file than
    /// in memory, if no segment is loadable, or if no loadable segment contains the entry point.
    pub fn parse(file: Vec<u8>) -> Result<Kernel, ElfError> {
        if !everett_elf::is_elf(&file) && file.get(0x202..0x206) == Some(b"HdrS") {
            return Err(ElfError::BzImage);
        }
        let elf = Elf::parse(&file)?;
        if elf.machine() != Machine::X86_64 {
            return Err(ElfError::WrongMachine);
        }
        if elf.kind() == Kind::Other {
            return Err(ElfError::NotExecutable);
        }
        let entry = elf.entry();
        let mut segments = elf.load_segments()?;
        if segments.iter().any(|segment| segment.file_bytes > segment.memory_bytes) {
            return Err(ElfError::SegmentLength);
        }
        segments.retain(|segment| segment.memory_bytes > 0);
        if segments.is_empty() {
            return Err(ElfError::NoSegments);
        }
        let inside =
            |s: &Segment| entry.checked_sub(s.physical).is_some_and(|offset| offset < s.memory_bytes);
        if !segments.iter().any(inside) {
            return Err(ElfError::Entry { entry });
        }
        Ok(Kernel { file, segments, entry })
    }

    /// Copies the segments into RAM. The RAM must be zero before the call, because the parts of segments that the file
    /// does not contain (`.bss`) are not written.
    ///
    /// # Errors
    /// Returns an error if a segment is not between 1 MiB and the end of RAM.
    pub fn load(&self, ram: &Ram) -> Result<(), ElfError> {
        for s in &self.segments {
            let outside =
                || ElfError::OutsideRam { start: s.physical, bytes: s.memory_bytes, ram_bytes: ram.len() };
            let end = s.physical.checked_add(s.memory_bytes).ok_or_else(outside)?;
            if s.physical < HIGH_RAM || end > ram.len() {
                return Err(outside());
            }
            ram.memory()
                .write_slice(s.content(&self.file)?, GuestAddress(s.physical))
                .map_err(|_| outside())?;
        }
        Ok(())
    }

    /// Returns the physical address of the first instruction.
    pub fn entry(&self) -> u64 {
        self.entry
    }
    /// Returns the first physical address above the kernel.
    pub fn end(&self) -> u64 {
        self.segments.iter().map(|s| s.physical.saturating_add(s.memory_bytes)).max().unwrap_or(HIGH_RAM)
    }
}

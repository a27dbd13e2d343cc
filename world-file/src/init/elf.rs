//! Checks that Everett's machines can run a program.

use everett_elf::{Elf, Error, Kind, Machine, Needs};

/// Reason why machines cannot run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The file is not an ELF file.
    #[error("not an ELF program; name a program, a compose file, or an archive of an image")]
    NotElf,
    /// The file is not for a 64-bit little-endian x86-64 processor.
    #[error("a program for another processor; machines are x86-64, 64 bits")]
    Processor,
    /// The file is a library or an object file.
    #[error("an ELF file that is no program")]
    NotProgram,
    /// The file ends early, or a header points beyond its end.
    #[error("the ELF headers are damaged")]
    Damaged(#[source] everett_elf::Error),
}

/// Returns what a program needs to run: dynamic linker, libraries, symbol versions.
pub(super) fn read(file: &[u8]) -> Result<Needs<'_>, ElfError> {
    let elf = Elf::parse(file).map_err(|error| match error {
        Error::NotElf => ElfError::NotElf,
        Error::Class => ElfError::Processor,
        other => ElfError::Damaged(other),
    })?;
    if elf.machine() != Machine::X86_64 {
        return Err(ElfError::Processor);
    }
    if elf.kind() == Kind::Other {
        return Err(ElfError::NotProgram);
    }
    let needs = elf.needs().map_err(ElfError::Damaged)?;
    // A library has no entry point, except for the few libraries that can also be run.
    if elf.entry() == 0 { Err(ElfError::NotProgram) } else { Ok(needs) }
}

#[cfg(test)]
mod tests {
    use everett_elf::{Error, Part};

    use super::super::tests::elf_program::program;
    use super::{ElfError, read};

    #[test]
    fn other_files_are_refused_with_their_reason() {
        let refused = |at: usize, bytes: &[u8]| {
            let mut file = program(Some("/lib/ld.so"), &["a.so"]);
            file[at..at + bytes.len()].copy_from_slice(bytes);
            read(&file).unwrap_err()
        };
        assert_eq!(read(b"#!/bin/sh\n").unwrap_err(), ElfError::NotElf);
        assert_eq!(read(b"\x7fELF").unwrap_err(), ElfError::Damaged(Error::Truncated(Part::Header)));
        assert_eq!(refused(4, &[1]), ElfError::Processor);
        assert_eq!(refused(18, &183_u16.to_le_bytes()), ElfError::Processor);
        assert_eq!(refused(16, &1_u16.to_le_bytes()), ElfError::NotProgram);
        assert_eq!(refused(24, &0_u64.to_le_bytes()), ElfError::NotProgram);
        let cut = ElfError::Damaged(Error::Truncated(Part::ProgramHeaders));
        assert_eq!(refused(32, &u64::MAX.to_le_bytes()), cut);
        assert_eq!(cut.to_string(), "the ELF headers are damaged");
        assert!(matches!(refused(56, &u16::MAX.to_le_bytes()), ElfError::Damaged(_)));
        let whole = program(Some("/lib/ld.so"), &["a.so"]);
        for bytes in 4..whole.len() - 1 {
            assert!(matches!(read(&whole[..bytes]).unwrap_err(), ElfError::Damaged(_)), "{bytes}");
        }
    }
}

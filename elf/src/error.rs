//! Reasons why a file cannot be read.

use std::fmt;

/// Reason why an ELF file, or a part of it, cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file does not start with the ELF magic number.
    #[error("it is not an ELF file")]
    NotElf,
    /// The file is not of 64 bits, or not little-endian.
    #[error("it is not for a little-endian processor of 64 bits")]
    Class,
    /// The file ends before a part does.
    #[error("its {0} reach beyond the end of the file")]
    Truncated(Part),
    /// A part contradicts itself.
    #[error("its {part} are damaged")]
    Damaged {
        /// The part.
        part: Part,
        /// The contradiction.
        #[source]
        source: object::read::Error,
    },
    /// A part has more entries than Everett reads.
    #[error("it has more than {max} {part}")]
    TooMany {
        /// The part.
        part: Part,
        /// Maximum number of its entries.
        max: usize,
    },
    /// The program names libraries, but has no table of strings.
    #[error("it names libraries, but has no table of strings")]
    NoStrings,
    /// No loaded segment puts bytes of the file at this address.
    #[error("its address {0:#x} is in none of its segments")]
    Address(u64),
    /// A name has no end, too many bytes, or is not UTF-8.
    #[error("a name in it has more than {} bytes, or is not UTF-8", crate::NAME_BYTES_MAX)]
    Name,
}

/// Part of an ELF file. Its `Display` is a plural noun for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The header at the start of the file.
    Header,
    /// The table of program headers.
    ProgramHeaders,
    /// The contents of segments.
    Segments,
    /// The table of section headers.
    SectionHeaders,
    /// The contents of sections.
    Sections,
    /// The needed versions of libraries' symbols.
    Versions,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Header => "first 64 bytes",
            Part::ProgramHeaders => "program headers",
            Part::Segments => "segments",
            Part::SectionHeaders => "section headers",
            Part::Sections => "sections",
            Part::Versions => "symbol versions",
        })
    }
}

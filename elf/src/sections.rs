//! Finds sections by name, and lists the symbols in them.

use object::LittleEndian as LE;
use object::elf::{self, CompressionHeader64, SectionHeader64, Sym64};
use object::pod::{from_bytes, slice_from_bytes};
use object::read::elf::FileHeader as _;

use crate::{Elf, Error, Part, part, text};

/// The sections of a file.
#[derive(Debug, Clone, Copy)]
pub struct Sections<'a> {
    file: &'a [u8],
    headers: &'a [SectionHeader64<LE>],
    /// Names of all sections, one after another; empty if the file names no section, or if the names are damaged.
    names: &'a [u8],
}

/// A section.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    table: Sections<'a>,
    header: &'a SectionHeader64<LE>,
}

impl<'a> Elf<'a> {
    /// Returns the sections; none if the file has no section headers. If their names lie beyond the end of the file,
    /// the sections have no names. This is not an error, because symbols can be read without the names of sections.
    ///
    /// # Errors
    /// Returns an error if the section headers are damaged or reach beyond the end of the file.
    pub fn sections(&self) -> Result<Sections<'a>, Error> {
        let damaged = |source| Error::Damaged { part: Part::SectionHeaders, source };
        let count = self.header.shnum(LE, self.file).map_err(damaged)?;
        let bytes = u64::from(count) * size_of::<SectionHeader64<LE>>() as u64;
        self.table(Part::SectionHeaders, self.header.e_shoff.get(LE), bytes)?;
        let headers = self.header.section_headers(LE, self.file).map_err(damaged)?;
        let mut sections = Sections { file: self.file, headers, names: &[] };
        if let Ok(index) = self.header.section_strings_index(LE, self.file)
            && let Some(section) = sections.at(index.0)
        {
            sections.names = section.content().unwrap_or_default();
        }
        Ok(sections)
    }
}

impl<'a> Sections<'a> {
    fn at(&self, index: usize) -> Option<Section<'a>> {
        self.headers.get(index).map(|header| Section { table: *self, header })
    }

    /// Returns the sections in the order of their headers. The first is the null section, which is empty.
    pub fn iter(&self) -> impl Iterator<Item = Section<'a>> + use<'a> {
        let table = *self;
        self.headers.iter().map(move |header| Section { table, header })
    }

    /// Returns the first section with this name, or `None` if there is none.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Section<'a>> {
        self.iter().find(|section| section.has_name(name))
    }

    /// Returns the symbols of the file's first table of this kind; none if it has no such table.
    ///
    /// # Errors
    /// Returns an error if the table or its names reach beyond the end of the file.
    pub fn symbols(&self, table: SymbolTable) -> Result<Symbols<'a>, Error> {
        let kind = match table {
            SymbolTable::Static => elf::SHT_SYMTAB,
            SymbolTable::Dynamic => elf::SHT_DYNSYM,
        };
        let Some(section) = self.iter().find(|section| section.header.sh_type.get(LE) == kind) else {
            return Ok(Symbols { table: &[], strings: &[] });
        };
        let content = section.content()?;
        let table = slice_from_bytes(content, content.len() / size_of::<Sym64<LE>>());
        let strings = self.at(section.header.sh_link.get(LE) as usize);
        let strings = strings.ok_or(Error::Truncated(Part::SectionHeaders))?.content()?;
        Ok(Symbols { table: table.map_or(&[], |(table, _)| table), strings })
    }
}

impl<'a> Section<'a> {
    /// Returns true if the section has this name.
    fn has_name(&self, name: &str) -> bool {
        // Reads at most `name.len() + 1` bytes of the section's own name, because that name may be long.
        text(self.table.names, self.header.sh_name.get(LE) as usize, name.len()) == Some(name.as_bytes())
    }

    /// Returns the virtual address; 0 if the section is not loaded.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.header.sh_addr.get(LE)
    }

    /// Returns the section's bytes as they are in the file, possibly compressed. Empty if the section has no bytes in
    /// the file (`.bss`).
    ///
    /// # Errors
    /// Returns an error if the contents reach beyond the end of the file.
    pub fn content(&self) -> Result<&'a [u8], Error> {
        if self.header.sh_type.get(LE) == elf::SHT_NOBITS {
            return Ok(&[]);
        }
        let (offset, bytes) = (self.header.sh_offset.get(LE), self.header.sh_size.get(LE));
        part(self.table.file, offset, bytes).ok_or(Error::Truncated(Part::Sections))
    }

    /// Returns the section's bytes without their compression header, and what this header states.
    ///
    /// # Errors
    /// Returns an error if the contents or their compression header reach beyond the end of the file.
    pub fn packed(&self) -> Result<Packed<'a>, Error> {
        let content = self.content()?;
        if (self.header.sh_flags.get(LE) & elf::SHF_COMPRESSED).0 == 0 {
            return Ok(Packed { bytes: content, compression: None });
        }
        let (header, bytes) =
            from_bytes::<CompressionHeader64<LE>>(content).map_err(|()| Error::Truncated(Part::Sections))?;
        let compression = match header.ch_type.get(LE) {
            elf::ELFCOMPRESS_ZLIB => Compression::Zlib,
            elf::ELFCOMPRESS_ZSTD => Compression::Zstd,
            _ => Compression::Other,
        };
        Ok(Packed { bytes, compression: Some((compression, header.ch_size.get(LE))) })
    }
}

/// Bytes of a section, perhaps compressed.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Compression, and length after decompression in bytes. A hostile file can state any length. `None` if the bytes
    /// are not compressed.
    pub compression: Option<(Compression, u64)>,
}

/// Compression of a section's bytes (`ch_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// zlib (RFC 1950).
    Zlib,
    /// Zstandard (RFC 8878).
    Zstd,
    /// An unknown compression.
    Other,
}

/// Kind of a symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolTable {
    /// All symbols, for debuggers (`.symtab`). Most installed programs lack it.
    Static,
    /// The symbols that the dynamic linker needs (`.dynsym`).
    Dynamic,
}

/// A symbol table.
#[derive(Debug, Clone, Copy)]
pub struct Symbols<'a> {
    table: &'a [Sym64<LE>],
    strings: &'a [u8],
}

/// Kind of a symbol (`st_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A symbol without a kind, for example a label of assembler code.
    Untyped,
    /// A variable.
    Object,
    /// A function.
    Function,
    /// A section, a source file, or another kind.
    Other,
}

/// A symbol.
#[derive(Debug, Clone, Copy)]
pub struct Symbol<'a> {
    /// Kind of the symbol.
    pub kind: SymbolKind,
    /// Address; in an object file, the offset within the symbol's section.
    pub address: u64,
    /// Length in bytes; 0 if it is unknown.
    pub bytes: u64,
    /// True if the file defines the symbol, false if it only uses it.
    pub is_defined: bool,
    name_at: u32,
    strings: &'a [u8],
}

impl<'a> Symbols<'a> {
    /// Returns the symbols in the order of the table. The first is the null symbol, which has no name.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'a>> + use<'a> {
        let strings = self.strings;
        self.table.iter().map(move |symbol| Symbol {
            kind: match symbol.st_type() {
                elf::STT_NOTYPE => SymbolKind::Untyped,
                elf::STT_OBJECT => SymbolKind::Object,
                elf::STT_FUNC => SymbolKind::Function,
                _ => SymbolKind::Other,
            },
            address: symbol.st_value.get(LE),
            bytes: symbol.st_size.get(LE),
            is_defined: symbol.st_shndx.get(LE) != elf::SymbolSection(elf::SHN_UNDEF.0),
            name_at: symbol.st_name.get(LE),
            strings,
        })
    }
}

impl<'a> Symbol<'a> {
    /// Returns the name; `None` if it is damaged or has more than `max` bytes.
    #[must_use]
    pub fn name(&self, max: usize) -> Option<&'a [u8]> {
        text(self.strings, self.name_at as usize, max)
    }
}

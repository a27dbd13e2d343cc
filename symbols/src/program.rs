//! A program or library: its functions, and what unwinding needs.

use std::fmt;
use std::sync::Arc;

use everett_elf::{Elf, Error, Segment, SegmentKind, SymbolKind, SymbolTable};

/// Maximum length of a function's name, in bytes. Names of C++ and Rust functions can be long.
const NAME_BYTES_MAX: usize = 4_096;
/// Maximum number of functions of a program.
pub const FUNCTIONS_MAX: usize = 4 << 20;
/// Maximum length of a name that [`Function`] shows, in characters. Longer names are cut off.
pub const SHOWN_CHARS_MAX: usize = 256;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// First address, as the file states it.
    start: u64,
    /// Length in bytes. 0 if it is unknown.
    bytes: u64,
    /// Offset of the name in `Program::names`, and its length.
    name: (u32, u32),
}

/// A program or library.
#[derive(Debug, Clone)]
pub struct Program {
    file: Arc<[u8]>,
    segments: Vec<Segment>,
    /// Functions, ascending by first address.
    functions: Vec<Entry>,
    names: Vec<u8>,
    /// Addresses and contents of the sections that unwinding reads.
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) text: Option<Section>,
    pub(crate) got: Option<Section>,
}

/// Address and content of a section.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) address: u64,
    pub(crate) content: Arc<[u8]>,
}

/// A function and an address in it. Its `Display` is the demangled name and the distance from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function<'p> {
    /// Name, as the file has it.
    pub name: &'p str,
    /// Distance of the address from the function's start, in bytes.
    pub offset: u64,
}

impl Function<'_> {
    /// Returns the name as the source has it: demangled if it is a name of C++ or Rust.
    #[must_use]
    pub fn demangled(&self) -> String {
        let name = if let Ok(rust) = rustc_demangle::try_demangle(self.name) {
            format!("{rust:#}")
        } else if self.name.starts_with("_Z") {
            let symbol = cpp_demangle::Symbol::new(self.name);
            let demangled = symbol.ok().and_then(|symbol| symbol.demangle().ok());
            demangled.unwrap_or_else(|| self.name.to_owned())
        } else {
            self.name.to_owned()
        };
        match name.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name,
        }
    }
}

impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.demangled(), self.offset)
    }
}

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    /// Returns an error if the file is not an ELF file, or if its headers or symbols are damaged.
    pub fn parse(file: Arc<[u8]>) -> Result<Program, Error> {
        let elf = Elf::parse(&file)?;
        let mut segments = elf.segments()?;
        segments.retain(|segment| segment.kind == SegmentKind::Load);
        let mut program = Program {
            segments,
            functions: Vec::new(),
            names: Vec::new(),
            eh_frame: None,
            eh_frame_hdr: None,
            text: None,
            got: None,
            file: Arc::clone(&file),
        };
        // A program without section headers has no names, but its segments are known.
        let Ok(sections) = elf.sections() else { return Ok(program) };
        let section = |name| {
            let section = sections.named(name)?;
            let content = section.content().ok().filter(|content| !content.is_empty())?;
            Some(Section { address: section.address(), content: content.into() })
        };
        program.eh_frame = section(".eh_frame");
        program.eh_frame_hdr = section(".eh_frame_hdr");
        program.text = section(".text");
        program.got = section(".got");
        for table in [SymbolTable::Static, SymbolTable::Dynamic] {
            for symbol in sections.symbols(table)?.iter() {
                if symbol.kind != SymbolKind::Function || !symbol.is_defined || symbol.address == 0 {
                    continue;
                }
                let Some(name) = symbol.name(NAME_BYTES_MAX).filter(|name| !name.is_empty()) else {
                    continue;
                };
                // Names may share bytes in a hostile file, so the sum of their lengths is bounded by the file's length.
                if program.functions.len() >= FUNCTIONS_MAX || program.names.len() + name.len() > file.len() {
                    break;
                }
                let name_at = (program.names.len() as u32, name.len() as u32);
                program.names.extend(name);
                let (start, bytes) = (symbol.address, symbol.bytes);
                program.functions.push(Entry { start, bytes, name: name_at });
            }
        }
        program.functions.sort_by_key(|entry| (entry.start, entry.bytes == 0));
        program.functions.dedup_by_key(|entry| entry.start);
        Ok(program)
    }

    /// Returns the function at an address, as the file states addresses. `None` if no function is there.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<Function<'_>> {
        let n = self.functions.partition_point(|entry| entry.start <= address).checked_sub(1)?;
        let entry = self.functions.get(n)?;
        let offset = address - entry.start;
        // The end of a function without a length is the start of the next one.
        if entry.bytes != 0 && offset >= entry.bytes {
            return None;
        }
        let (at, bytes) = (entry.name.0 as usize, entry.name.1 as usize);
        let name = str::from_utf8(self.names.get(at..at + bytes)?).ok()?;
        Some(Function { name, offset })
    }

    /// Returns the address, as the file states it, of the byte at an offset of the file. `None` if the byte is not
    /// loaded.
    #[must_use]
    pub fn address_at(&self, offset: u64) -> Option<u64> {
        // A mapping begins at the page that holds the segment's first byte.
        let of = |segment: &&Segment| {
            let start = segment.offset & !0xfff;
            (start..segment.offset.saturating_add(segment.file_bytes)).contains(&offset)
        };
        let segment = self.segments.iter().find(of)?;
        Some(segment.address.wrapping_add(offset).wrapping_sub(segment.offset))
    }

    /// Returns the file's bytes from an offset on.
    #[must_use]
    pub fn bytes_at(&self, offset: u64) -> &[u8] {
        usize::try_from(offset).ok().and_then(|at| self.file.get(at..)).unwrap_or_default()
    }
}

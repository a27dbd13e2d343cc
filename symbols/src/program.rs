//! A program or library: its functions, and what unwinding needs.

use std::fmt::{self, Write as _};
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use crate::bytes::u32_at;
use crate::cfi;
pub use crate::cfi::FrameRule;
pub use crate::go::GoSteps;
use crate::go::Table;
use gimli::BaseAddresses;

use everett_elf::{Elf, Error, Segment, SegmentKind, SymbolKind, SymbolTable};

/// Maximum length of a function's name, in bytes. Names of C++ and Rust functions can be long.
const NAME_BYTES_MAX: usize = 4_096;
/// Maximum length of a build ID, in bytes. Linkers write 20 by default.
const BUILD_ID_BYTES_MAX: usize = 64;
/// Maximum number of functions of a program.
pub const FUNCTIONS_MAX: usize = 4 << 20;
/// Maximum number of variables of one name that are reported.
pub const VARIABLES_MAX: usize = 256;
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
    /// Loaded segments with code.
    segments: Vec<Segment>,
    /// Functions, ascending by first address.
    functions: Vec<Entry>,
    names: Vec<u8>,
    /// Addresses and contents of the sections that unwinding reads.
    pub(crate) eh_frame: Option<Section>,
    pub(crate) text: Option<Section>,
    pub(crate) got: Option<Section>,
    /// Table of functions of a Go program.
    pub(crate) go: Option<GoTable>,
    /// True if unwinding could take unbounded time, once it is known.
    is_unbounded: OnceLock<bool>,
    build_id: Option<Vec<u8>>,
    supplement: Option<Supplement>,
}

/// File with parts of the debug information that several files share (`.gnu_debugaltlink`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supplement {
    /// Its path, absolute or relative to the folder of the referring file.
    pub path: String,
    /// Its build ID.
    pub build_id: Vec<u8>,
}

/// Address and content of a section.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) address: u64,
    pub(crate) content: Content,
}

/// Table of functions of a Go program.
#[derive(Debug, Clone)]
pub(crate) struct GoTable {
    content: Content,
    /// Address of the code that it describes, as the file states it.
    start: u64,
}

impl GoTable {
    pub(crate) fn table(&self) -> Option<Table<'_>> {
        Table::new(&self.content, self.start)
    }
}

/// Content of a section: a range of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    file: Arc<[u8]>,
    range: Range<usize>,
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.file.get(self.range.clone()).unwrap_or_default()
    }
}

/// Text up to a maximum length in characters. A hostile name of C++ can stand for a text of any length.
struct Short {
    text: String,
    chars_left: usize,
}

impl fmt::Write for Short {
    /// Returns an error if there is no room for the whole text. It then adds the part for which there is room.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = text.char_indices().nth(self.chars_left).map_or(text.len(), |(end, _)| end);
        self.text.push_str(&text[..room]);
        self.chars_left -= text[..room].chars().count();
        if room == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// A function and an address in it. Its `Display` is the demangled name and the distance from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function<'p> {
    /// Name, as the file has it.
    pub name: &'p str,
    /// Distance of the address from the function's start, in bytes.
    pub offset: u64,
}

/// Returns a function's name as the source has it: demangled if it is a name of C++ or Rust. Names of over
/// [`SHOWN_CHARS_MAX`] characters are cut off.
#[must_use]
pub fn demangled(name: &str) -> String {
    let mut short = Short { text: String::new(), chars_left: SHOWN_CHARS_MAX };
    let written = if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(short, "{rust:#}")
    } else if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
    {
        let written = symbol.structured_demangle(&mut short, &cpp_demangle::DemangleOptions::new());
        // An error before the text is full is one of the name itself.
        if written.is_err() && short.chars_left > 0 {
            short = Short { text: String::new(), chars_left: SHOWN_CHARS_MAX };
            short.write_str(name)
        } else {
            written
        }
    } else {
        short.write_str(name)
    };
    match written {
        Ok(()) => short.text,
        Err(_) => short.text + "…",
    }
}

impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", demangled(self.name), self.offset)
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
        segments.retain(|segment| segment.kind == SegmentKind::Load && segment.is_executable);
        let mut program = Program {
            segments,
            functions: Vec::new(),
            names: Vec::new(),
            eh_frame: None,
            text: None,
            got: None,
            go: None,
            build_id: None,
            is_unbounded: OnceLock::new(),
            supplement: None,
            file: Arc::clone(&file),
        };
        // A program without section headers has no names, but its segments are known.
        let Ok(sections) = elf.sections() else { return Ok(program) };
        let section_of = |section: everett_elf::Section<'_>| {
            let content = section.content().ok().filter(|content| !content.is_empty())?;
            let start = content.as_ptr().addr().checked_sub(file.as_ptr().addr())?;
            let content = Content { file: Arc::clone(&file), range: start..start + content.len() };
            Some(Section { address: section.address(), content })
        };
        let section = |name| section_of(sections.named(name)?);
        program.eh_frame = section(".eh_frame");
        program.text = section(".text");
        program.got = section(".got");
        let go = sections.named(".gopclntab").or_else(|| sections.named(".data.rel.ro.gopclntab"));
        program.go = go.and_then(|section| {
            let start = Table::of(&sections, &section)?.start();
            Some(GoTable { content: section_of(section)?.content, start })
        });
        program.build_id = section(".note.gnu.build-id").and_then(|note| build_id(&note.content));
        program.supplement = section(".gnu_debugaltlink").and_then(|link| supplement(&link.content));
        // Names may share bytes in a hostile file, so the sum of their lengths is bounded by the file's length.
        let mut room = file.len();
        for table in [SymbolTable::Static, SymbolTable::Dynamic] {
            for symbol in sections.symbols(table)?.iter() {
                if symbol.kind != SymbolKind::Function || !symbol.is_defined || symbol.address == 0 {
                    continue;
                }
                let name = symbol.name(NAME_BYTES_MAX);
                if !program.add(name, symbol.address, symbol.bytes, &mut room) {
                    break;
                }
            }
        }
        let go = program.go.clone();
        let go = go.as_ref().and_then(GoTable::table);
        for (function, bytes) in go.iter().flat_map(Table::functions) {
            let name = go.as_ref().and_then(|table| table.name(function, NAME_BYTES_MAX));
            if !program.add(name, function.start, bytes, &mut room) {
                break;
            }
        }
        program.functions.sort_by_key(|entry| (entry.start, entry.bytes == 0));
        program.functions.dedup_by_key(|entry| entry.start);
        Ok(program)
    }

    /// Adds a function that has a name. `room` is the number of bytes of names that may still be read. Returns false if there are
    /// too many functions, or if the names are too long.
    fn add(&mut self, name: Option<&[u8]>, start: u64, bytes: u64, room: &mut usize) -> bool {
        // The end of a name that is too long was sought up to the bound.
        let read = name.map_or(NAME_BYTES_MAX, <[u8]>::len);
        let Some(left) = room.checked_sub(read).filter(|_| self.functions.len() < FUNCTIONS_MAX) else {
            return false;
        };
        *room = left;
        let Some(name) = name.filter(|name| !name.is_empty()) else { return true };
        let name_at = (self.names.len() as u32, name.len() as u32);
        self.names.extend(name);
        self.functions.push(Entry { start, bytes, name: name_at });
        true
    }

    /// Returns path and line of the source at an address of a Go program, as the file states addresses. `steps` bounds the work
    /// for all frames of a stack. `None` if its table of functions does not state them, and in an inlined call, because Everett
    /// does not read the tree of inlined calls.
    #[must_use]
    pub fn go_source(&self, address: u64, steps: &mut GoSteps) -> Option<(String, u64)> {
        let (path, line) = self.go.as_ref()?.table()?.source(address, steps)?;
        Some((String::from_utf8_lossy(path).into_owned(), line))
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// Returns the build ID, with which the linker names this build of the program. `None` if it has none.
    #[must_use]
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Returns the file with shared parts of the debug information. `None` if this file refers to none.
    #[must_use]
    pub fn supplement(&self) -> Option<&Supplement> {
        self.supplement.as_ref()
    }

    /// Returns the rule for the canonical frame address at an address of code. `None` if the unwind tables have none, or one
    /// that is an expression.
    #[must_use]
    pub fn frame_rule(&self, address: u64) -> Option<FrameRule> {
        let eh_frame = self.eh_frame.as_ref()?;
        cfi::frame_rule(&eh_frame.content, &self.bases(eh_frame), address)
    }

    /// Returns true if the unwind tables could take unbounded time.
    pub(crate) fn is_unbounded(&self) -> bool {
        let compute = || {
            let eh_frame = self.eh_frame.as_ref();
            eh_frame.is_some_and(|section| cfi::is_unbounded(&section.content, &self.bases(section)))
        };
        *self.is_unbounded.get_or_init(compute)
    }

    fn bases(&self, eh_frame: &Section) -> BaseAddresses {
        let address_of = |section: &Option<Section>| section.as_ref().map(|section| section.address);
        cfi::bases(eh_frame.address, address_of(&self.text), address_of(&self.got))
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
        Some(Function { name: str::from_utf8(self.name(entry)?).ok()?, offset })
    }

    /// Returns the first addresses of the functions with this name, as the file has the name.
    pub fn functions_named(&self, name: &str) -> impl Iterator<Item = u64> {
        let named = move |entry: &&Entry| self.name(entry) == Some(name.as_bytes());
        self.functions.iter().filter(named).map(|entry| entry.start)
    }

    /// Returns first address and length of the functions with this name, as the file or as the source has it. Parameters
    /// can be left out, as in `leaf::run` for `leaf::run(int)`. The length is 0 if it is unknown.
    pub fn functions_called(&self, name: &str) -> impl Iterator<Item = (u64, u64)> {
        let called = move |entry: &&Entry| {
            let Some(own) = self.name(entry).and_then(|own| str::from_utf8(own).ok()) else { return false };
            // Only mangled names differ from those in the source.
            let is_mangled = own.starts_with('_');
            own == name
                || is_mangled && {
                    let shown = demangled(own);
                    shown == name || shown.split('(').next() == Some(name)
                }
        };
        self.functions.iter().filter(called).map(|entry| (entry.start, entry.bytes))
    }

    /// Returns the first address of the variable with this name, as the file states addresses. `None` if no symbol names it,
    /// or if symbols of different variables have this name.
    #[must_use]
    pub fn variable_named(&self, name: &str) -> Option<u64> {
        let sections = Elf::parse(&self.file).and_then(|elf| elf.sections()).ok()?;
        let mut found = None;
        for table in [SymbolTable::Static, SymbolTable::Dynamic] {
            let Ok(symbols) = sections.symbols(table) else { continue };
            for symbol in symbols.iter().filter(|symbol| symbol.is_defined && symbol.address != 0) {
                if symbol.kind != SymbolKind::Object || symbol.name(name.len()) != Some(name.as_bytes()) {
                    continue;
                }
                if *found.get_or_insert(symbol.address) != symbol.address {
                    return None;
                }
            }
        }
        found
    }

    /// Returns the addresses of the variables with this name, as the file states addresses, and their lengths in bytes. A
    /// length is 0 if it is unknown. Static variables of different source files can share a name.
    #[must_use]
    pub fn variables_named(&self, name: &str) -> Vec<(u64, u64)> {
        let Ok(elf) = Elf::parse(&self.file) else { return Vec::new() };
        let Ok(sections) = elf.sections() else { return Vec::new() };
        let mut found = Vec::new();
        for table in [SymbolTable::Static, SymbolTable::Dynamic] {
            let Ok(symbols) = sections.symbols(table) else { continue };
            for symbol in symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Object) {
                let is_it = symbol.is_defined && symbol.name(name.len()) == Some(name.as_bytes());
                if is_it && found.len() < VARIABLES_MAX {
                    found.push((symbol.address, symbol.bytes));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns first address and length of each function with a name, ascending by address. The length is 0 if it is
    /// unknown.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.functions.iter().map(|entry| (entry.start, entry.bytes))
    }

    /// Returns true if an address, as the file states addresses, is in a segment with code.
    pub(crate) fn is_code(&self, address: u64) -> bool {
        let within = |segment: &Segment| {
            address.checked_sub(segment.address).is_some_and(|distance| distance < segment.memory_bytes)
        };
        self.segments.iter().any(within)
    }

    fn name(&self, entry: &Entry) -> Option<&[u8]> {
        let (at, bytes) = (entry.name.0 as usize, entry.name.1 as usize);
        self.names.get(at..at + bytes)
    }

    /// Returns the address, as the file states it, of the code at an offset of the file. `None` if no segment with code
    /// is there.
    #[must_use]
    pub fn address_of_code(&self, offset: u64) -> Option<u64> {
        // A mapping begins at the page that holds the segment's first byte. Other segments can end in this page.
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

/// Reads the build ID from a note: the lengths of its name and of its content, its kind, the name `GNU`, the content
/// (System V ABI, "Note Section").
fn build_id(note: &[u8]) -> Option<Vec<u8>> {
    const KIND: u32 = 3;
    let word = |n: usize| u32_at(note, 4 * n);
    let name = note.get(12..16)?;
    if word(0)? != 4 || word(2)? != KIND || name != b"GNU\0" {
        return None;
    }
    let id = note.get(16..)?.get(..word(1)? as usize)?;
    (!id.is_empty() && id.len() <= BUILD_ID_BYTES_MAX).then(|| id.to_vec())
}

/// Reads a reference to a supplement: its path with a zero byte at the end, then its build ID.
fn supplement(link: &[u8]) -> Option<Supplement> {
    let end = link.iter().take(NAME_BYTES_MAX).position(|byte| *byte == 0)?;
    let (path, id) = (link.get(..end)?, link.get(end + 1..)?);
    let path = str::from_utf8(path).ok()?.to_owned();
    (id.len() <= BUILD_ID_BYTES_MAX).then(|| Supplement { path, build_id: id.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_and_cut_off() {
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_ZN4leaf3runEi"), "leaf::run(int)");
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangled("_Zfoo"), "_Zfoo", "not a name of C++");
        let long = "x".repeat(SHOWN_CHARS_MAX);
        assert_eq!(demangled(&long), long);
        assert_eq!(demangled(&(long.clone() + "x")), long + "…");
    }

    /// Each parameter of this function of C++ is `A<T, T>` with the parameter before it as `T`. The last one would have
    /// more than 2^60 characters.
    #[test]
    fn a_name_that_stands_for_an_endless_text_is_cut_off() {
        let number = |n: u32| char::from_digit(n, 36).unwrap().to_ascii_uppercase();
        let next = (0..36).map(|n| format!("S_IS{0}_S{0}_E", number(n)));
        let next = next.chain((0..30).map(|n| format!("S_IS{0}_S{0}_E", format!("1{}", number(n)))));
        let name = format!("_Z1f1AIiiE{}", next.collect::<String>());
        let text = demangled(&name);
        assert!(text.starts_with("f(A<int, int>, A<A<int, int>, A<int, int> >"), "{text}");
        assert_eq!(text.chars().count(), SHOWN_CHARS_MAX + 1);
    }

    /// The code's first page can also hold the end of the segment before it, which is not code.
    #[test]
    fn offsets_of_code_have_the_addresses_of_its_segment() {
        let file: Arc<[u8]> = std::fs::read(std::env::current_exe().unwrap()).unwrap().into();
        let program = Program::parse(Arc::clone(&file)).unwrap();
        let segments = Elf::parse(&file).unwrap().load_segments().unwrap();
        let code: Vec<_> = segments.iter().filter(|segment| segment.is_executable).collect();
        assert!(!code.is_empty());
        for segment in code {
            let page = segment.offset & !0xfff;
            let address = program.address_of_code(page).unwrap();
            assert_eq!(address, segment.address - (segment.offset - page));
        }
        assert_eq!(program.address_of_code(u64::MAX), None);
    }
}

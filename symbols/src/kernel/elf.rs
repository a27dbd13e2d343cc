//! `.symtab` of an ELF64 file (System V ABI, "Symbol Table").

use everett_elf::{Elf, SymbolKind, SymbolTable, Symbols};

use super::{NAME_BYTES_MAX, Named, Raw};

/// Returns functions and variables, or nothing if the file has no symbol table. Linkers write at most one table; a
/// second one is ignored.
pub(super) fn symbols(file: &[u8]) -> Vec<Raw> {
    let sections = Elf::parse(file).and_then(|elf| elf.sections());
    let symbols = sections.and_then(|sections| sections.symbols(SymbolTable::Static));
    symbols.map(|symbols| named(symbols, file.len())).unwrap_or_default()
}

/// Returns the functions and variables of a table. Those with names over [`NAME_BYTES_MAX`] are left out. Many entries
/// can share one string, so reading stops when the names would exceed `bytes_max` bytes in total.
fn named(table: Symbols<'_>, bytes_max: usize) -> Vec<Raw> {
    let (mut symbols, mut left) = (Vec::new(), bytes_max);
    for symbol in table.iter() {
        let kind = match symbol.kind {
            SymbolKind::Function | SymbolKind::Untyped => Named::Code,
            SymbolKind::Object => Named::Data,
            SymbolKind::Other => continue,
        };
        let name = symbol.name(NAME_BYTES_MAX).filter(|name| !name.is_empty());
        let Some(name) = name.map(String::from_utf8_lossy).filter(|_| symbol.address != 0) else { continue };
        let Some(rest) = left.checked_sub(name.len()) else { break };
        left = rest;
        symbols.push((symbol.address, name.into_owned(), kind));
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHT_SYMTAB: u32 = 2;
    const SYMBOL_BYTES: usize = 24;
    const SECTION_HEADER_BYTES: usize = 64;

    /// Returns a file of 64 KiB with two symbol tables that hold the same symbols. Every symbol has the first name in
    /// the string table, which is the second half of the file.
    fn file(strings: &[u8]) -> Vec<u8> {
        const BYTES: usize = 64 << 10;
        let mut file = vec![0u8; BYTES];
        let (headers, table, half) = (0x40usize, 0x400usize, BYTES / 2);
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01\x01");
        put(0x28, &(headers as u64).to_le_bytes());
        put(0x3a, &64u16.to_le_bytes());
        put(0x3c, &3u16.to_le_bytes());
        for (number, kind, offset, length) in
            [(0, SHT_SYMTAB, table, half - table), (1, SHT_SYMTAB, table, half - table), (2, 3, half, half)]
        {
            let header = headers + number * SECTION_HEADER_BYTES;
            put(header + 4, &kind.to_le_bytes());
            put(header + 0x18, &(offset as u64).to_le_bytes());
            put(header + 0x20, &(length as u64).to_le_bytes());
            put(header + 0x28, &2u32.to_le_bytes());
        }
        for at in (table..=half - SYMBOL_BYTES).step_by(SYMBOL_BYTES) {
            put(at + 8, &(at as u64).to_le_bytes());
        }
        let strings: Vec<u8> = strings.iter().copied().cycle().take(half).collect();
        put(half, &strings);
        file
    }

    #[test]
    fn names_have_no_more_bytes_than_the_file() {
        let names = |strings: &[u8]| symbols(&file(strings)).into_iter().map(|(_, name, _)| name.len());
        assert!(names(b"f\0").eq((0x400..=0x7fe8).step_by(SYMBOL_BYTES).map(|_| 1)), "each symbol once");
        let longest = [vec![b'x'; NAME_BYTES_MAX], vec![0]].concat();
        assert_eq!(names(&longest).len(), (64 << 10) / NAME_BYTES_MAX);
        let too_long = [vec![b'x'; NAME_BYTES_MAX + 1], vec![0]].concat();
        assert_eq!(names(&too_long).len(), 0);
        assert_eq!(names(b"x").len(), 0, "no name ends");
        // A byte that is not UTF-8 becomes three bytes.
        let foreign = [vec![0xff; NAME_BYTES_MAX], vec![0]].concat();
        assert_eq!(names(&foreign).len(), (64 << 10) / (3 * NAME_BYTES_MAX));
    }
}

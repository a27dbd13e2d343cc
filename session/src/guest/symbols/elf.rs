//! `.symtab` of an ELF64 file (System V ABI, "Symbol Table").

use super::{NAME_BYTES_MAX, bytes_at, u16_at, u32_at, u64_at};

const SHT_SYMTAB: u32 = 2;
const SYMBOL_BYTES: usize = 24;
const SECTION_HEADER_BYTES: usize = 64;
/// Symbol type "function", in the low four bits of `st_info`.
const STT_FUNC: u8 = 2;
const STT_NOTYPE: u8 = 0;

/// Returns functions and their addresses, or nothing if the file has no symbol table. Linkers write at most one table;
/// a second one is ignored.
pub(super) fn code_symbols(file: &[u8]) -> Vec<(u64, String)> {
    let mut symbols = Vec::new();
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return symbols;
    }
    let _ = (|| {
        let headers = usize::try_from(u64_at(file, 0x28)?).ok()?;
        let count = usize::from(u16_at(file, 0x3c)?);
        for index in 0..count {
            let header = headers.checked_add(index * SECTION_HEADER_BYTES)?;
            if u32_at(file, header.checked_add(4)?)? == SHT_SYMTAB {
                let strings =
                    headers.checked_add(u32_at(file, header + 0x28)? as usize * SECTION_HEADER_BYTES)?;
                symbols = read_table(section(file, header)?, section(file, strings)?, file.len());
                break;
            }
        }
        Some(())
    })();
    symbols
}

/// Returns the contents of the section whose header is at `header`.
fn section(file: &[u8], header: usize) -> Option<&[u8]> {
    let offset = usize::try_from(u64_at(file, header.checked_add(0x18)?)?).ok()?;
    let length = usize::try_from(u64_at(file, header.checked_add(0x20)?)?).ok()?;
    file.get(offset..offset.checked_add(length)?)
}

/// Returns the functions of a table. Functions with names over [`NAME_BYTES_MAX`] are left out. Many entries can share
/// one string, so reading stops when the names would exceed `bytes_max` bytes in total.
fn read_table(table: &[u8], strings: &[u8], bytes_max: usize) -> Vec<(u64, String)> {
    let (mut symbols, mut left) = (Vec::new(), bytes_max);
    for symbol in table.chunks_exact(SYMBOL_BYTES) {
        let (Some(name), Some(address)) = (u32_at(symbol, 0), u64_at(symbol, 8)) else { continue };
        let kind = bytes_at::<1>(symbol, 4).map_or(u8::MAX, |b| b[0] & 0xf);
        if address == 0 || !(kind == STT_FUNC || kind == STT_NOTYPE) {
            continue;
        }
        let name = strings.get(name as usize..).and_then(|rest| {
            let end = rest.iter().take(NAME_BYTES_MAX + 1).position(|b| *b == 0)?;
            rest.get(..end).filter(|name| !name.is_empty())
        });
        let Some(name) = name.map(String::from_utf8_lossy) else { continue };
        let Some(rest) = left.checked_sub(name.len()) else { break };
        left = rest;
        symbols.push((address, name.into_owned()));
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file of 64 KiB with two symbol tables that hold the same symbols. Every symbol has the first name in
    /// the string table, which is the second half of the file.
    fn file(strings: &[u8]) -> Vec<u8> {
        const BYTES: usize = 64 << 10;
        let mut file = vec![0u8; BYTES];
        let (headers, table, half) = (0x40usize, 0x400usize, BYTES / 2);
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01");
        put(0x28, &(headers as u64).to_le_bytes());
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
        let names = |strings: &[u8]| code_symbols(&file(strings)).into_iter().map(|(_, name)| name.len());
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

//! `.symtab` of an ELF64 file (System V ABI, "Symbol Table").

use super::{bytes_at, u16_at, u32_at, u64_at};

const SHT_SYMTAB: u32 = 2;
const SYMBOL_BYTES: usize = 24;
const SECTION_HEADER_BYTES: usize = 64;
/// Type in the low bits of `st_info`: a function.
const STT_FUNC: u8 = 2;
const STT_NOTYPE: u8 = 0;

/// Returns functions and their addresses; empty if the file has no symbol table.
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
                read_table(section(file, header)?, section(file, strings)?, &mut symbols);
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

fn read_table(table: &[u8], strings: &[u8], symbols: &mut Vec<(u64, String)>) {
    for symbol in table.chunks_exact(SYMBOL_BYTES) {
        let (Some(name), Some(address)) = (u32_at(symbol, 0), u64_at(symbol, 8)) else { continue };
        let kind = bytes_at::<1>(symbol, 4).map_or(u8::MAX, |b| b[0] & 0xf);
        if address == 0 || !(kind == STT_FUNC || kind == STT_NOTYPE) {
            continue;
        }
        let name = strings.get(name as usize..).and_then(|rest| rest.split(|b| *b == 0).next());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            symbols.push((address, String::from_utf8_lossy(name).into_owned()));
        }
    }
}

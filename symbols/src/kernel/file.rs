//! A kernel's symbols as an ELF file, for debuggers. Distribution kernels have their symbols in a table of their own
//! (`kallsyms`), which debuggers do not read.

use super::{Symbols, Values};

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
/// Names of the sections, in their order.
const SECTIONS: [&str; 5] = ["", ".text", ".symtab", ".strtab", ".shstrtab"];
/// Section numbers of symbols: the code, and absolute values (System V ABI, "Symbol Table").
const TEXT: u16 = 1;
const ABSOLUTE: u16 = 0xfff1;
/// Global symbols: functions and variables.
const FUNCTION: u8 = 0x12;
const VARIABLE: u8 = 0x11;

/// Returns an ELF file with the kernel's symbols and without content. Functions are in its section `.text`, which spans
/// all of them. Everything else is absolute.
#[must_use]
pub fn symbol_file(code: &Symbols, values: &Values) -> Vec<u8> {
    let mut names = vec![0];
    let mut symbols = vec![0; 24];
    let is_code = |value: u64| code.sorted.binary_search_by_key(&value, |(address, _)| *address).is_ok();
    for (name, &value) in &values.0 {
        let (kind, section) = if is_code(value) { (FUNCTION, TEXT) } else { (VARIABLE, ABSOLUTE) };
        symbols.extend((names.len() as u32).to_le_bytes());
        symbols.extend([kind, 0]);
        symbols.extend(section.to_le_bytes());
        symbols.extend(value.to_le_bytes());
        symbols.extend(0u64.to_le_bytes());
        names.extend(name.bytes().filter(|byte| *byte != 0));
        names.push(0);
    }
    let mut section_names = Vec::new();
    let name_at = SECTIONS.map(|name| {
        let at = section_names.len() as u64;
        section_names.extend(name.bytes());
        section_names.push(0);
        at
    });
    let first = code.sorted.first().map_or(0, |(address, _)| *address);
    let last = code.sorted.last().map_or(0, |(address, _)| *address);
    let sizes = [&symbols, &names, &section_names].map(|content| content.len() as u64);
    let symbols_at = HEADER_BYTES as u64;
    let at = [symbols_at, symbols_at + sizes[0], symbols_at + sizes[0] + sizes[1]];
    // Name, kind, flags, address, offset, size, link, info, alignment, entry size.
    let rows: [[u64; 10]; 5] = [
        [0; 10],
        [name_at[1], 8, 6, first, HEADER_BYTES as u64, last - first + 1, 0, 0, 1, 0],
        [name_at[2], 2, 0, 0, at[0], sizes[0], 3, 1, 1, 24],
        [name_at[3], 3, 0, 0, at[1], sizes[1], 0, 0, 1, 0],
        [name_at[4], 3, 0, 0, at[2], sizes[2], 0, 0, 1, 0],
    ];
    let table_at = at[2] + sizes[2];
    let mut file = Vec::with_capacity(table_at as usize + rows.len() * SECTION_BYTES);
    file.extend(*b"\x7fELF\x02\x01\x01");
    file.resize(16, 0);
    // An executable file for x86-64, with the entry point and the program headers at 0.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    file.resize(40, 0);
    file.extend(table_at.to_le_bytes());
    file.resize(52, 0);
    for half in [HEADER_BYTES, 56, 0, SECTION_BYTES, SECTIONS.len(), SECTIONS.len() - 1] {
        file.extend((half as u16).to_le_bytes());
    }
    [symbols, names, section_names].iter().for_each(|content| file.extend(content));
    for row in rows {
        let [name, kind, flags, address, offset, size, link, info, alignment, entry] = row;
        file.extend((name as u32).to_le_bytes());
        file.extend((kind as u32).to_le_bytes());
        [flags, address, offset, size].iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend((link as u32).to_le_bytes());
        file.extend((info as u32).to_le_bytes());
        [alignment, entry].iter().for_each(|word| file.extend(word.to_le_bytes()));
    }
    file
}

#[cfg(test)]
mod tests {
    use super::super::{Named, symbols_and_values};
    use super::*;

    #[test]
    fn the_file_has_all_symbols() {
        let raw = vec![
            (0x1000, "cpu_offset".to_owned(), Named::Data),
            (0xffff_ffff_8100_0000, "start".to_owned(), Named::Code),
            (0xffff_ffff_8100_0040, "schedule".to_owned(), Named::Code),
        ];
        let (symbols, values) = (Symbols::of(&raw), Values::of(raw));
        let (again, values_again) = symbols_and_values(&symbol_file(&symbols, &values));
        assert_eq!(again.sorted, symbols.sorted);
        assert_eq!(values_again.0, values.0);
    }

    #[test]
    fn a_kernel_without_symbols_gives_a_file_without_symbols() {
        let (symbols, _) = symbols_and_values(&symbol_file(&Symbols::default(), &Values::default()));
        assert!(symbols.is_empty());
    }
}

//! Address of the code that the table of a Go program describes.
//!
//! The table states functions by their distances from `runtime.text`. Until Go 1.25, its header has this address. Since Go 1.26,
//! the header has 0, and the runtime's description of the program (`runtime.firstmoduledata`, section `.go.module`) has it. The
//! section `.text` does not begin there if a C linker has linked the program: code of C precedes.

use everett_elf::{Section, Sections, SymbolTable};

use super::START_AT;
use crate::bytes::u64_at;

/// Name of the symbol at the start of the code.
const SYMBOL: &str = "runtime.text";
/// Place of the table's address in the description of the program.
const MODULE_TABLE: u64 = 0;
/// Place of the address of the first function in the description.
const MODULE_FIRST: u64 = 160;
/// Place of the start of the code in the description, from Go 1.18 to at least Go 1.27.
const MODULE_START: u64 = 176;
/// Length of a relocation with an addend, in bytes.
const RELOCATION_BYTES: usize = 24;
/// Kind of a relocation whose value is the addend and the distance of the program from its stated addresses.
const RELATIVE: u64 = 8;

/// Returns the address at which the code of a table begins, as the file states addresses. `first` is the distance of the first
/// function. `None` if the file does not state the address, or if what it states is contradictory.
pub(crate) fn start(sections: &Sections<'_>, table: &Section<'_>, first: u64) -> Option<u64> {
    if let Some(start) = word(sections, table, START_AT as u64).filter(|start| *start != 0) {
        return Some(start);
    }
    let mut named = None;
    for symbol in sections.symbols(SymbolTable::Static).ok()?.iter() {
        if !symbol.is_defined || symbol.address == 0 || symbol.name(SYMBOL.len()) != Some(SYMBOL.as_bytes()) {
            continue;
        }
        if *named.get_or_insert(symbol.address) != symbol.address {
            return None;
        }
    }
    named.or_else(|| {
        let module = sections.named(".go.module")?;
        let start = word(sections, &module, MODULE_START)?;
        let is_of_table = word(sections, &module, MODULE_TABLE)? == table.address()
            && word(sections, &module, MODULE_FIRST)? == start.checked_add(first)?;
        (is_of_table && start != 0).then_some(start)
    })
}

/// Returns the word at an offset of a section, as the dynamic linker leaves it in a program at its stated addresses. `None` if the
/// word depends on a symbol.
fn word(sections: &Sections<'_>, section: &Section<'_>, offset: u64) -> Option<u64> {
    let mut word = u64_at(section.content().ok()?, usize::try_from(offset).ok()?)?;
    let address = section.address().checked_add(offset)?;
    // Go's own linker writes `.rela`, others write `.rela.dyn`.
    for table in [".rela.dyn", ".rela"] {
        let Some(table) = sections.named(table) else { continue };
        for relocation in table.content().ok()?.chunks_exact(RELOCATION_BYTES) {
            if u64_at(relocation, 0) == Some(address) {
                word = u64_at(relocation, 16).filter(|_| u64_at(relocation, 8) == Some(RELATIVE))?;
            }
        }
    }
    Some(word)
}

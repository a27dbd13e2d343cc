//! The line of an address: line number programs (DWARF version 5, 6.2).

use gimli::UnitRef;

use super::{TEXT_BYTES_MAX, sections::Bytes, text};

/// Row of a line table.
pub(super) struct Row {
    /// Path of the source file.
    pub(super) file: Option<String>,
    /// Line, from 1. `None` if no line produced the instruction.
    pub(super) line: Option<u64>,
}

/// Returns the row of an address. `None` if the unit's line table does not have the address.
pub(super) fn row(unit: UnitRef<'_, Bytes>, address: u64) -> Option<Row> {
    let mut rows = unit.line_program.clone()?.rows();
    // The row before the present one, if its sequence has not ended: its address, file and line.
    let mut before: Option<(u64, u64, Option<u64>)> = None;
    let mut is_left_out = false;
    while let Ok(Some((_, row))) = rows.next_row() {
        match before {
            // The linker gives the address 0 to code that it has left out.
            None => is_left_out = row.address() == 0,
            Some((start, number, line)) if !is_left_out && (start..row.address()).contains(&address) => {
                return Some(Row { file: file(unit, number), line });
            }
            Some(_) => {}
        }
        let line = row.line().map(std::num::NonZero::get);
        before = (!row.end_sequence()).then(|| (row.address(), row.file_index(), line));
    }
    None
}

/// Returns the path of a unit's source file.
pub(super) fn file(unit: UnitRef<'_, Bytes>, number: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let entry = header.file(number)?;
    let name = text(unit, entry.path_name())?;
    let folder = entry.directory(header).and_then(|folder| text(unit, folder)).unwrap_or_default();
    let base = unit.comp_dir.as_ref().filter(|base| gimli::Reader::len(*base) <= TEXT_BYTES_MAX);
    let base = base.and_then(|base| gimli::Reader::to_string_lossy(base).ok()).unwrap_or_default();
    // A path that begins with a slash replaces what stands before it.
    let path = std::path::Path::new(&*base).join(folder).join(name);
    path.to_str().map(str::to_owned)
}

//! Addresses of a line of source code, and the end of a function's prologue (DWARF version 5, 6.2).

use std::collections::BTreeMap;
use std::path::Path;

use gimli::{UnitOffset, UnitRef};

use super::{Lines, functions, rows, sections::Bytes};

/// Maximum number of rows of line tables for a line.
const LINE_ROWS_MAX: usize = 4_096;
/// Maximum number of files of a unit's line table that are compared.
const FILES_MAX: u64 = 1 << 16;

/// Maximum number of addresses of a program at which lines begin.
const BEGINS_MAX: usize = 1 << 18;

/// Addresses of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineAddresses {
    /// The first address of the line in each function and in each call that the compiler has inlined, ascending.
    Found(Vec<u64>),
    /// No source file has this path.
    NoFile,
    /// The line has no code. The number is that of the next line with code.
    NoCode(Option<u64>),
    /// More than [`LINE_ROWS_MAX`] rows.
    TooMany,
}

/// Row of a line table that begins a statement.
struct Statement {
    address: u64,
    file: u64,
    line: u64,
    ends_prologue: bool,
}

impl Lines {
    /// Returns the addresses of a line. `file` is the path of the source file, or the end of its path, from the start of a
    /// component.
    #[must_use]
    pub fn addresses(&self, file: &str, line: u64) -> LineAddresses {
        // The lowest address of each function or inlined call, by the unit and the place of its entry.
        let mut found: BTreeMap<(usize, Option<UnitOffset>), u64> = BTreeMap::new();
        let (mut has_file, mut next, mut rows_left) = (false, None::<u64>, LINE_ROWS_MAX);
        for (number, header) in self.units.iter().enumerate() {
            let Ok(unit) = self.dwarf.unit(header.clone()) else { continue };
            let unit = unit.unit_ref(&self.dwarf);
            let files = files(unit, Path::new(file));
            if files.is_empty() {
                continue;
            }
            has_file = true;
            for row in statements(unit).into_iter().filter(|row| files.contains(&row.file)) {
                if row.line > line && next.is_none_or(|next| row.line < next) {
                    next = Some(row.line);
                }
                if row.line != line {
                    continue;
                }
                let Some(left) = rows_left.checked_sub(1) else { return LineAddresses::TooMany };
                rows_left = left;
                let lowest =
                    found.entry((number, functions::innermost(unit, row.address))).or_insert(row.address);
                *lowest = row.address.min(*lowest);
            }
        }
        let mut addresses: Vec<u64> = found.into_values().collect();
        addresses.sort_unstable();
        addresses.dedup();
        match (addresses.is_empty(), has_file) {
            (false, _) => LineAddresses::Found(addresses),
            (true, true) => LineAddresses::NoCode(next),
            (true, false) => LineAddresses::NoFile,
        }
    }

    /// Returns the addresses at which statements of source lines begin, ascending. `None` if there are more than
    /// [`BEGINS_MAX`].
    #[must_use]
    pub fn begins_of_lines(&self) -> Option<Vec<u64>> {
        let mut all = Vec::new();
        for header in &self.units {
            let Ok(unit) = self.dwarf.unit(header.clone()) else { continue };
            let rows = statements(unit.unit_ref(&self.dwarf));
            all.extend(rows.into_iter().filter(|row| row.line > 0).map(|row| row.address));
            if all.len() > BEGINS_MAX {
                return None;
            }
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// Returns the address after the prologue of the function from `start` to `end`, which stores the parameters: the row
    /// that the compiler has marked so, or the second row of the function. `None` if the function has no such row.
    #[must_use]
    pub fn after_prologue(&self, start: u64, end: u64) -> Option<u64> {
        let unit = self.unit_of(start)?;
        let mut rows = statements(unit.unit_ref(&self.dwarf));
        rows.retain(|row| (start..end).contains(&row.address));
        rows.sort_by_key(|row| row.address);
        let marked = rows.iter().find(|row| row.ends_prologue);
        marked.or_else(|| rows.iter().find(|row| row.address > start && row.line > 0)).map(|row| row.address)
    }
}

/// Returns the numbers of a unit's files whose path ends with `path`.
fn files(unit: UnitRef<'_, Bytes>, path: &Path) -> Vec<u64> {
    let count = unit.line_program.as_ref().map_or(0, |program| program.header().file_names().len());
    // Files count from 1 before DWARF 5.
    let all = 0..=(count as u64).min(FILES_MAX);
    all.filter(|number| rows::file(unit, *number).is_some_and(|file| Path::new(&file).ends_with(path)))
        .collect()
}

/// Returns the rows of a unit's line table that begin statements. Rows of code that the linker has left out are missing.
fn statements(unit: UnitRef<'_, Bytes>) -> Vec<Statement> {
    let Some(program) = unit.line_program.clone() else { return Vec::new() };
    let mut rows = program.rows();
    let mut all = Vec::new();
    let (mut is_first, mut is_left_out) = (true, false);
    while let Ok(Some((_, row))) = rows.next_row() {
        if is_first {
            is_left_out = row.address() == 0;
        }
        is_first = row.end_sequence();
        if row.is_stmt() && !row.end_sequence() && !is_left_out {
            all.push(Statement {
                address: row.address(),
                file: row.file_index(),
                line: row.line().map_or(0, std::num::NonZero::get),
                ends_prologue: row.prologue_end(),
            });
        }
    }
    all
}

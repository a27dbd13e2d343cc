//! Source lines of a program's addresses: debug information (DWARF 2 to 5).
//!
//! The library `gimli` reads the format. The search for an address is ours, because a hostile file must not decide how
//! much memory or stack it takes: a search reads one unit (the code of one source file) from its start to its end and
//! keeps only what leads to the address.
//!
//! - this file: [`Lines`], the debug information of a program, and the search for an address
//! - `addresses`: addresses of a line
//! - `functions`: functions around an address, and the calls that the compiler has inlined
//! - `rows`: the line of an address
//! - `sections`: sections with debug information, decompressed

mod addresses;
pub(crate) mod functions;
mod rows;
mod sections;

use std::fmt;
use std::ops::Range;

use gimli::{Dwarf, Reader as _, Unit, UnitHeader, UnitRef};
use serde::Serialize;

use crate::program::demangled;
pub use addresses::LineAddresses;
pub(crate) use sections::Bytes;

/// Maximum number of units of a program.
const UNITS_MAX: usize = 1 << 20;
/// Maximum number of address ranges of all units of a program.
const RANGES_MAX: usize = 8 << 20;
/// Maximum length of a name or path, in bytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// Debug information of a program.
pub struct Lines {
    pub(crate) dwarf: Dwarf<Bytes>,
    pub(crate) units: Vec<UnitHeader<Bytes>>,
    /// Units of the supplement.
    pub(crate) shared_units: Vec<UnitHeader<Bytes>>,
    /// Ranges of addresses with the index of their unit, ascending by first address.
    ranges: Vec<(Range<u64>, u32)>,
}

/// Place in source code. Its `Display` is `FUNCTION at FILE:LINE`, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourcePlace {
    /// Demangled name of the function.
    pub function: Option<String>,
    /// Path of the source file, as the compiler knew it.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u64>,
}

impl SourcePlace {
    /// Returns ` at FILE:LINE`, or an empty text if the file is not known.
    #[must_use]
    pub fn at(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            (Some(file), None) => format!(" at {file}"),
            (None, _) => String::new(),
        }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.function.as_deref().unwrap_or("?"), self.at())
    }
}

impl Lines {
    /// Reads the debug information of an ELF file. `supplement` is the file with the parts that several files share
    /// (`.gnu_debugaltlink`). `bytes_left` is the number of decompressed bytes that may be kept, from which this function
    /// takes what it keeps. `None` if the file has no debug information, or if this information is damaged or too long.
    #[must_use]
    pub fn of(file: &[u8], supplement: Option<&[u8]>, bytes_left: &mut u64) -> Option<Lines> {
        let mut dwarf = sections::load(file, bytes_left)?;
        if let Some(supplement) = supplement {
            dwarf.set_sup(sections::load(supplement, bytes_left)?);
        }
        let (units, shared_units) = (units(&dwarf), dwarf.sup().map(units).unwrap_or_default());
        let mut ranges = Vec::new();
        let mut ranges_left = RANGES_MAX;
        'units: for (number, header) in (0..).zip(&units) {
            let Ok(unit) = dwarf.unit(header.clone()) else { continue };
            let Ok(mut of_unit) = dwarf.unit_ranges(&unit) else { continue };
            while let Ok(Some(range)) = of_unit.next() {
                let Some(left) = ranges_left.checked_sub(1) else { break 'units };
                ranges_left = left;
                if is_of_code(&(range.begin..range.end)) {
                    ranges.push((range.begin..range.end, number));
                }
            }
        }
        ranges.sort_by_key(|(range, unit)| (range.start, *unit));
        (!ranges.is_empty()).then_some(Lines { dwarf, units, shared_units, ranges })
    }

    /// Returns the unit that contains an address.
    pub(crate) fn unit_of(&self, address: u64) -> Option<Unit<Bytes>> {
        let after = self.ranges.partition_point(|(range, _)| range.start <= address);
        // Ranges of units do not overlap in files of compilers, so the last range that begins before the address holds it.
        let (range, number) = self.ranges.get(after.checked_sub(1)?)?;
        let header = self.units.get(*number as usize).filter(|_| range.contains(&address))?;
        self.dwarf.unit(header.clone()).ok()
    }

    /// Returns the places in source code of the instruction at an address, as the file states addresses: the innermost
    /// one first, then the places of the calls that the compiler has inlined. Empty if the address is unknown.
    #[must_use]
    pub fn places(&self, address: u64) -> Vec<SourcePlace> {
        let Some(unit) = self.unit_of(address) else { return Vec::new() };
        let unit = unit.unit_ref(&self.dwarf);
        let row = rows::row(unit, address);
        let mut calls = functions::around(self, unit, address);
        // The innermost function's line is that of the address. The line of each other one is that of its call.
        let (mut file, mut line) = row.map_or((None, None), |row| (row.file, row.line));
        let mut places = Vec::new();
        while let Some(call) = calls.pop() {
            places.push(SourcePlace { function: call.name.as_deref().map(demangled), file, line });
            file = call.file.and_then(|number| rows::file(unit, number));
            line = call.line;
        }
        if places.is_empty() && file.is_some() {
            places.push(SourcePlace { function: None, file, line });
        }
        places
    }
}

/// Returns true if a range of addresses can be that of code in the program. The linker gives the address 0 to code that
/// it has left out.
fn is_of_code(range: &Range<u64>) -> bool {
    range.start != 0 && !range.is_empty()
}

/// Returns the headers of all units, ascending by offset.
fn units(dwarf: &Dwarf<Bytes>) -> Vec<UnitHeader<Bytes>> {
    let mut headers = dwarf.units();
    std::iter::from_fn(|| headers.next().ok().flatten()).take(UNITS_MAX).collect()
}

/// Returns a string of debug information as text. `None` if it is too long.
fn text(unit: UnitRef<'_, Bytes>, value: gimli::AttributeValue<Bytes>) -> Option<String> {
    let text = unit.attr_string(value).ok()?;
    (text.len() <= TEXT_BYTES_MAX).then(|| text.to_string_lossy().ok().map(|text| text.into_owned()))?
}

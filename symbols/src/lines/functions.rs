//! Functions around an address (DWARF version 5, 3.3).

use gimli::{
    Abbreviation, AttributeValue, DebugInfoOffset, Dwarf, EntriesRaw, Unit, UnitHeader, UnitOffset, UnitRef,
    constants as dw,
};

use super::sections::Bytes;
use super::{Lines, is_of_code, text};

/// Maximum number of references from an entry to the entry that has its name.
const REFERENCES_MAX: usize = 16;
/// Maximum number of calls around an address that are read: the function and calls that the compiler has inlined.
const CALLS_MAX: usize = 256;
/// Maximum number of ranges that are read for an address.
const RANGES_READ_MAX: usize = 1 << 20;

/// A function or an inlined call that contains the address.
pub(super) struct Call {
    /// Name of the function.
    pub(super) name: Option<String>,
    /// Number of the source file with the call. `None` for functions that are not inlined.
    pub(super) file: Option<u64>,
    /// Line of the call.
    pub(super) line: Option<u64>,
}

/// An entry that contains the address, at its depth in the tree of entries.
#[derive(Clone, Copy)]
struct Found {
    at: UnitOffset<usize>,
    depth: isize,
}

/// Attributes of a function or of an inlined call.
#[derive(Default)]
pub(crate) struct Attributes {
    low: Option<u64>,
    high: Option<u64>,
    bytes: Option<u64>,
    ranges: Option<AttributeValue<Bytes>>,
    linkage_name: Option<AttributeValue<Bytes>>,
    name: Option<AttributeValue<Bytes>>,
    origin: Option<AttributeValue<Bytes>>,
    file: Option<u64>,
    line: Option<u64>,
}

/// Returns the functions that contain the address: the function itself, then the calls in it that the compiler has
/// inlined, outermost first.
pub(super) fn around(lines: &Lines, unit: UnitRef<'_, Bytes>, address: u64) -> Vec<Call> {
    let found = chain(unit, address).unwrap_or_default();
    let call = |found: &Found| {
        let attributes = attributes_at(unit, found.at)?;
        let name = name(lines, unit, &attributes);
        Some(Call { name, file: attributes.file, line: attributes.line })
    };
    found.iter().filter_map(call).collect()
}

/// Returns the entry of the innermost function or inlined call that contains an address.
pub(super) fn innermost(unit: UnitRef<'_, Bytes>, address: u64) -> Option<UnitOffset<usize>> {
    chain(unit, address).ok()?.last().map(|found| found.at)
}

/// Finds the entries that contain the address. Each is below the one before it.
fn chain(unit: UnitRef<'_, Bytes>, address: u64) -> gimli::Result<Vec<Found>> {
    let mut entries = unit.entries_raw(None)?;
    let mut found: Vec<Found> = Vec::new();
    let mut ranges_left = RANGES_READ_MAX;
    while !entries.is_empty() {
        let (at, depth) = (entries.next_offset(), entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if found.last().is_some_and(|last| depth <= last.depth) {
            // The innermost entry has ended. None beside it contains the address, too.
            break;
        }
        let is_function = abbreviation.tag() == dw::DW_TAG_subprogram;
        let is_call = abbreviation.tag() == dw::DW_TAG_inlined_subroutine && !found.is_empty();
        if !is_function && !is_call {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let attributes = attributes(unit, &mut entries, abbreviation)?;
        if attributes.contains(unit, address, &mut ranges_left) {
            found.push(Found { at, depth });
            if found.len() >= CALLS_MAX {
                break;
            }
        }
    }
    Ok(found)
}

fn attributes(
    unit: UnitRef<'_, Bytes>,
    entries: &mut EntriesRaw<'_, Bytes>,
    abbreviation: &Abbreviation,
) -> gimli::Result<Attributes> {
    let mut all = Attributes::default();
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec)?;
        let value = attribute.value();
        match attribute.name() {
            dw::DW_AT_low_pc => all.low = unit.attr_address(value)?,
            dw::DW_AT_high_pc => match value {
                AttributeValue::Udata(bytes) => all.bytes = Some(bytes),
                value => all.high = unit.attr_address(value)?,
            },
            dw::DW_AT_ranges => all.ranges = Some(value),
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => all.linkage_name = Some(value),
            dw::DW_AT_name => all.name = Some(value),
            dw::DW_AT_abstract_origin | dw::DW_AT_specification => all.origin = Some(value),
            dw::DW_AT_call_file => {
                all.file = match value {
                    AttributeValue::FileIndex(number) => Some(number),
                    value => value.udata_value(),
                }
            }
            dw::DW_AT_call_line => all.line = attribute.udata_value(),
            _ => {}
        }
    }
    Ok(all)
}

pub(crate) fn attributes_at(unit: UnitRef<'_, Bytes>, at: UnitOffset<usize>) -> Option<Attributes> {
    let mut entries = unit.entries_raw(Some(at)).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    attributes(unit, &mut entries, abbreviation).ok()
}

impl Attributes {
    /// Returns true if one of the entry's ranges contains the address.
    pub(crate) fn contains(&self, unit: UnitRef<'_, Bytes>, address: u64, ranges_left: &mut usize) -> bool {
        if let Some(ranges) = self.ranges.clone() {
            let Ok(Some(mut ranges)) = unit.attr_ranges(ranges) else { return false };
            while let Ok(Some(range)) = ranges.next() {
                let Some(left) = ranges_left.checked_sub(1) else { return false };
                *ranges_left = left;
                let range = range.begin..range.end;
                if is_of_code(&range) && range.contains(&address) {
                    return true;
                }
            }
            return false;
        }
        let Some(low) = self.low else { return false };
        let high = self.bytes.map_or(self.high, |bytes| low.checked_add(bytes));
        high.is_some_and(|high| is_of_code(&(low..high)) && (low..high).contains(&address))
    }
}

/// Returns the name of a function: its own, or that of the entry to which it refers.
fn name(lines: &Lines, unit: UnitRef<'_, Bytes>, attributes: &Attributes) -> Option<String> {
    let own = |attributes: &Attributes| attributes.linkage_name.clone().or_else(|| attributes.name.clone());
    if let Some(value) = own(attributes) {
        return text(unit, value);
    }
    let mut origin = attributes.origin.clone()?;
    // The unit of the last entry, if it is another one than `unit`, and the debug information with this unit.
    let mut other: Option<Unit<Bytes>> = None;
    let mut dwarf = &lines.dwarf;
    for _ in 0..REFERENCES_MAX {
        let at = match origin {
            AttributeValue::UnitRef(at) => at,
            AttributeValue::DebugInfoRef(at) => {
                let units =
                    if std::ptr::eq(dwarf, &lines.dwarf) { &lines.units } else { &lines.shared_units };
                let (unit, at) = unit_at(dwarf, units, at)?;
                other = Some(unit);
                at
            }
            AttributeValue::DebugInfoRefSup(at) => {
                dwarf = lines.dwarf.sup()?;
                let (unit, at) = unit_at(dwarf, &lines.shared_units, at)?;
                other = Some(unit);
                at
            }
            _ => return None,
        };
        let here = other.as_ref().map_or(unit, |other| other.unit_ref(dwarf));
        let attributes = attributes_at(here, at)?;
        if let Some(value) = own(&attributes) {
            return text(here, value);
        }
        origin = attributes.origin?;
    }
    None
}

/// Returns the unit that holds the entry at an offset of the section, and the entry's offset in the unit.
pub(crate) fn unit_at(
    dwarf: &Dwarf<Bytes>,
    units: &[UnitHeader<Bytes>],
    at: DebugInfoOffset<usize>,
) -> Option<(Unit<Bytes>, UnitOffset<usize>)> {
    let start = |header: &UnitHeader<Bytes>| header.debug_info_offset().map_or(usize::MAX, |at| at.0);
    let n = units.partition_point(|header| start(header) <= at.0).checked_sub(1)?;
    let header = units.get(n)?;
    let within = at.to_unit_offset(header)?;
    Some((dwarf.unit(header.clone()).ok()?, within))
}

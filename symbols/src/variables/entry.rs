//! Entries of debug information, and references between them.

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, DwAt, DwTag, Dwarf, Reader as _, Unit,
    UnitOffset, UnitSectionOffset, constants as dw,
};

use crate::lines::functions::unit_at;
use crate::lines::{Bytes, Lines};

/// A type: where its entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeAt {
    /// True if the entry is in the supplement.
    pub(super) is_shared: bool,
    /// Offset of the entry in its section.
    pub(super) offset: usize,
    /// For arrays, the number of dimensions that are already indexed.
    pub(super) dimension: u8,
}

/// Maximum number of references from an entry to the entry that has its name or type.
const REFERENCES_MAX: usize = 16;
/// Maximum number of entries below an entry that are read.
const CHILDREN_MAX: usize = 1 << 16;

/// Value of an attribute.
pub(super) type Attribute = AttributeValue<Bytes>;

/// An entry of debug information.
pub(super) struct Entry<'l> {
    pub(super) lines: &'l Lines,
    /// True if the entry is in the supplement.
    pub(super) is_shared: bool,
    pub(super) unit: Unit<Bytes>,
    pub(super) at: UnitOffset,
}

impl<'l> Entry<'l> {
    /// Returns the entry at an offset of the section with debug information.
    pub(super) fn at(lines: &'l Lines, is_shared: bool, offset: usize) -> Option<Entry<'l>> {
        let units = if is_shared { &lines.shared_units } else { &lines.units };
        let dwarf = dwarf(lines, is_shared)?;
        let (unit, at) = unit_at(dwarf, units, DebugInfoOffset(offset))?;
        Some(Entry { lines, is_shared, unit, at })
    }

    pub(super) fn dwarf(&self) -> Option<&'l Dwarf<Bytes>> {
        dwarf(self.lines, self.is_shared)
    }

    fn read(&self) -> Option<DebuggingInformationEntry<Bytes>> {
        self.unit.entry(self.at).ok()
    }

    /// Returns the tag.
    pub(super) fn tag(&self) -> Option<DwTag> {
        self.read().map(|entry| entry.tag())
    }

    /// Returns an attribute of the entry itself.
    pub(super) fn own(&self, name: DwAt) -> Option<Attribute> {
        self.read()?.attr_value(name)
    }

    /// Returns an unsigned number.
    pub(super) fn number(&self, name: DwAt) -> Option<u64> {
        self.own(name)?.udata_value()
    }

    /// True if a flag is set.
    pub(super) fn flag(&self, name: DwAt) -> bool {
        matches!(self.own(name), Some(AttributeValue::Flag(true)))
    }

    /// Returns the entry to which an attribute refers.
    pub(super) fn follow(&self, value: &Attribute) -> Option<Entry<'l>> {
        match value {
            AttributeValue::UnitRef(at) => {
                let unit = self.dwarf()?.unit(self.unit.header.clone()).ok()?;
                Some(Entry { lines: self.lines, is_shared: self.is_shared, unit, at: *at })
            }
            AttributeValue::DebugInfoRef(at) => Entry::at(self.lines, self.is_shared, at.0),
            AttributeValue::DebugInfoRefSup(at) if !self.is_shared => Entry::at(self.lines, true, at.0),
            _ => None,
        }
    }

    /// Calls `look` with the entry and with those from which it inherits attributes, until one has a result.
    pub(super) fn inherited<T>(&self, look: impl Fn(&Entry<'l>) -> Option<T>) -> Option<T> {
        if let Some(found) = look(self) {
            return Some(found);
        }
        let origin = |entry: &Entry<'l>| {
            let value = entry.own(dw::DW_AT_abstract_origin).or_else(|| entry.own(dw::DW_AT_specification));
            entry.follow(&value?)
        };
        let mut next = origin(self);
        for _ in 0..REFERENCES_MAX {
            let entry = next?;
            if let Some(found) = look(&entry) {
                return Some(found);
            }
            next = origin(&entry);
        }
        None
    }

    /// True if the entry, or the one from which it inherits, has this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.inherited(|entry| entry.own(dw::DW_AT_name).map(|value| entry.is_text(value, name)))
            .unwrap_or(false)
    }

    fn is_text(&self, value: Attribute, wanted: &str) -> bool {
        let Some(dwarf) = self.dwarf() else { return false };
        let text = dwarf.attr_string(&self.unit, value);
        text.is_ok_and(|text| {
            text.len() == wanted.len() && text.to_slice().is_ok_and(|text| *text == *wanted.as_bytes())
        })
    }

    /// Returns the name.
    pub(super) fn name(&self, bytes_max: usize) -> Option<String> {
        let text = self.dwarf()?.attr_string(&self.unit, self.own(dw::DW_AT_name)?).ok()?;
        let text = text.to_slice().ok().filter(|text| text.len() <= bytes_max)?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the type to which the attribute `DW_AT_type` refers.
    pub(super) fn kind(&self) -> Option<TypeAt> {
        self.inherited(|entry| entry.follow(&entry.own(dw::DW_AT_type)?)?.as_type())
    }

    /// Returns the place of this entry as a type.
    pub(super) fn as_type(&self) -> Option<TypeAt> {
        let UnitSectionOffset(offset) = self.at.to_unit_section_offset(&self.unit);
        Some(TypeAt { is_shared: self.is_shared, offset, dimension: 0 })
    }

    /// Calls `look` with each entry directly below this one, until it returns a result.
    pub(super) fn child<T>(&self, mut look: impl FnMut(&Entry<'l>) -> Option<T>) -> Option<T> {
        let mut entries = self.unit.entries_raw(Some(self.at)).ok()?;
        let first = entries.next_depth();
        let mut child = Entry { unit: self.dwarf()?.unit(self.unit.header.clone()).ok()?, ..*self };
        for n in 0..CHILDREN_MAX {
            let (at, depth) = (entries.next_offset(), entries.next_depth());
            if entries.is_empty() || n > 0 && depth <= first {
                return None;
            }
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            entries.skip_attributes(abbreviation.attributes()).ok()?;
            if n == 0 && !abbreviation.has_children() {
                return None;
            }
            if depth == first + 1 {
                child.at = at;
                if let Some(found) = look(&child) {
                    return Some(found);
                }
            }
        }
        None
    }
}

fn dwarf(lines: &Lines, is_shared: bool) -> Option<&Dwarf<Bytes>> {
    if is_shared { lines.dwarf.sup() } else { Some(&lines.dwarf) }
}

//! The variable with a name at an address.

use gimli::{Reader as _, UnitOffset, constants as dw};

use super::TypeAt;
use super::entry::Entry;
use crate::lines::functions::attributes_at;
use crate::lines::{Bytes, Lines};

/// Maximum number of ranges of scopes that are read for an address.
const RANGES_READ_MAX: usize = 1 << 20;
/// Maximum depth of entries in each other.
const DEPTH_MAX: usize = 1_024;

/// A variable or parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Offset of its entry in the section with debug information.
    pub(super) offset: usize,
    /// Its type.
    pub kind: TypeAt,
    /// Offset of the entry of the function that contains it.
    pub(super) function: Option<usize>,
    /// True if the place is on the stack for the whole scope, also for the prologue, in which it holds nothing yet.
    pub is_on_stack: bool,
}

/// An entry around the present one.
struct Scope {
    depth: isize,
    /// True if the address is in the scope, and in all scopes around it up to the function.
    is_here: bool,
    /// True for functions, which have a frame. Inlined calls have that of the function around them.
    has_frame: bool,
    at: UnitOffset,
}

impl Lines {
    /// Returns the variable or parameter with this name that code at an address sees: of the innermost block, else of the
    /// function, else of the source file, else of any source file.
    #[must_use]
    pub fn variable(&self, address: u64, name: &str) -> Option<Variable> {
        let unit = self.unit_of(address);
        let of_unit = unit.and_then(|unit| self.variable_in(unit, Some(address), name));
        of_unit.or_else(|| {
            self.units
                .iter()
                .find_map(|header| self.variable_in(self.dwarf.unit(header.clone()).ok()?, None, name))
        })
    }

    /// Looks for a variable in a unit. Without an address, only variables outside of functions count.
    fn variable_in(&self, unit: gimli::Unit<Bytes>, address: Option<u64>, name: &str) -> Option<Variable> {
        let walked = self.dwarf.unit(unit.header.clone()).ok()?;
        let walked = walked.unit_ref(&self.dwarf);
        let mut entry = Entry { lines: self, is_shared: false, unit, at: UnitOffset(0) };
        let mut entries = walked.entries_raw(None).ok()?;
        let mut scopes: Vec<Scope> = Vec::new();
        let mut ranges_left = RANGES_READ_MAX;
        // Number of scopes around the variables of the innermost function or inlined call. Those of its callers, around
        // which are fewer, are not visible.
        let mut fewest = 0;
        // The best one so far, with its number of functions and blocks around it.
        let mut best: Option<(usize, Variable)> = None;
        while !entries.is_empty() {
            let (at, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            entries.skip_attributes(abbreviation.attributes()).ok()?;
            while scopes.last().is_some_and(|scope| scope.depth >= depth) {
                scopes.pop();
            }
            let tag = abbreviation.tag();
            match tag {
                dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine | dw::DW_TAG_lexical_block => {
                    let is_here = scopes.last().is_none_or(|scope| scope.is_here)
                        && address.is_some_and(|address| {
                            attributes_at(walked, at)
                                .is_some_and(|all| all.contains(walked, address, &mut ranges_left))
                        });
                    if scopes.len() >= DEPTH_MAX {
                        return None;
                    }
                    if is_here && tag != dw::DW_TAG_lexical_block {
                        fewest = scopes.len() + 1;
                        best = best.filter(|(level, _)| *level == 0);
                    }
                    scopes.push(Scope { depth, is_here, has_frame: tag == dw::DW_TAG_subprogram, at });
                }
                dw::DW_TAG_variable | dw::DW_TAG_formal_parameter => {
                    let is_hidden = (1..fewest).contains(&scopes.len());
                    if is_hidden || scopes.last().is_some_and(|scope| !scope.is_here) {
                        continue;
                    }
                    entry.at = at;
                    if best.as_ref().is_some_and(|(level, _)| *level > scopes.len())
                        || !entry.is_named(name)
                        || entry.flag(dw::DW_AT_declaration)
                    {
                        continue;
                    }
                    let function = scopes.iter().rev().find(|scope| scope.has_frame).map(|scope| scope.at);
                    if let Some(variable) = variable(&entry, function) {
                        best = Some((scopes.len(), variable));
                    }
                }
                _ => {}
            }
        }
        best.map(|(_, variable)| variable)
    }
}

fn variable(entry: &Entry<'_>, function: Option<UnitOffset>) -> Option<Variable> {
    let offset = |at: UnitOffset| at.to_unit_section_offset(&entry.unit).0;
    let location = entry.own(dw::DW_AT_location);
    Some(Variable {
        offset: offset(entry.at),
        kind: entry.kind()?,
        function: function.map(offset),
        is_on_stack: function.is_some() && location.is_some_and(|value| is_on_stack(&value)),
    })
}

/// True if one expression for the whole scope begins with the distance from a register, or from the frame base. Places in
/// registers, and places that differ between parts of the scope, also hold for the prologue.
fn is_on_stack(location: &super::entry::Attribute) -> bool {
    let Some(expression) = location.exprloc_value() else { return false };
    let first = expression.0.to_slice().ok().and_then(|bytes| bytes.first().copied()).map(dw::DwOp);
    first.is_some_and(|first| {
        first == dw::DW_OP_fbreg
            || first == dw::DW_OP_bregx
            || (dw::DW_OP_breg0.0..=dw::DW_OP_breg31.0).contains(&first.0)
    })
}

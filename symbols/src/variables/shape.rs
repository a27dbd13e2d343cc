//! Shapes of types.

use gimli::{AttributeValue, constants as dw};

use super::entry::{Entry, TypeAt};
use crate::lines::Lines;

/// Maximum number of steps from a type to what its bytes are: names of types, qualifiers, members without a name.
const STEPS_MAX: usize = 64;
/// Maximum number of dimensions of an array.
const DIMENSIONS_MAX: usize = 16;
/// Maximum length of the name of an enumeration's value, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Meaning of a type's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Integer without a sign, of this length in bytes. Truth values and characters are integers, too.
    Unsigned(u64),
    /// Integer with a sign, of this length in bytes.
    Signed(u64),
    /// Floating-point number of this length in bytes.
    Float(u64),
    /// Address of an object of a type. `None` if the type is not known, as for `void *`.
    Pointer(Option<TypeAt>),
    /// Structure, class or union, of this length in bytes.
    Structure(u64),
    /// Array.
    Array {
        /// Type of the elements.
        element: TypeAt,
        /// Length of an element in bytes.
        element_bytes: u64,
        /// Number of elements. `None` if it is not known.
        count: Option<u64>,
    },
    /// Enumeration of this length in bytes, with or without a sign.
    Enumeration {
        /// Length in bytes.
        bytes: u64,
        /// True if values can be negative.
        is_signed: bool,
    },
}

/// Member of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Distance from the start of the structure, in bytes.
    pub offset: u64,
    /// Its type.
    pub kind: TypeAt,
    /// First bit and number of bits of a bit field. The first bit counts from the lowest bit at `offset`.
    pub bits: Option<(u32, u32)>,
}

impl Shape {
    /// Returns the length in bytes. `None` if it is not known.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        match self {
            Shape::Unsigned(bytes) | Shape::Signed(bytes) | Shape::Float(bytes) | Shape::Structure(bytes) => {
                Some(bytes)
            }
            Shape::Enumeration { bytes, .. } => Some(bytes),
            Shape::Pointer(_) => Some(8),
            Shape::Array { element_bytes, count, .. } => element_bytes.checked_mul(count?),
        }
    }
}

impl Lines {
    /// Returns the shape of a type. `None` if the debug information does not describe it.
    #[must_use]
    pub fn shape(&self, kind: TypeAt) -> Option<Shape> {
        self.shape_within(kind, &mut { STEPS_MAX })
    }

    fn shape_within(&self, kind: TypeAt, steps_left: &mut usize) -> Option<Shape> {
        let entry = self.bare(kind, steps_left)?;
        let bytes = entry.number(dw::DW_AT_byte_size);
        match entry.tag()? {
            dw::DW_TAG_base_type => {
                let AttributeValue::Encoding(encoding) = entry.own(dw::DW_AT_encoding)? else { return None };
                match encoding {
                    dw::DW_ATE_signed | dw::DW_ATE_signed_char => Some(Shape::Signed(bytes?)),
                    dw::DW_ATE_unsigned
                    | dw::DW_ATE_unsigned_char
                    | dw::DW_ATE_boolean
                    | dw::DW_ATE_UTF
                    | dw::DW_ATE_address => Some(Shape::Unsigned(bytes?)),
                    dw::DW_ATE_float => Some(Shape::Float(bytes?)),
                    _ => None,
                }
            }
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => {
                Some(Shape::Pointer(entry.kind())).filter(|_| bytes.is_none_or(|bytes| bytes == 8))
            }
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                Some(Shape::Structure(bytes?))
            }
            dw::DW_TAG_enumeration_type => {
                let is_negative = |entry: &Entry<'_>| {
                    let value = entry.own(dw::DW_AT_const_value)?;
                    matches!(value, AttributeValue::Sdata(number) if number < 0).then_some(())
                };
                let of_type = entry.kind().and_then(|kind| {
                    *steps_left = steps_left.checked_sub(1)?;
                    self.shape_within(kind, steps_left)
                });
                let is_signed = match of_type {
                    Some(shape) => matches!(shape, Shape::Signed(_)),
                    None => entry.child(is_negative).is_some(),
                };
                let bytes = bytes.or_else(|| of_type?.bytes())?;
                Some(Shape::Enumeration { bytes, is_signed })
            }
            dw::DW_TAG_array_type => {
                let counts = counts(&entry);
                let (count, inner) = counts.get(usize::from(kind.dimension)..)?.split_first()?;
                let element = match inner {
                    [] => entry.kind()?,
                    _ => TypeAt { dimension: kind.dimension.checked_add(1)?, ..entry.as_type()? },
                };
                *steps_left = steps_left.checked_sub(1)?;
                let element_bytes = self.shape_within(element, steps_left)?.bytes()?;
                Some(Shape::Array { element, element_bytes, count: *count })
            }
            _ => None,
        }
    }

    /// Returns the entry of a type, without names of types and qualifiers.
    fn bare(&self, kind: TypeAt, steps_left: &mut usize) -> Option<Entry<'_>> {
        let mut entry = Entry::at(self, kind.is_shared, kind.offset)?;
        while let dw::DW_TAG_typedef
        | dw::DW_TAG_const_type
        | dw::DW_TAG_volatile_type
        | dw::DW_TAG_restrict_type
        | dw::DW_TAG_atomic_type = entry.tag()?
        {
            *steps_left = steps_left.checked_sub(1)?;
            entry = entry.follow(&entry.own(dw::DW_AT_type)?)?;
        }
        Some(entry)
    }

    /// Returns a member of a structure, also of its members without a name and of its base classes.
    #[must_use]
    pub fn member(&self, kind: TypeAt, name: &str) -> Option<Member> {
        self.member_within(kind, name, &mut { STEPS_MAX })
    }

    fn member_within(&self, kind: TypeAt, name: &str, steps_left: &mut usize) -> Option<Member> {
        let entry = self.bare(kind, steps_left)?;
        entry.child(|child| {
            let tag = child.tag()?;
            let is_member = tag == dw::DW_TAG_member;
            let is_flat = tag == dw::DW_TAG_inheritance || is_member && child.own(dw::DW_AT_name).is_none();
            if is_flat {
                *steps_left = steps_left.checked_sub(1)?;
                let mut found = self.member_within(child.kind()?, name, steps_left)?;
                found.offset = found.offset.checked_add(offset(child)?)?;
                return Some(found);
            }
            if is_member && child.is_named(name) { member(self, child) } else { None }
        })
    }

    /// Returns the name of a value of an enumeration.
    #[must_use]
    pub fn enumerator(&self, kind: TypeAt, value: i128) -> Option<String> {
        let entry = self.bare(kind, &mut { STEPS_MAX })?;
        entry.child(|child| {
            if child.tag()? != dw::DW_TAG_enumerator {
                return None;
            }
            let own = child.own(dw::DW_AT_const_value)?;
            let own = match own {
                AttributeValue::Sdata(number) => i128::from(number),
                own => i128::from(own.udata_value()?),
            };
            if own == value { child.name(NAME_BYTES_MAX) } else { None }
        })
    }
}

/// Returns the numbers of elements of an array by dimension.
fn counts(array: &Entry<'_>) -> Vec<Option<u64>> {
    let mut counts = Vec::new();
    let _: Option<()> = array.child(|child| {
        if child.tag() == Some(dw::DW_TAG_subrange_type) && counts.len() < DIMENSIONS_MAX {
            let last = child.number(dw::DW_AT_upper_bound).and_then(|last| last.checked_add(1));
            counts.push(child.number(dw::DW_AT_count).or(last));
        }
        None
    });
    counts
}

/// Returns the distance of a member from the start of its structure. `None` if it is computed.
fn offset(member: &Entry<'_>) -> Option<u64> {
    match member.own(dw::DW_AT_data_member_location) {
        None => Some(0),
        Some(value) => value.udata_value(),
    }
}

fn member(lines: &Lines, entry: &Entry<'_>) -> Option<Member> {
    let kind = entry.kind()?;
    let Some(count) = entry.number(dw::DW_AT_bit_size) else {
        return Some(Member { offset: offset(entry)?, kind, bits: None });
    };
    let first = match (entry.number(dw::DW_AT_data_bit_offset), entry.number(dw::DW_AT_bit_offset)) {
        (Some(first), _) => first,
        // Before DWARF 4, the bits counted from the highest one of the number that holds them.
        (None, Some(from_highest)) => {
            let bytes = entry.number(dw::DW_AT_byte_size).or_else(|| lines.shape(kind)?.bytes())?;
            bytes.checked_mul(8)?.checked_sub(from_highest)?.checked_sub(count)?
        }
        (None, None) => 0,
    };
    let offset = offset(entry)?.checked_add(first / 8)?;
    Some(Member { offset, kind, bits: Some(((first % 8) as u32, u32::try_from(count).ok()?)) })
}

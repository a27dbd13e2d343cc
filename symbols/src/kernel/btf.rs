//! The kernel's types: a reader of BTF, the BPF Type Format (Linux, Documentation/bpf/btf.rst).
//!
//! A distribution's kernel carries its types in the section `.BTF` of its image, also without debug information. From
//! these types Everett learns where the fields of the kernel's structures are. [`Btf::field`] answers the only question
//! that readers of guest memory ask: the offset and length of a field.
//!
//! Kernels are untrusted files. No function here panics, and the memory in use is bounded by the section's length.

use crate::bytes::{bytes_at, u32_at};

/// Magic number at the start of the section, in little-endian order.
const MAGIC: u16 = 0xeb9f;
/// Maximum length of the section, in bytes. Kernels have about 6 MiB.
pub const BTF_BYTES_MAX: usize = 64 << 20;
/// Maximum number of types. Kernels have about 150,000.
pub const TYPES_MAX: usize = 4 << 20;
/// Maximum number of modifiers and typedefs between a name and its type, and of nested unnamed members.
const DEPTH_MAX: usize = 32;
/// Maximum number of members that one search reads.
const MEMBERS_MAX: usize = 1 << 16;

/// Reason why the types of a kernel cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// The section is longer than [`BTF_BYTES_MAX`].
    #[error("its types have more than {BTF_BYTES_MAX} bytes")]
    TooLong,
    /// The header is not one of BTF.
    #[error("its types do not begin with the header of BTF")]
    Header,
    /// A type, or the part with the names, reaches beyond the end of the section.
    #[error("its types are cut off")]
    Truncated,
    /// A type has an unknown kind.
    #[error("its type {id} has the unknown kind {kind}")]
    Kind {
        /// Number of the type.
        id: usize,
        /// Its kind.
        kind: u32,
    },
    /// There are more than [`TYPES_MAX`] types.
    #[error("it has more than {TYPES_MAX} types")]
    TooMany,
}

/// Types of a kernel.
#[derive(Debug, Clone)]
pub struct Btf {
    types: Vec<u8>,
    strings: Vec<u8>,
    /// Offset of each type in `types`. Type 0 is `void` and has no entry, so type *n* has entry *n* - 1.
    offsets: Vec<u32>,
    /// Numbers of the structures and unions that have a name.
    structures: Vec<u32>,
}

/// Place of a field in its structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Offset from the start of the structure, in bits.
    pub bit: u64,
    /// Length in bits. 0 if the type has no length, as in an array without bounds.
    pub bits: u64,
}

impl Field {
    /// Returns the offset from the start of the structure, in bytes.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.bit / 8
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.bits.div_ceil(8)
    }
}

/// Kinds of types (`BTF_KIND_*`).
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const FWD: u32 = 7;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC: u32 = 12;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const FLOAT: u32 = 16;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// Length of `struct btf_type`, in bytes.
const TYPE_BYTES: usize = 12;
/// Length of `struct btf_member`, in bytes.
const MEMBER_BYTES: usize = 12;

/// `struct btf_type`.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    info: u32,
    /// Length in bytes, or the number of another type.
    size_or_type: u32,
    /// Offset of the data that follows.
    data: usize,
}

impl Type {
    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn count(self) -> usize {
        (self.info & 0xffff) as usize
    }

    /// True if the offsets of the members also contain the lengths of bit fields (`kind_flag`).
    fn has_bit_fields(self) -> bool {
        self.info >> 31 == 1
    }

    /// Returns the length of the data that follows the type. `None` if the kind is unknown.
    fn data_bytes(self) -> Option<usize> {
        Some(match self.kind() {
            kind::INT | kind::VAR | kind::DECL_TAG => 4,
            kind::ARRAY => 12,
            kind::STRUCT | kind::UNION => MEMBER_BYTES * self.count(),
            kind::ENUM | kind::FUNC_PROTO => 8 * self.count(),
            kind::DATASEC | kind::ENUM64 => 12 * self.count(),
            kind::PTR
            | kind::FWD
            | kind::TYPEDEF
            | kind::VOLATILE
            | kind::CONST
            | kind::RESTRICT
            | kind::FUNC
            | kind::FLOAT
            | kind::TYPE_TAG => 0,
            _ => return None,
        })
    }
}

impl Btf {
    /// Reads the section `.BTF` of a kernel.
    ///
    /// # Errors
    /// Returns an error if the section is damaged or too long.
    pub fn parse(section: &[u8]) -> Result<Btf, BtfError> {
        if section.len() > BTF_BYTES_MAX {
            return Err(BtfError::TooLong);
        }
        let magic = bytes_at(section, 0).map(u16::from_le_bytes);
        if magic != Some(MAGIC) {
            return Err(BtfError::Header);
        }
        let number = |at| u32_at(section, at).map(|n| n as usize).ok_or(BtfError::Header);
        let (header, type_at, type_bytes) = (number(4)?, number(8)?, number(12)?);
        let (string_at, string_bytes) = (number(16)?, number(20)?);
        let part = |at: usize, bytes: usize| {
            let at = header.checked_add(at)?;
            section.get(at..at.checked_add(bytes)?)
        };
        let types = part(type_at, type_bytes).ok_or(BtfError::Truncated)?.to_vec();
        let strings = part(string_at, string_bytes).ok_or(BtfError::Truncated)?.to_vec();
        let mut btf = Btf { types, strings, offsets: Vec::new(), structures: Vec::new() };
        btf.index()?;
        Ok(btf)
    }

    /// Fills `offsets` and `structures`.
    fn index(&mut self) -> Result<(), BtfError> {
        let mut at = 0;
        while at < self.types.len() {
            let id = self.offsets.len() + 1;
            let found = self.type_at(at).ok_or(BtfError::Truncated)?;
            let unknown = BtfError::Kind { id, kind: found.kind() };
            let end = found.data + found.data_bytes().ok_or(unknown)?;
            if end > self.types.len() {
                return Err(BtfError::Truncated);
            }
            if id > TYPES_MAX {
                return Err(BtfError::TooMany);
            }
            // The section has at most `BTF_BYTES_MAX` bytes, so offsets and numbers have 32 bits.
            self.offsets.push(at as u32);
            if matches!(found.kind(), kind::STRUCT | kind::UNION) && !self.is_named(found.name, b"") {
                self.structures.push(id as u32);
            }
            at = end;
        }
        Ok(())
    }

    fn type_at(&self, at: usize) -> Option<Type> {
        let word = |n: usize| u32_at(&self.types, at + 4 * n);
        Some(Type { name: word(0)?, info: word(1)?, size_or_type: word(2)?, data: at + TYPE_BYTES })
    }

    fn get(&self, id: u32) -> Option<Type> {
        self.type_at(*self.offsets.get((id as usize).checked_sub(1)?)? as usize)
    }

    /// Returns true if this name is at an offset of the strings.
    fn is_named(&self, at: u32, name: &[u8]) -> bool {
        let rest = self.strings.get(at as usize..).and_then(|text| text.strip_prefix(name));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Returns the structure or union with a name. If several have one name, the first counts.
    fn structure(&self, name: &str) -> Option<(u32, Type)> {
        let named = |id: &u32| Some((*id, self.get(*id)?));
        let mut all = self.structures.iter().filter_map(named);
        all.find(|(_, found)| self.is_named(found.name, name.as_bytes()))
    }

    /// Skips typedefs and modifiers such as `const`.
    fn resolve(&self, mut id: u32) -> Option<(u32, Type)> {
        for _ in 0..DEPTH_MAX {
            let found = self.get(id)?;
            match found.kind() {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = found.size_or_type;
                }
                _ => return Some((id, found)),
            }
        }
        None
    }

    /// Returns the length of a type in bits. `None` for types without a length, such as `void`.
    fn bits(&self, id: u32) -> Option<u64> {
        let (mut id, mut times) = (id, 1u64);
        for _ in 0..DEPTH_MAX {
            let (_, found) = self.resolve(id)?;
            let bytes = match found.kind() {
                kind::PTR => 8,
                kind::ARRAY => {
                    times = times.checked_mul(u64::from(u32_at(&self.types, found.data + 8)?))?;
                    id = u32_at(&self.types, found.data)?;
                    continue;
                }
                kind::INT | kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 | kind::FLOAT => {
                    u64::from(found.size_or_type)
                }
                _ => return None,
            };
            return times.checked_mul(bytes)?.checked_mul(8);
        }
        None
    }

    /// Returns the length of a structure or union in bytes. `None` if the kernel has no structure with this name.
    #[must_use]
    pub fn size_of(&self, structure: &str) -> Option<u64> {
        self.structure(structure).map(|(_, found)| u64::from(found.size_or_type))
    }

    /// Returns the place of a field: `path` is the name of a structure and of the fields in it, e.g.
    /// `task_struct.thread.sp`. Members of unnamed structures and unions count as members of the structure around them.
    /// `None` if the kernel has no such field.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<Field> {
        let mut names = path.split('.');
        let (mut id, _) = self.structure(names.next()?)?;
        let mut place = Field { bit: 0, bits: 0 };
        let mut left = MEMBERS_MAX;
        for name in names {
            let (_, within) = self.resolve(id)?;
            let (bit, bits, of) = self.member(within, name.as_bytes(), DEPTH_MAX, &mut left)?;
            place = Field { bit: place.bit.checked_add(bit)?, bits };
            id = of;
        }
        Some(place)
    }

    /// Returns offset, length and type of a member.
    fn member(&self, of: Type, name: &[u8], depth: usize, left: &mut usize) -> Option<(u64, u64, u32)> {
        if !matches!(of.kind(), kind::STRUCT | kind::UNION) || depth == 0 {
            return None;
        }
        for n in 0..of.count() {
            *left = left.checked_sub(1)?;
            let word = |i: usize| u32_at(&self.types, of.data + n * MEMBER_BYTES + 4 * i);
            let (its_name, id, offset) = (word(0)?, word(1)?, word(2)?);
            let (bit, field_bits) = match of.has_bit_fields() {
                true => (u64::from(offset & 0xff_ffff), u64::from(offset >> 24)),
                false => (u64::from(offset), 0),
            };
            if self.is_named(its_name, name) {
                let bits = if field_bits == 0 { self.bits(id).unwrap_or(0) } else { field_bits };
                return Some((bit, bits, id));
            }
            if self.is_named(its_name, b"")
                && let Some((_, inner)) = self.resolve(id)
                && let Some((inside, bits, id)) = self.member(inner, name, depth - 1, left)
            {
                return Some((bit.checked_add(inside)?, bits, id));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a section.
    #[derive(Default)]
    struct Section {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Section {
        fn name(&mut self, name: &str) -> u32 {
            let at = self.strings.len() as u32;
            self.strings.extend(name.bytes().chain([0]));
            at
        }

        fn add(&mut self, name: &str, kind: u32, count: u32, size: u32, data: &[u32]) {
            let name = if name.is_empty() { 0 } else { self.name(name) };
            for word in [name, kind << 24 | count, size].into_iter().chain(data.iter().copied()) {
                self.types.extend(word.to_le_bytes());
            }
        }

        fn bytes(&self) -> Vec<u8> {
            let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
            let mut bytes = vec![0x9f, 0xeb, 1, 0];
            for word in [24, 0, types, types, strings] {
                bytes.extend(word.to_le_bytes());
            }
            [bytes, self.types.clone(), self.strings.clone()].concat()
        }
    }

    /// `int`, `int[3]`, an unnamed union of both, and a structure with the union and two bit fields.
    fn section() -> Vec<u8> {
        let mut section = Section { strings: vec![0], ..Section::default() };
        let (one, many, low, high, next) = (
            section.name("one"),
            section.name("many"),
            section.name("low"),
            section.name("high"),
            section.name("next"),
        );
        section.add("int", kind::INT, 0, 4, &[32]);
        section.add("", kind::ARRAY, 0, 0, &[1, 1, 3]);
        section.add("", kind::UNION, 2, 12, &[one, 1, 0, many, 2, 0]);
        section.add("number", kind::TYPEDEF, 0, 1, &[]);
        section.add("", kind::PTR, 0, 6, &[]);
        let bit_fields = 1 << 7;
        let members = [0, 3, 64, low, 4, 3 << 24 | 160, high, 4, 5 << 24 | 163, next, 5, 192];
        section.add("outer", kind::STRUCT | bit_fields, 4, 32, &members);
        section.bytes()
    }

    #[test]
    fn fields_are_found_in_unnamed_members_and_behind_typedefs() {
        let types = Btf::parse(&section()).unwrap();
        let field = |path| types.field(path).map(|field| (field.bit, field.bits));
        assert_eq!(field("outer.one"), Some((64, 32)));
        assert_eq!(field("outer.many"), Some((64, 96)));
        assert_eq!(field("outer.low"), Some((160, 3)));
        assert_eq!(field("outer.high"), Some((163, 5)));
        assert_eq!(field("outer.next"), Some((192, 64)));
        assert_eq!((types.size_of("outer"), types.size_of("inner")), (Some(32), None));
        assert_eq!((field("outer.three"), field("outer.next.one"), field("int.one")), (None, None, None));
    }

    #[test]
    fn damaged_sections_are_errors() {
        let section = section();
        assert_eq!(Btf::parse(&section[..3]).unwrap_err(), BtfError::Header);
        for length in 24..section.len() {
            assert_eq!(Btf::parse(&section[..length]).unwrap_err(), BtfError::Truncated, "{length}");
        }
        let mut unknown = section.clone();
        unknown[24 + 7] = 31;
        assert_eq!(Btf::parse(&unknown).unwrap_err(), BtfError::Kind { id: 1, kind: 31 });
        assert_eq!(
            Btf::parse(&[&section[..], &vec![0; BTF_BYTES_MAX]].concat()).unwrap_err(),
            BtfError::TooLong
        );
    }

    proptest::proptest! {
        /// Types may refer to each other in circles, and have more members than the section has bytes.
        #[test]
        fn changed_sections_do_not_panic(changes in proptest::collection::vec((24usize..300, proptest::num::u8::ANY), 1..8)) {
            let mut section = section();
            for (at, byte) in changes {
                let at = at % section.len();
                section[at] = byte;
            }
            if let Ok(types) = Btf::parse(&section) {
                for path in ["outer", "outer.one", "outer.many.one", "outer.low", "outer.next.next", "int.one"] {
                    let _ = types.field(path);
                }
            }
        }
    }
}

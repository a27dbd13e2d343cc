//! Writes the extended attributes of a SquashFS image. Each distinct set of attributes is stored once, and inodes refer
//! to it by number.

use super::metadata::MetadataWriter;
use super::{Error, InodeLayout};
use crate::tree::{InodeId, Tree};
use std::collections::BTreeMap;
use std::io::Write;

/// Number that an inode without attributes has instead of a set's number.
pub(super) const NONE: u32 = u32::MAX;

/// Namespaces that the format supports, with their numbers.
const PREFIXES: [(&[u8], u16); 3] = [(b"user.", 0), (b"trusted.", 1), (b"security.", 2)];

/// All attribute sets of a tree.
pub(super) struct Table {
    numbers: BTreeMap<InodeId, u32>,
    pairs: MetadataWriter,
    sets: MetadataWriter,
    count: u32,
}

impl Table {
    pub(super) fn of(tree: &Tree, layout: &InodeLayout) -> Result<Self, Error> {
        let mut table = Table {
            numbers: BTreeMap::new(),
            pairs: MetadataWriter::default(),
            sets: MetadataWriter::default(),
            count: 0,
        };
        let mut known = BTreeMap::new();
        for (id, path) in &layout.order {
            let xattrs = &tree.inode(*id).attributes.xattrs;
            if xattrs.is_empty() {
                continue;
            }
            let number = match known.get(xattrs) {
                Some(&number) => number,
                None => {
                    let number = table.add(xattrs, path)?;
                    known.insert(xattrs.clone(), number);
                    number
                }
            };
            table.numbers.insert(*id, number);
        }
        Ok(table)
    }

    /// Returns the number of an inode's attribute set, or [`NONE`].
    pub(super) fn number(&self, id: InodeId) -> u32 {
        self.numbers.get(&id).copied().unwrap_or(NONE)
    }

    fn add(&mut self, xattrs: &BTreeMap<Vec<u8>, Vec<u8>>, path: &[u8]) -> Result<u32, Error> {
        let place = self.pairs.place();
        let start = self.pairs.length();
        let too_many = |_| Error::TooMany("extended attributes");
        for (name, value) in xattrs {
            let found = PREFIXES.iter().find_map(|(prefix, kind)| Some((name.strip_prefix(*prefix)?, kind)));
            let Some((short, kind)) = found else {
                let (path, name) = (path.escape_ascii().to_string(), name.escape_ascii().to_string());
                return Err(Error::Attribute { path, name });
            };
            self.pairs.write(&kind.to_le_bytes());
            self.pairs.write(&u16::try_from(short.len()).map_err(too_many)?.to_le_bytes());
            self.pairs.write(short);
            self.pairs.write(&u32::try_from(value.len()).map_err(too_many)?.to_le_bytes());
            self.pairs.write(value);
        }
        self.sets.write(&place.reference().to_le_bytes());
        self.sets.write(&u32::try_from(xattrs.len()).map_err(too_many)?.to_le_bytes());
        self.sets.write(&u32::try_from(self.pairs.length() - start).map_err(too_many)?.to_le_bytes());
        self.count += 1;
        Ok(self.count - 1)
    }

    /// Writes the sets. Returns the offset of their table in the image, or `None` if there are no sets.
    pub(super) fn write(&self, out: &mut impl Write, position: &mut u64) -> Result<Option<u64>, Error> {
        if self.count == 0 {
            return Ok(None);
        }
        let pairs = *position;
        *position += self.pairs.copy_to(out)?;
        let starts: Vec<u64> = self.sets.block_starts().map(|start| *position + start).collect();
        *position += self.sets.copy_to(out)?;
        let table = *position;
        out.write_all(&pairs.to_le_bytes())?;
        out.write_all(&self.count.to_le_bytes())?;
        out.write_all(&0u32.to_le_bytes())?;
        for start in &starts {
            out.write_all(&start.to_le_bytes())?;
        }
        *position += 16 + 8 * starts.len() as u64;
        Ok(Some(table))
    }
}

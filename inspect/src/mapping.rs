//! Mappings of a process.

use std::fmt;

use everett_symbols::kernel::btf::Field;

use crate::limits::{
    MAPPINGS_MAX, NAME_BYTES_MAX, PATH_STEPS_OF_PROCESS_MAX, TREE_DEPTH_MAX, TREE_NODES_MAX,
};
use crate::path::Place;
use crate::task::Process;
use crate::{Error, Guest};

/// A range of a process's address space. Its `Display` is its line in `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// Access rights.
    pub access: Access,
    /// File that is mapped.
    pub file: Option<MappedFile>,
    /// Path of the file, or a name such as `[heap]`. Empty for other mappings without a file.
    pub name: String,
}

/// Access rights of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// True if the process may read.
    pub read: bool,
    /// True if the process may write.
    pub write: bool,
    /// True if the process may execute.
    pub execute: bool,
    /// True if other processes may see what the process writes.
    pub shared: bool,
}

/// File of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedFile {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Device of the file system: major and minor number.
    pub device: (u32, u32),
    /// Number of the inode.
    pub inode: u64,
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { read, write, execute, shared } = self.access;
        let letter = |is: bool, letter| if is { letter } else { '-' };
        let MappedFile { offset, device: (major, minor), inode } =
            self.file.unwrap_or(MappedFile { offset: 0, device: (0, 0), inode: 0 });
        let line = format!(
            "{:08x}-{:08x} {}{}{}{} {offset:08x} {major:02x}:{minor:02x} {inode} ",
            self.start,
            self.end,
            letter(read, 'r'),
            letter(write, 'w'),
            letter(execute, 'x'),
            if shared { 's' } else { 'p' },
        );
        if self.name.is_empty() { f.write_str(&line) } else { write!(f, "{line:<73}{}", self.name) }
    }
}

/// Bits of `vm_flags` (`include/linux/mm.h`).
mod flag {
    pub(super) const READ: u64 = 1;
    pub(super) const WRITE: u64 = 2;
    pub(super) const EXECUTE: u64 = 4;
    pub(super) const MAY_SHARE: u64 = 0x80;
}

/// Maple tree nodes (`include/linux/maple_tree.h`).
mod maple {
    /// True if the root of a tree is a node.
    pub(super) fn is_root_node(entry: u64) -> bool {
        entry & 3 == 2 && entry > 4096
    }

    pub(super) fn address(entry: u64) -> u64 {
        entry & !0xff
    }

    pub(super) fn kind(entry: u64) -> u64 {
        entry >> 3 & 0xf
    }

    pub(super) const LEAF: u64 = 1;
    pub(super) const RANGE: u64 = 2;
    pub(super) const GAPS: u64 = 3;
}

impl Guest<'_> {
    /// Returns the mappings of a process, ascending by address. None for threads of the kernel and for zombies.
    ///
    /// # Errors
    /// Returns an error if a structure of the kernel cannot be read, or if there are more than [`MAPPINGS_MAX`].
    pub fn mappings(&self, process: &Process) -> Result<Vec<Mapping>, Error> {
        let Some(mm) = process.mm else { return Ok(Vec::new()) };
        let reading = Error::reading("the mappings of a process");
        let root = match process.threads.first() {
            Some(thread) => self.root_of(thread.task).map_err(&reading)?,
            None => None,
        };
        let layout = &self.kernel.layout;
        let mut areas = Areas::default();
        match (layout.mm_tree, layout.mm_list, layout.vma_next) {
            (Some(tree), _, _) => {
                let entry = self.number(mm, tree).map_err(&reading)?;
                if maple::is_root_node(entry) {
                    self.node(entry, u64::MAX, TREE_DEPTH_MAX, &mut areas).map_err(&reading)?;
                } else if entry != 0 {
                    // A tree with one entry has no node.
                    areas.push(entry).map_err(&reading)?;
                }
            }
            (None, Some(list), Some(next)) => {
                let mut area = self.number(mm, list).map_err(&reading)?;
                while area != 0 {
                    areas.push(area).map_err(&reading)?;
                    area = self.number(area, next).map_err(&reading)?;
                }
            }
            _ => return Err(Error::Field("mm_struct.mm_mt")),
        }
        let mut steps_left = PATH_STEPS_OF_PROCESS_MAX;
        let mapping = |area| self.mapping(mm, area, root, &mut steps_left).map_err(&reading);
        areas.found.into_iter().map(mapping).collect()
    }

    /// Adds the areas below a node of a maple tree. `max` is the last address that the node covers.
    fn node(&self, entry: u64, max: u64, depth: usize, areas: &mut Areas) -> Result<(), Error> {
        if depth == 0 {
            return Err(Error::TooMany { what: "levels in a tree", max: TREE_DEPTH_MAX });
        }
        areas.enter_node()?;
        let layout = &self.kernel.layout;
        let kind = maple::kind(entry);
        let (pivots, slots, last) = match kind {
            maple::LEAF | maple::RANGE => (layout.range_pivot, layout.range_slot, layout.range_end),
            maple::GAPS => (layout.gaps_pivot, layout.gaps_slot, layout.gaps_end),
            _ => return Err(Error::Tree(kind)),
        };
        let field = |field: Option<Field>| field.ok_or(Error::Field("maple_range_64.pivot"));
        let (pivots, slots, last) = (field(pivots)?, field(slots)?, field(last)?);
        let address = maple::address(entry);
        let word = |array: Field, n: u64| self.word(address.wrapping_add(array.offset() + 8 * n));
        // The node's last slot in use (`ma_data_end` in `lib/maple_tree.c`). In a node without gaps, the number of this
        // slot lies where a full node has its last slot.
        let pivots_max = pivots.bytes() / 8;
        let last_pivot = word(pivots, pivots_max.saturating_sub(1))?;
        let last = match kind {
            maple::GAPS => self.number(address, last)?,
            _ if last_pivot == 0 => self.number(address, last)?,
            _ if last_pivot >= max => pivots_max.saturating_sub(1),
            _ => pivots_max,
        };
        for n in 0..(slots.bytes() / 8).min(last.saturating_add(1)) {
            let end = if n < last { word(pivots, n)? } else { max };
            let below = word(slots, n)?;
            if kind != maple::LEAF {
                self.node(below, end, depth - 1, areas)?;
            } else if below != 0 {
                areas.push(below)?;
            }
        }
        Ok(())
    }

    fn mapping(
        &self,
        mm: u64,
        area: u64,
        root: Option<Place>,
        steps_left: &mut usize,
    ) -> Result<Mapping, Error> {
        let layout = &self.kernel.layout;
        let number = |field| self.number(area, field);
        let (start, end, flags) =
            (number(layout.vma_start)?, number(layout.vma_end)?, number(layout.vma_flags)?);
        let file = number(layout.vma_file)?;
        let (file, name) = if file == 0 {
            (None, self.name_without_file(mm, area, start, end)?)
        } else {
            let inode = self.number(file, layout.file_inode)?;
            let device = self.number(self.number(inode, layout.inode_super)?, layout.super_device)?;
            let mapped = MappedFile {
                offset: number(layout.vma_offset)?.wrapping_mul(crate::memory::PAGE),
                device: ((device >> 20) as u32, (device & 0xf_ffff) as u32),
                inode: self.number(inode, layout.inode_number)?,
            };
            (Some(mapped), self.path_of_file(file, root, steps_left)?)
        };
        let access = Access {
            read: flags & flag::READ != 0,
            write: flags & flag::WRITE != 0,
            execute: flags & flag::EXECUTE != 0,
            shared: flags & flag::MAY_SHARE != 0,
        };
        Ok(Mapping { start, end, access, file, name })
    }

    /// Returns the name of a mapping without a file, as the kernel chooses it (`show_map_vma` in `fs/proc/task_mmu.c`).
    fn name_without_file(&self, mm: u64, area: u64, start: u64, end: u64) -> Result<String, Error> {
        let layout = &self.kernel.layout;
        let special = self.kernel.values.get("special_mapping_vmops");
        if special == Some(self.number(area, layout.vma_ops)?) {
            let mapping = self.number(area, layout.vma_private)?;
            return self.text(self.number(mapping, layout.special_name)?, NAME_BYTES_MAX);
        }
        let of_mm = |field| self.number(mm, field);
        if start <= of_mm(layout.mm_brk)? && end >= of_mm(layout.mm_start_brk)? {
            return Ok("[heap]".to_owned());
        }
        let stack = of_mm(layout.mm_start_stack)?;
        if start <= stack && end >= stack {
            return Ok("[stack]".to_owned());
        }
        if let Some((field, text)) = layout.vma_anonymous_name.zip(layout.anonymous_name) {
            let name = self.number(area, field)?;
            if name != 0 {
                let text = self.text(name.wrapping_add(text.offset()), NAME_BYTES_MAX)?;
                return Ok(format!("[anon:{text}]"));
            }
        }
        Ok(String::new())
    }
}

/// Addresses of the areas (`vm_area_struct`) that were found.
#[derive(Default)]
struct Areas {
    found: Vec<u64>,
    /// Number of nodes of the tree that were read. A hostile tree can lead back to itself without a mapping.
    nodes: usize,
}

impl Areas {
    fn push(&mut self, area: u64) -> Result<(), Error> {
        if self.found.len() >= MAPPINGS_MAX {
            return Err(Error::TooMany { what: "mappings", max: MAPPINGS_MAX });
        }
        self.found.push(area);
        Ok(())
    }

    fn enter_node(&mut self) -> Result<(), Error> {
        if self.nodes >= TREE_NODES_MAX {
            return Err(Error::TooMany { what: "nodes in a tree", max: TREE_NODES_MAX });
        }
        self.nodes += 1;
        Ok(())
    }
}

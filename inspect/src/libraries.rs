//! Libraries that a process has loaded, by the names that its dynamic linker gave them.
//!
//! The dynamic linker keeps a list for debuggers (`link_map` in glibc's and musl's `link.h`). The program's dynamic
//! section leads to it (`DT_DEBUG`), and the kernel tells each program where its headers are (`AT_PHDR`).

use crate::limits::{LIBRARIES_MAX, PATH_BYTES_MAX};
use crate::memory::AddressSpace;
use crate::task::Process;
use crate::{Error, Guest};

/// Entries of the auxiliary vector (Linux, `include/uapi/linux/auxvec.h`).
mod auxiliary {
    pub(super) const HEADERS: u64 = 3;
    pub(super) const HEADER_BYTES: u64 = 4;
    pub(super) const HEADER_COUNT: u64 = 5;
}

/// Kinds of program headers, and the tag of the entry of the dynamic section that leads to the list.
const HEADERS_THEMSELVES: u32 = 6;
const DYNAMIC: u32 = 2;
const DEBUG_TAG: u64 = 21;

/// Maximum number of program headers of a process that are read.
const HEADERS_MAX: u64 = 64;
/// Maximum number of entries of a process's dynamic section that are read.
const DYNAMIC_MAX: u64 = 256;

/// A library, or the program itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Path, as the dynamic linker has it. Empty for the program itself.
    pub name: String,
    /// Address of its dynamic section, which lies in one of its mappings.
    pub dynamic: u64,
}

impl Guest<'_> {
    /// Returns the libraries of a process, in the dynamic linker's order. None for programs without a dynamic linker, and
    /// until the dynamic linker has made its list. The list is in the program's own memory, so it can be damaged: it ends
    /// where it cannot be read.
    ///
    /// # Errors
    /// Returns an error if the kernel's structures of the process cannot be read.
    pub fn libraries(&self, process: &Process) -> Result<Vec<Library>, Error> {
        let (Some(mm), Some(memory)) = (process.mm, self.memory_of_process(process)?) else {
            return Ok(Vec::new());
        };
        let vector = self.auxiliary(mm)?;
        let value = |wanted: u64| vector.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value);
        let (Some(headers), Some(bytes), Some(count)) =
            (value(auxiliary::HEADERS), value(auxiliary::HEADER_BYTES), value(auxiliary::HEADER_COUNT))
        else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        let mut next = first(memory, headers, bytes, count.min(HEADERS_MAX)).unwrap_or(0);
        while next != 0 && found.len() < LIBRARIES_MAX {
            let word = |n: u64| word(memory, next.wrapping_add(8 * n));
            let (Some(name), Some(dynamic), Some(after)) = (word(1), word(2), word(3)) else { break };
            let mut text = vec![0; PATH_BYTES_MAX];
            let read = memory.read_some(name, &mut text);
            let Some(end) = text.iter().take(read).position(|byte| *byte == 0) else { break };
            let name = String::from_utf8_lossy(text.get(..end).unwrap_or_default()).into_owned();
            found.push(Library { name, dynamic });
            next = after;
        }
        Ok(found)
    }
}

fn word(memory: AddressSpace<'_>, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    memory.read(address, &mut word).ok().map(|()| u64::from_le_bytes(word))
}

/// Returns the address of the list's first entry, from the program's headers in memory.
fn first(memory: AddressSpace<'_>, headers: u64, bytes: u64, count: u64) -> Option<u64> {
    // Kind and address of a program header. The kind is followed by 4 bytes of flags.
    let header = |n: u64| {
        let at = headers.wrapping_add(bytes.wrapping_mul(n));
        Some((word(memory, at)? as u32, word(memory, at.wrapping_add(16))?))
    };
    let address = |wanted: u32| {
        (0..count).find_map(|n| header(n).filter(|(kind, _)| *kind == wanted).map(|(_, address)| address))
    };
    // The distance of the addresses in memory from those that the file states.
    let bias = address(HEADERS_THEMSELVES).map_or(0, |stated| headers.wrapping_sub(stated));
    let dynamic = address(DYNAMIC)?.wrapping_add(bias);
    let entry = |n: u64| {
        let at = dynamic.wrapping_add(16 * n);
        Some((word(memory, at)?, word(memory, at.wrapping_add(8))?))
    };
    let debug = (0..DYNAMIC_MAX).map_while(entry).take_while(|(tag, _)| *tag != 0);
    let debug = debug.into_iter().find_map(|(tag, value)| (tag == DEBUG_TAG).then_some(value))?;
    // The list follows a version.
    word(memory, debug.wrapping_add(8))
}

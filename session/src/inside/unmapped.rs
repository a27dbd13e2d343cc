//! Pages of mapped files that a process has not touched. The kernel would read them from the file, so Everett does.

use everett_inspect::Guest;
use everett_inspect::mapping::Mapping;
use everett_inspect::memory::{AddressSpace, PAGE};
use everett_inspect::program_stack::Files;
use everett_inspect::task::Process;

use super::limits::COMPARED_PAGES_MAX;

/// Copies bytes of a page that is not in memory, up to the page's end, from the file that the process has mapped there.
/// Returns the number of copied bytes: 0 if no file is mapped, or if the file is not known to be the one in the guest.
///
/// # Errors
/// Returns an error if the structures of the process cannot be read.
pub fn read(
    guest: &Guest<'_>,
    process: &Process,
    files: &dyn Files,
    address: u64,
    into: &mut [u8],
) -> Result<usize, everett_inspect::Error> {
    let Some(memory) = guest.memory_of_process(process)? else { return Ok(0) };
    let mappings = guest.mappings(process)?;
    let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
    let Some(mapping) = mappings.iter().find(holds).filter(|mapping| mapping.file.is_some()) else {
        return Ok(0);
    };
    let Some(program) = files.program(mapping) else { return Ok(0) };
    let inode = |mapping: &Mapping| mapping.file.map(|file| (file.device, file.inode));
    let same = mappings.iter().filter(|other| inode(other) == inode(mapping) && !other.access.write);
    if !is_this_file(memory, same, program.file()) {
        return Ok(0);
    }
    let in_page = (PAGE - address % PAGE).min(into.len() as u64) as usize;
    let content = place(mapping, address).and_then(|at| program.file().get(at..)).unwrap_or_default();
    let count = content.len().min(in_page);
    into[..count].copy_from_slice(&content[..count]);
    Ok(count)
}

/// Returns the place of an address in the file of its mapping.
fn place(mapping: &Mapping, address: u64) -> Option<usize> {
    let offset = mapping.file?.offset;
    usize::try_from(offset.checked_add(address.checked_sub(mapping.start)?)?).ok()
}

/// True if the first page of the mappings that is in memory has the content of the file. Only pages within the file count, and
/// at most [`COMPARED_PAGES_MAX`].
fn is_this_file<'m>(
    memory: AddressSpace<'_>,
    mappings: impl Iterator<Item = &'m Mapping>,
    file: &[u8],
) -> bool {
    let mut page = [0; PAGE as usize];
    let mut pages = 0;
    for mapping in mappings {
        for at in (mapping.start..mapping.end).step_by(PAGE as usize) {
            let content = place(mapping, at).and_then(|at| file.get(at..)).unwrap_or_default();
            if content.is_empty() {
                break;
            }
            pages += 1;
            if pages > COMPARED_PAGES_MAX {
                return false;
            }
            if memory.read_some(at, &mut page) < page.len() {
                continue;
            }
            let count = content.len().min(page.len());
            return page[..count] == content[..count];
        }
    }
    false
}

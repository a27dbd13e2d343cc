//! Finds a file's build ID, the digest that pairs the file with its debug file.

use object::LittleEndian as LE;
use object::elf::{ELF_NOTE_GNU, NT_GNU_BUILD_ID};
use object::read::elf::{ProgramHeader as _, SectionHeader as _};

use crate::{Elf, Error, Part};

/// Maximum number of notes that are read to find the build ID. Kernels have a few dozen notes.
pub const NOTES_MAX: usize = 4_096;

impl<'a> Elf<'a> {
    /// Returns the build ID: a digest that the linker writes into a program and into the program's debug file. `None`
    /// if no note of the file is a build ID.
    ///
    /// # Errors
    /// Returns an error if headers or notes are damaged, or if the first [`NOTES_MAX`] notes have no build ID and more
    /// notes follow.
    pub fn build_id(&self) -> Result<Option<&'a [u8]>, Error> {
        let part = Part::Notes;
        let damaged = |source| Error::Damaged { part, source };
        let sections = self.sections()?.headers.iter();
        let sections = sections.filter_map(|header| header.notes(LE, self.file).transpose());
        let segments = self.program_headers()?.iter();
        let segments = segments.filter_map(|header| header.notes(LE, self.file).transpose());
        let mut left = NOTES_MAX;
        for notes in sections.chain(segments) {
            let mut notes = notes.map_err(damaged)?;
            while let Some(note) = notes.next().map_err(damaged)? {
                if note.name() == ELF_NOTE_GNU && note.n_type(LE) == NT_GNU_BUILD_ID {
                    return Ok(Some(note.desc()));
                }
                left = left.checked_sub(1).ok_or(Error::TooMany { part, max: NOTES_MAX })?;
            }
        }
        Ok(None)
    }
}

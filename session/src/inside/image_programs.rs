//! Programs and libraries of an image and of the files that a world inserts, read when they are asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use everett_guest_image::programs::ImageFiles;
use everett_symbols::program::Program;
use everett_world_file::FileEntry;

/// Maximum length of a program or library that is read, in bytes.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of all programs and libraries that are read from an image, in bytes. Functions of others have no
/// names.
const PROGRAMS_BYTES_MAX: u64 = 2 << 30;

/// Programs and libraries of an image, and of files that the world inserts into it.
pub struct ImagePrograms {
    image: Option<ImageFiles>,
    /// Contents of inserted files by path.
    inserted: BTreeMap<String, Arc<[u8]>>,
    read: RefCell<ReadFiles>,
}

/// Files that were read.
#[derive(Default)]
struct ReadFiles {
    /// Programs by path. `None` for files that are no programs, or that cannot be read.
    programs: BTreeMap<String, Option<Arc<Program>>>,
    /// Length of all files, in bytes.
    bytes: u64,
}

impl ImagePrograms {
    /// Returns the programs of an image and of inserted files, which hide the image's files at the same paths.
    #[must_use]
    pub fn new<'f>(
        image: Option<ImageFiles>,
        inserted: impl IntoIterator<Item = &'f FileEntry>,
    ) -> ImagePrograms {
        let inserted = inserted.into_iter().map(|file| (file.guest_path.clone(), Arc::clone(&file.content)));
        ImagePrograms { image, inserted: inserted.collect(), read: RefCell::default() }
    }

    /// Returns the program at a path. `None` if the image has no program there, or if too many bytes were read.
    #[must_use]
    pub fn program(&self, path: &str) -> Option<Arc<Program>> {
        let mut read = self.read.borrow_mut();
        if let Some(program) = read.programs.get(path) {
            return program.clone();
        }
        let content = match self.inserted.get(path) {
            Some(content) => Some(Arc::clone(content)),
            None => {
                let left = PROGRAMS_BYTES_MAX.saturating_sub(read.bytes).min(PROGRAM_BYTES_MAX);
                let image = self.image.as_ref();
                let content = image.and_then(|image| image.read(Path::new(path), left).ok().flatten());
                read.bytes += content.as_ref().map_or(0, |content| content.len() as u64);
                content.map(Arc::from)
            }
        };
        let program = content.and_then(|content| Program::parse(content).ok()).map(Arc::new);
        read.programs.insert(path.to_owned(), program.clone());
        program
    }
}

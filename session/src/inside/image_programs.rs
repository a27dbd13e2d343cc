//! Programs and libraries of an image, read when they are asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use everett_guest_image::programs::ImageFiles;
use everett_symbols::program::Program;

/// Maximum length of a program or library that is read, in bytes.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of all programs and libraries that are read from an image, in bytes. Functions of others have no
/// names.
const PROGRAMS_BYTES_MAX: u64 = 2 << 30;

/// Programs and libraries of an image.
pub struct ImagePrograms {
    image: ImageFiles,
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
    /// Returns the programs of an image.
    #[must_use]
    pub fn new(image: ImageFiles) -> ImagePrograms {
        ImagePrograms { image, read: RefCell::default() }
    }

    /// Returns the program at a path. `None` if the image has no program there, or if too many bytes were read.
    #[must_use]
    pub fn program(&self, path: &str) -> Option<Arc<Program>> {
        let mut read = self.read.borrow_mut();
        if let Some(program) = read.programs.get(path) {
            return program.clone();
        }
        let left = PROGRAMS_BYTES_MAX.saturating_sub(read.bytes).min(PROGRAM_BYTES_MAX);
        let content = self.image.read(Path::new(path), left).ok().flatten();
        read.bytes += content.as_ref().map_or(0, |content| content.len() as u64);
        let program = content.and_then(|content| Program::parse(content.into()).ok()).map(Arc::new);
        read.programs.insert(path.to_owned(), program.clone());
        program
    }
}

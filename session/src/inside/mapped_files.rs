//! The programs and libraries that processes of a node have mapped, read from the node's image.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use everett_guest_image::programs::{Error, ImageFiles};
use everett_inspect::mapping::Mapping;
use everett_inspect::program_stack::Files;
use everett_symbols::lines::Lines;
use everett_symbols::program::Program;

use super::debug_files::DebugFolders;
use crate::machines::BootFiles;

/// Maximum length of a program or library that is read, in bytes.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of all programs and libraries that are read, in bytes. Functions of others have no names.
const PROGRAMS_BYTES_MAX: u64 = 2 << 30;

/// Programs and libraries of a node's image.
pub struct MappedFiles {
    image: Option<ImageFiles>,
    debug: DebugFolders,
    read: RefCell<ReadFiles>,
    /// Source lines by the path of the program. `None` for programs without source lines.
    lines: RefCell<BTreeMap<String, Option<Arc<Lines>>>>,
}

/// Files of an image that were read.
#[derive(Default)]
struct ReadFiles {
    /// Programs by path. `None` for files that are no programs.
    programs: BTreeMap<String, Option<Arc<Program>>>,
    /// Length of all files, in bytes.
    bytes: u64,
}

impl MappedFiles {
    /// Returns the programs of a node. Separate debug files are looked for in the folders `debug`.
    ///
    /// # Errors
    /// Returns an error if the node's image cannot be read.
    pub fn of_node(files: &BootFiles, node: &str, debug: DebugFolders) -> Result<MappedFiles, Error> {
        let image = match (files.images.get(node), &files.root) {
            (Some(image), _) => Some(ImageFiles::of_disk(&image.disk)?),
            (None, Some((root, _))) => Some(ImageFiles::of_root(root)?),
            (None, None) => None,
        };
        Ok(MappedFiles { image, debug, read: RefCell::default(), lines: RefCell::default() })
    }
}

impl Files for MappedFiles {
    fn program(&self, mapping: &Mapping) -> Option<Arc<Program>> {
        let mut read = self.read.borrow_mut();
        if let Some(program) = read.programs.get(&mapping.name) {
            return program.clone();
        }
        let left = PROGRAMS_BYTES_MAX.saturating_sub(read.bytes).min(PROGRAM_BYTES_MAX);
        let content = self.image.as_ref()?.read(Path::new(&mapping.name), left).ok()??;
        read.bytes += content.len() as u64;
        let program = Program::parse(content.into()).ok().map(Arc::new);
        read.programs.insert(mapping.name.clone(), program.clone());
        program
    }

    fn lines(&self, mapping: &Mapping) -> Option<Arc<Lines>> {
        let program = self.program(mapping)?;
        let mut lines = self.lines.borrow_mut();
        let read = || self.debug.lines(&program).map(Arc::new);
        lines.entry(mapping.name.clone()).or_insert_with(read).clone()
    }
}

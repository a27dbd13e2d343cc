//! The programs and libraries that processes of a node have mapped, read from the node's image.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use everett_guest_image::programs::{Error, ImageFiles};
use everett_inspect::mapping::Mapping;
use everett_inspect::program_stack::Files;
use everett_symbols::lines::Lines;
use everett_symbols::program::Program;

use super::debug_files::DebugFolders;
use super::image_programs::ImagePrograms;
use crate::machines::BootFiles;

/// Programs and libraries of a node's image.
pub struct MappedFiles {
    image: Option<ImagePrograms>,
    debug: DebugFolders,
    /// Source lines by the path of the program. `None` for programs without source lines.
    lines: RefCell<BTreeMap<String, Option<Arc<Lines>>>>,
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
        Ok(MappedFiles { image: image.map(ImagePrograms::new), debug, lines: RefCell::default() })
    }
}

impl Files for MappedFiles {
    fn program(&self, mapping: &Mapping) -> Option<Arc<Program>> {
        self.image.as_ref()?.program(&mapping.name)
    }

    fn lines(&self, mapping: &Mapping) -> Option<Arc<Lines>> {
        let program = self.program(mapping)?;
        let mut lines = self.lines.borrow_mut();
        let read = || self.debug.lines(&program).map(Arc::new);
        lines.entry(mapping.name.clone()).or_insert_with(read).clone()
    }
}

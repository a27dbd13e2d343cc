//! The programs and libraries that processes of a node have mapped, read from the node's image and from the files that the
//! world inserts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use everett_guest_image::programs::{Error, ImageFiles};
use everett_inspect::mapping::Mapping;
use everett_inspect::program_stack::Files;
use everett_symbols::lines::Lines;
use everett_symbols::program::Program;
use everett_world_file::World;

use super::debug_files::DebugFolders;
use super::image_programs::ImagePrograms;
use crate::machines::BootFiles;

/// Maximum length of the debug information that is kept for a node, decompressed, in bytes. Addresses in programs beyond it
/// have no source lines.
const DEBUG_BYTES_MAX: u64 = 4 << 30;

/// Programs and libraries of a node's image.
pub struct MappedFiles {
    programs: ImagePrograms,
    debug: DebugFolders,
    read: RefCell<ReadLines>,
}

/// Source lines that were read.
struct ReadLines {
    /// Source lines by the path of the program. `None` for programs without source lines.
    lines: BTreeMap<String, Option<Arc<Lines>>>,
    /// Number of bytes of debug information that may still be kept.
    bytes_left: u64,
}

impl MappedFiles {
    /// Returns the programs of a node. Separate debug files are looked for in the folders `debug`.
    ///
    /// # Errors
    /// Returns an error if the node's image cannot be read.
    pub fn of_node(
        files: &BootFiles,
        world: &World,
        node: &str,
        debug: DebugFolders,
    ) -> Result<MappedFiles, Error> {
        let image = match (files.images.get(node), &files.root) {
            (Some(image), _) => Some(ImageFiles::of_disk(&image.disk)?),
            (None, Some((root, _))) => Some(ImageFiles::of_root(root)?),
            (None, None) => None,
        };
        let read = RefCell::new(ReadLines { lines: BTreeMap::new(), bytes_left: DEBUG_BYTES_MAX });
        let inserted = world.nodes.iter().filter(|other| other.name == node).flat_map(|node| &node.files);
        Ok(MappedFiles { programs: ImagePrograms::new(image, inserted), debug, read })
    }
}

impl Files for MappedFiles {
    fn program(&self, mapping: &Mapping) -> Option<Arc<Program>> {
        self.programs.program(&mapping.name)
    }

    fn lines(&self, mapping: &Mapping, program: &Program) -> Option<Arc<Lines>> {
        let mut read = self.read.borrow_mut();
        if let Some(lines) = read.lines.get(&mapping.name) {
            return lines.clone();
        }
        let lines = self.debug.lines(program, &mut read.bytes_left).map(Arc::new);
        read.lines.insert(mapping.name.clone(), lines.clone());
        lines
    }
}

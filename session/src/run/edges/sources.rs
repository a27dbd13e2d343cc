//! Functions and source lines of programs in images, read when they are asked for.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use everett_guest_image::programs::Error;
use everett_symbols::functions::Functions;
use everett_symbols::lines::{Lines, SourcePlace};
use everett_symbols::program::{Program, demangled};

use super::images::images;
use crate::inside::debug_files::DebugFolders;
use crate::inside::image_programs::ImagePrograms;
use crate::run::launch::Launcher;

/// Maximum length of the debug information that is kept for the programs of a world, decompressed, in bytes. Addresses
/// in programs beyond it have no source lines.
const DEBUG_BYTES_MAX: u64 = 2 << 30;

/// Programs in a world's images.
pub(crate) struct Sources {
    images: Vec<ImagePrograms>,
    debug: DebugFolders,
    read: RefCell<ReadPrograms>,
    debug_bytes_left: RefCell<u64>,
}

/// Programs that were read, by their image and path. `None` for files that are no programs, or that cannot be read.
type ReadPrograms = BTreeMap<(usize, String), Option<Rc<ProgramSource>>>;

/// A program with its functions and source lines.
pub(crate) struct ProgramSource {
    program: Arc<Program>,
    functions: Functions,
    lines: OnceCell<Option<Lines>>,
}

impl Sources {
    /// Opens a world's images. Separate debug files are looked for in the folders `debug`.
    ///
    /// # Errors
    /// Returns an error if an image cannot be read.
    pub(crate) fn of_launcher(launcher: &Launcher, debug: DebugFolders) -> Result<Sources, Error> {
        let images = images(launcher).map(|image| image.sources());
        Ok(Sources {
            images: images.collect::<Result<_, Error>>()?,
            debug,
            read: RefCell::default(),
            debug_bytes_left: RefCell::new(DEBUG_BYTES_MAX),
        })
    }

    /// Returns a program of an image. `None` if the image has no program at this path, or if it is too long.
    pub(crate) fn program(&self, image: usize, path: &str) -> Option<Rc<ProgramSource>> {
        let mut read = self.read.borrow_mut();
        let key = (image, path.to_owned());
        if let Some(source) = read.get(&key) {
            return source.clone();
        }
        let program = self.images.get(image).and_then(|image| image.program(path));
        let source = program.map(|program| {
            let functions = Functions::of(&program);
            Rc::new(ProgramSource { program, functions, lines: OnceCell::new() })
        });
        read.insert(key, source.clone());
        source
    }

    /// Returns the places in source code of the instruction at an address of a program, the innermost one first. Empty if
    /// the program has no debug information for this address.
    pub(crate) fn places(&self, source: &ProgramSource, address: u64) -> Vec<SourcePlace> {
        self.lines(source).map(|lines| lines.places(address)).unwrap_or_default()
    }

    /// Returns true if a program has debug information.
    pub(crate) fn has_lines(&self, source: &ProgramSource) -> bool {
        self.lines(source).is_some()
    }

    /// Returns the demangled name of the function that begins at an address of a program: from its symbols or from its
    /// debug information. `None` if neither names it.
    pub(crate) fn name(&self, source: &ProgramSource, start: u64) -> Option<String> {
        if let Some((name, 0)) = source.symbol(start) {
            return Some(name);
        }
        self.places(source, start).pop()?.function
    }

    fn lines<'s>(&self, source: &'s ProgramSource) -> Option<&'s Lines> {
        let read = || self.debug.lines(&source.program, &mut self.debug_bytes_left.borrow_mut());
        source.lines.get_or_init(read).as_ref()
    }
}

impl ProgramSource {
    /// Returns the program's functions.
    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Returns the demangled name of the symbol at an address, and the distance from its start.
    pub(crate) fn symbol(&self, address: u64) -> Option<(String, u64)> {
        let function = self.program.function(address)?;
        Some((demangled(function.name), function.offset))
    }
}

/// Returns a place in source code as text: `FILE:LINE`. The function precedes it if the compiler has inlined it. `None`
/// if the file is unknown.
pub(crate) fn line_of(places: &[SourcePlace]) -> Option<String> {
    let innermost = places.first()?;
    let file = innermost.file.as_ref()?;
    let line = innermost.line.map(|line| format!(":{line}")).unwrap_or_default();
    match (&innermost.function, places.len()) {
        (Some(function), 2..) => Some(format!("{function} (inlined) at {file}{line}")),
        _ => Some(format!("{file}{line}")),
    }
}

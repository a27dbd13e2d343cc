//! Functions and source lines of programs, by the image that holds the program. Only the feature `inside` reads them:
//! without it, no function of a program has a name.

use everett_guest_image::programs::Error;

#[cfg(feature = "inside")]
use super::sources::{Sources, line_of};
#[cfg(feature = "inside")]
use crate::inside::debug_files::DebugFolders;
use crate::run::launch::Launcher;

/// Functions of the programs in a world's images.
pub(super) struct Functions {
    #[cfg(feature = "inside")]
    sources: Sources,
}

#[cfg(feature = "inside")]
impl Functions {
    /// Opens a world's images.
    pub(super) fn of_launcher(launcher: &Launcher) -> Result<Functions, Error> {
        Functions::with_debug_files(launcher, DebugFolders::default())
    }

    /// Opens a world's images. Separate debug files are looked for in the folders `debug`.
    pub(super) fn with_debug_files(launcher: &Launcher, debug: DebugFolders) -> Result<Functions, Error> {
        Ok(Functions { sources: Sources::of_launcher(launcher, debug)? })
    }

    /// Returns the demangled name of the function at an address of a program, and the distance from its start.
    pub(super) fn name(&self, image: usize, path: &str, address: u64) -> Option<(String, u64)> {
        self.sources.program(image, path)?.symbol(address)
    }

    /// Returns the first address of the function that contains an address of a program.
    pub(super) fn start(&self, image: usize, path: &str, address: u64) -> Option<u64> {
        let source = self.sources.program(image, path)?;
        source.functions().start(source.functions().at(address)?)
    }

    /// Returns the demangled name of the function that begins at an address of a program.
    pub(super) fn name_of_start(&self, image: usize, path: &str, start: u64) -> Option<String> {
        let source = self.sources.program(image, path)?;
        self.sources.name(&source, start)
    }

    /// Returns the source line of an address of a program as text. If the compiler has inlined the function there, its
    /// name precedes the line.
    pub(super) fn line(&self, image: usize, path: &str, address: u64) -> Option<String> {
        let source = self.sources.program(image, path)?;
        line_of(&self.sources.places(&source, address))
    }
}

#[cfg(not(feature = "inside"))]
impl Functions {
    pub(super) fn of_launcher(_: &Launcher) -> Result<Functions, Error> {
        Ok(Functions {})
    }

    pub(super) fn name(&self, _: usize, _: &str, _: u64) -> Option<(String, u64)> {
        None
    }

    pub(super) fn start(&self, _: usize, _: &str, _: u64) -> Option<u64> {
        None
    }

    pub(super) fn name_of_start(&self, _: usize, _: &str, _: u64) -> Option<String> {
        None
    }

    pub(super) fn line(&self, _: usize, _: &str, _: u64) -> Option<String> {
        None
    }
}

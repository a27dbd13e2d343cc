//! Functions of programs, by the image that holds the program. Only the feature `inside` reads them: without it, no
//! function of a program has a name.

use everett_guest_image::programs::Error;

#[cfg(feature = "inside")]
use super::images::images;
#[cfg(feature = "inside")]
use crate::inside::image_programs::ImagePrograms;
use crate::run::launch::Launcher;

/// Functions of the programs in a world's images.
#[derive(Default)]
pub(super) struct Functions {
    #[cfg(feature = "inside")]
    images: Vec<ImagePrograms>,
}

#[cfg(feature = "inside")]
impl Functions {
    /// Opens a world's images.
    pub(super) fn of_launcher(launcher: &Launcher) -> Result<Functions, Error> {
        let images = images(launcher).map(|image| Ok(ImagePrograms::new(image.files()?)));
        Ok(Functions { images: images.collect::<Result<_, Error>>()? })
    }

    /// Returns the demangled name of the function at an address of a program, and the distance from its start.
    pub(super) fn name(&self, image: usize, path: &str, address: u64) -> Option<(String, u64)> {
        let program = self.images.get(image)?.program(path)?;
        let function = program.function(address)?;
        Some((everett_symbols::program::demangled(function.name), function.offset))
    }
}

#[cfg(not(feature = "inside"))]
impl Functions {
    pub(super) fn of_launcher(_: &Launcher) -> Result<Functions, Error> {
        Ok(Functions::default())
    }

    pub(super) fn name(&self, _: usize, _: &str, _: u64) -> Option<(String, u64)> {
        None
    }
}

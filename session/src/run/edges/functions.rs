//! Functions of programs, by the image that holds the program. Only the feature `inside` reads them: without it, no
//! function of a program has a name.

use everett_guest_image::programs::Error;

use crate::run::launch::Launcher;

/// Functions of the programs in a world's images.
#[derive(Default)]
pub struct Functions {
    #[cfg(feature = "inside")]
    images: Vec<crate::inside::image_programs::ImagePrograms>,
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}

#[cfg(feature = "inside")]
impl Functions {
    /// Opens a world's images, in the order of [`Programs::of_launcher`](super::programs::Programs::of_launcher).
    pub(super) fn of_launcher(launcher: &Launcher) -> Result<Functions, Error> {
        use crate::inside::image_programs::ImagePrograms;
        use everett_guest_image::programs::ImageFiles;

        let root = launcher.files.root.as_ref().map(|(root, _)| ImageFiles::of_root(root));
        let disks = super::programs::disks(launcher).map(ImageFiles::of_disk);
        let images = root.into_iter().chain(disks).map(|image| Ok(ImagePrograms::new(image?)));
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

//! The images of a world, each once: the root filesystem that nodes share, then the container images.

use std::collections::BTreeSet;
use std::path::Path;

use everett_guest_image::oci::RootDisk;
#[cfg(feature = "inside")]
use everett_guest_image::programs::ImageFiles;
use everett_guest_image::programs::{self, Error};

use crate::run::launch::Launcher;

/// An image.
pub(super) enum Image<'l> {
    /// The root filesystem that nodes share.
    Root(&'l Path),
    /// A container image's root filesystem.
    Disk(&'l RootDisk),
}

/// Returns the images of a world. The number of an image is its place in this order.
pub(super) fn images(launcher: &Launcher) -> impl Iterator<Item = Image<'_>> {
    let root = launcher.files.root.iter().map(|(root, _)| Image::Root(root));
    let mut seen = BTreeSet::new();
    let disks = launcher.files.images.values().map(|image| &image.disk);
    root.chain(disks.filter(move |disk| seen.insert(disk.digest)).map(Image::Disk))
}

impl Image<'_> {
    /// Calls `visit` for each program of the image.
    pub(super) fn programs(&self, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), Error> {
        match self {
            Image::Root(root) => programs::of_root(root, visit),
            Image::Disk(disk) => programs::of_disk(disk, visit),
        }
    }

    /// Lists the image's files.
    #[cfg(feature = "inside")]
    pub(super) fn files(&self) -> Result<ImageFiles, Error> {
        match self {
            Image::Root(root) => ImageFiles::of_root(root),
            Image::Disk(disk) => ImageFiles::of_disk(disk),
        }
    }
}

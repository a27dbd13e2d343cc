//! The images of a world, each once: the root filesystem that nodes share, then the container images, then each file that
//! the world inserts.

use std::collections::BTreeSet;
use std::path::Path;

use everett_guest_image::oci::RootDisk;
#[cfg(feature = "inside")]
use everett_guest_image::programs::ImageFiles;
use everett_guest_image::programs::{self, Error};
use everett_world_file::FileEntry;

#[cfg(feature = "inside")]
use crate::inside::image_programs::ImagePrograms;
use crate::run::launch::Launcher;

/// An image.
pub(super) enum Image<'l> {
    /// The root filesystem that nodes share.
    Root(&'l Path),
    /// A container image's root filesystem.
    Disk(&'l RootDisk),
    /// A file that the world inserts into a node.
    File(&'l FileEntry),
}

/// Returns the images of a world. The number of an image is its place in this order.
pub(super) fn images(launcher: &Launcher) -> impl Iterator<Item = Image<'_>> {
    let root = launcher.files.root.iter().map(|(root, _)| Image::Root(root));
    let mut seen = BTreeSet::new();
    let disks = launcher.files.images.values().map(|image| &image.disk);
    let mut files_seen = BTreeSet::new();
    let files = launcher.world.nodes.iter().flat_map(|node| &node.files);
    let files = files.filter(move |file| files_seen.insert((&file.guest_path, &file.content)));
    root.chain(disks.filter(move |disk| seen.insert(disk.digest)).map(Image::Disk))
        .chain(files.map(Image::File))
}

impl Image<'_> {
    /// Calls `visit` for each program of the image.
    pub(super) fn programs(&self, visit: &mut dyn FnMut(&Path, &[u8])) -> Result<(), Error> {
        match self {
            Image::Root(root) => programs::of_root(root, visit),
            Image::Disk(disk) => programs::of_disk(disk, visit),
            Image::File(file) => {
                if everett_elf::is_elf(&file.content) {
                    visit(Path::new(&file.guest_path), &file.content);
                }
                Ok(())
            }
        }
    }

    /// Returns the image's programs, which are read when they are asked for.
    #[cfg(feature = "inside")]
    pub(super) fn sources(&self) -> Result<ImagePrograms, Error> {
        Ok(match self {
            Image::Root(root) => ImagePrograms::new(Some(ImageFiles::of_root(root)?), []),
            Image::Disk(disk) => ImagePrograms::new(Some(ImageFiles::of_disk(disk)?), []),
            Image::File(file) => ImagePrograms::new(None, [*file]),
        })
    }
}

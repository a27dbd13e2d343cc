//! Images for worlds: what `everett-guest-image` builds, with a machine of ours where the building needs one.
use crate::identity::Identity;
use crate::session::launch::BootFiles;
use crate::session::plan::FileError;
use crate::ui::Ui;
use crate::world_file::{Node, World};
use std::path::{Path, PathBuf};

/// An image that is in the cache.
#[derive(Debug, Clone)]
pub struct Image {
    /// What machines boot from.
    pub files: BootFiles,
    /// The digest of all of it.
    pub digest: String,
}

impl Image {
    /// The identity of `world` on this image.
    ///
    /// # Errors
    /// A file of the world cannot be read.
    pub fn identity(&self, world: &World) -> Result<Identity, FileError> {
        Identity::new(world, std::slice::from_ref(&self.digest))
    }
}

/// A kernel as an ELF file.
#[derive(Debug)]
pub struct UnpackedKernel(PathBuf);
impl UnpackedKernel {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Unpack.
pub fn unpack_kernel(path: &Path) -> anyhow::Result<UnpackedKernel> {
    Ok(UnpackedKernel(path.to_owned()))
}

/// Get.
pub fn get(_ui: &Ui, _world: &World, _node: &Node) -> anyhow::Result<Image> {
    let files = BootFiles {
        kernel: "/tmp/lab/vmlinux".into(),
        initramfs: Some("/tmp/lab/initramfs.cpio".into()),
        root: None,
    };
    Ok(Image { files, digest: "lab".into() })
}

//! Reads container images from a folder with the OCI image layout.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use everett_input::file as input;

use super::blobs::Blobs;
use super::digest::Digest;
use super::error::Problem;
use super::manifest::{self, MANIFEST_BYTES_MAX};
use super::resolved_image::ResolvedImage;

/// An open layout.
pub(super) struct Layout {
    folder: PathBuf,
}

impl Layout {
    pub(super) fn open(folder: &Path) -> Result<Layout, Problem> {
        if !folder.join("oci-layout").is_file() || !folder.join("index.json").is_file() {
            return Err(Problem::NoImage);
        }
        Ok(Layout { folder: folder.to_owned() })
    }
}

impl Blobs for Layout {
    fn open(&mut self, blob: &str) -> Result<Box<dyn Read + '_>, Problem> {
        // The text of a valid digest cannot lead out of the folder.
        let digest: Digest = blob.parse()?;
        let path = self.folder.join("blobs").join(digest.algorithm()).join(digest.hex());
        let (file, _): (File, _) = input::open(&path).map_err(|error| match error.is_missing() {
            true => Problem::Missing { blob: blob.to_owned() },
            false => error.into(),
        })?;
        Ok(Box::new(file))
    }

    fn find(&mut self, tag: Option<&str>) -> Result<ResolvedImage, Problem> {
        let path = self.folder.join("index.json");
        let index = input::read(&path, MANIFEST_BYTES_MAX)?;
        manifest::of_index(self, &index, tag)
    }
}

//! Makes root filesystems from container images.
//!
//! [`get`] turns an [`ImageOrigin`] into a [`ContainerImage`]: the parts of a disk with the root filesystem, and the
//! image's configuration. Each module uses only modules below it:
//!
//! - this file: opens an image's source, and takes configurations and layers from the cache.
//! - [`root`]: makes the root filesystem from the layers, and the disk that contains it.
//! - [`changeset`]: applies one layer to the layers below.
//! - [`layers`]: fetches the archives of layers, verifies them and unpacks them into the cache.
//! - [`config`]: parses the configuration: command, environment, user, volumes, healthcheck.
//! - [`store`]: saves images from the stores of Docker and podman on this host.
//! - [`archive`]: reads files of `docker save`, `podman save` and `skopeo copy`. [`layout`]: reads folders with the OCI
//!   image layout. [`registry`]: fetches from registries.
//! - [`manifest`]: chooses an image from indexes and manifests.
//! - [`documents`]: the JSON of manifests and configurations. [`blobs`]: reads blobs, the files of which an image
//!   consists.
//! - [`resolved_image`]: the configuration and the layers of the chosen image.
//! - [`digest`]: computes and compares digests of blobs.
//! - [`error`]: reasons why a container image cannot be used.
//! - [`limits`]: bounds of images and layers.
//!
//! Everett stores each layer once for all images that share it. A layer is stored as an uncompressed tar archive, whose
//! digest is the layer's diff ID. The root filesystem is a SquashFS that contains the layers' archives unchanged. The
//! contents of its files are parts of these archives. Only the SquashFS's tables, such as names and owners, are stored
//! for each image.
//!
//! **Invariants.** A root filesystem is a function of the diff IDs of its layers and of `time_s`, the latest allowed
//! modification time. If the digest of a blob is known, Everett verifies the digest before it uses the blob. Images are
//! untrusted. Everett writes nothing outside the cache, and every count and length has a bound. An error is one line
//! that names the image.

mod archive;
mod blobs;
mod changeset;
pub mod config;
mod digest;
mod documents;
pub mod error;
mod layers;
mod layout;
mod limits;
mod manifest;
mod registry;
mod resolved_image;
mod root;
mod store;

use everett_image_origin::ImageOrigin;
use everett_remote::Access;

use crate::cache::{self, Cache, CacheEntry, Key};
use crate::progress::{BuildProgress, Stage};
use blobs::Blobs;
use config::ImageConfig;
use error::{Error, Problem};
use resolved_image::ResolvedImage;

pub use root::{RootDisk, RootPart};

/// Maximum length of a configuration, in bytes.
pub const CONFIG_BYTES_MAX: u64 = 8 << 20;

/// A container image that machines can boot.
#[derive(Debug, Clone)]
pub struct ContainerImage {
    /// The disk with the root filesystem.
    pub disk: RootDisk,
    /// Settings with which the image's process is started.
    pub config: ImageConfig,
    /// Files of the cache that make up the image.
    pub files: ImageFiles,
    /// BLAKE3 of the root filesystem and of the configuration, in hexadecimal.
    pub digest: String,
    /// Digest of the image's manifest in its registry, for the lock (the file that fixes the versions of a world's
    /// inputs). `None` if the image did not come from a registry.
    pub pinned: Option<String>,
}

/// Files of the cache that make up a container image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFiles {
    /// The configuration.
    pub config: CacheEntry,
    /// The tables of the root filesystem's SquashFS.
    pub tables: CacheEntry,
    /// Archives of the layers, the lowest layer first. A layer may occur twice.
    pub layers: Vec<CacheEntry>,
}

impl ContainerImage {
    /// Returns all files that make up the image.
    pub fn entries(&self) -> impl Iterator<Item = &CacheEntry> {
        let ImageFiles { config, tables, layers } = &self.files;
        layers.iter().chain([tables, config])
    }

    /// Returns the size of the image's files in the cache, in bytes. Layers that other images share are included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries().map(|entry| entry.bytes).sum()
    }

    /// Returns the image that has these files. Errors name the image `name`.
    ///
    /// # Errors
    /// Returns an error if the configuration cannot be read or parsed, or if the lengths of the files exceed a bound or
    /// do not fit together. The error is one line that names the image.
    pub fn of_files(name: &str, files: ImageFiles) -> Result<ContainerImage, Error> {
        let named = |problem: Problem| Error { image: name.to_owned(), problem };
        layers::check_total(&files.layers).map_err(named)?;
        root::check(&files.tables, &files.layers).map_err(named)?;
        let config = read_config(&files.config).map_err(named)?;
        let disk = root::disk(&files.tables, &files.layers);
        let digest = digest_of(&disk, &files.config);
        Ok(ContainerImage { disk, config, files, digest, pinned: None })
    }
}

fn digest_of(disk: &RootDisk, config: &CacheEntry) -> String {
    let digest = blake3::hash(format!("{}\n{}\n", disk.digest_hex(), config.blake3).as_bytes());
    digest.to_hex().to_string()
}

fn read_config(entry: &CacheEntry) -> Result<ImageConfig, Problem> {
    let text = everett_input::file::read(&entry.path, CONFIG_BYTES_MAX).map_err(std::io::Error::from);
    let text = text.map_err(|source| cache::Error::of(&entry.path, source))?;
    ImageConfig::parse(&text)
}

/// Returns the image of an origin. Fetches and makes only the parts that the cache lacks. Modification times later than
/// `time_s` (seconds since 1970) become `time_s`. `locked` is the digest of the image's manifest in the lock. `access`
/// sends requests to registries.
///
/// # Errors
/// Returns an error of one line that names the image.
pub fn get(
    origin: &ImageOrigin,
    locked: Option<&str>,
    time_s: u64,
    cache: &Cache,
    access: &dyn Access,
    progress: &mut dyn BuildProgress,
) -> Result<ContainerImage, Error> {
    let named = |problem: Problem| Error { image: origin.to_string(), problem };
    made(origin, locked, time_s, cache, access, progress).map_err(named)
}

/// Returns the configuration of an origin's image. Does not fetch the layers, except from Docker and podman, which copy
/// the whole image.
///
/// # Errors
/// Returns an error of one line that names the image.
pub fn config_of(origin: &ImageOrigin, cache: &Cache, access: &dyn Access) -> Result<ImageConfig, Error> {
    let named = |problem: Problem| Error { image: origin.to_string(), problem };
    Opened::new(origin, None, access).and_then(|mut opened| Ok(opened.config_read(cache)?.1)).map_err(named)
}

fn made(
    origin: &ImageOrigin,
    locked: Option<&str>,
    time_s: u64,
    cache: &Cache,
    access: &dyn Access,
    progress: &mut dyn BuildProgress,
) -> Result<ContainerImage, Problem> {
    progress.at(Stage::Image, 0, 0);
    let mut opened = Opened::new(origin, locked, access)?;
    let (config_entry, config) = opened.config_read(cache)?;
    let mut layers = Vec::new();
    let total = config.diff_ids.len() as u64;
    for (number, diff_id) in config.diff_ids.iter().enumerate() {
        progress.at(Stage::Image, number as u64, total);
        let layer = match layers::cached(cache, diff_id) {
            Some(entry) => entry,
            None => opened.layer(cache, number, diff_id)?,
        };
        layers.push(layer);
        layers::check_total(&layers)?;
    }
    progress.at(Stage::Image, total, total);
    let (disk, tables) = root::get(cache, &config.diff_ids, &layers, time_s, progress)?;
    let digest = digest_of(&disk, &config_entry);
    let files = ImageFiles { config: config_entry, tables, layers };
    Ok(ContainerImage { disk, config, files, digest, pinned: opened.pinned })
}

/// The origin of one image. Its blobs are read only when they are needed.
struct Opened {
    origin: ImageOrigin,
    /// Cache key of the configuration. If there is none, the origin is read every time.
    key: Option<Key>,
    found: Option<(Box<dyn Blobs>, ResolvedImage)>,
    /// Client of the registry, until [`Self::found`] moves it into the field `found`. `None` for other origins.
    registry: Option<registry::Registry>,
    /// Digest of the image's manifest in the registry.
    pinned: Option<String>,
}

impl Opened {
    fn new(origin: &ImageOrigin, locked: Option<&str>, access: &dyn Access) -> Result<Self, Problem> {
        let mut opened =
            Opened { origin: origin.clone(), key: None, found: None, registry: None, pinned: None };
        if let ImageOrigin::Named(name) = origin {
            opened.choose(name, locked.is_some());
        }
        if let ImageOrigin::Built(build) = origin {
            opened.origin = match store::build(build)? {
                store::Program::Docker => ImageOrigin::Docker(build.name.clone()),
                store::Program::Podman => ImageOrigin::Podman(build.name.clone()),
            };
        }
        opened.key = match &opened.origin {
            ImageOrigin::Layout { .. } | ImageOrigin::Built(_) => None,
            ImageOrigin::Archive { path, tag } => Some(archive::key(path, tag.as_deref())?),
            ImageOrigin::Docker(name) => Some(store::key(store::Program::Docker, name)?),
            ImageOrigin::Podman(name) => Some(store::key(store::Program::Podman, name)?),
            ImageOrigin::Registry(name) | ImageOrigin::Named(name) => {
                let mut reference = registry::Reference::parse(name)?;
                if let (None, Some(locked)) = (&reference.digest, locked) {
                    reference.digest = Some(locked.parse()?);
                }
                let mut registry = registry::Registry::new(reference, access);
                let digest = registry.digest()?.to_string();
                opened.registry = Some(registry);
                let key = Key::new("oci registry").with(&digest);
                opened.pinned = Some(digest);
                Some(key)
            }
        };
        Ok(opened)
    }

    /// Chooses the origin of an image that is given by name only: Docker or podman on this host if it has the image,
    /// otherwise a registry. An image in the lock came from a registry, and is always taken from there.
    fn choose(&mut self, name: &str, is_locked: bool) {
        if is_locked {
            return;
        }
        for (program, origin) in [
            (store::Program::Docker, ImageOrigin::Docker(name.to_owned())),
            (store::Program::Podman, ImageOrigin::Podman(name.to_owned())),
        ] {
            if store::key(program, name).is_ok() {
                self.origin = origin;
                return;
            }
        }
    }

    /// Returns the cache entry of the configuration.
    fn config(&mut self, cache: &Cache) -> Result<CacheEntry, Problem> {
        if let Some(entry) = self.key.as_ref().and_then(|key| cache.get("config", key)) {
            return Ok(entry);
        }
        let (_, found) = self.found(cache)?;
        let text = found.config.clone();
        let key = match &self.key {
            Some(key) => key.clone(),
            None => Key::new("oci config").with(&text),
        };
        cache.get_or_put("config", &key, |file| {
            use std::io::Write as _;
            file.write_all(&text).map_err(|source| cache::Error::of(cache.folder(), source).into())
        })
    }

    /// Returns the cache entry of the configuration, and the parsed configuration.
    fn config_read(&mut self, cache: &Cache) -> Result<(CacheEntry, ImageConfig), Problem> {
        let entry = self.config(cache)?;
        let config = read_config(&entry)?;
        Ok((entry, config))
    }

    /// Unpacks the layer with this number, counted from the lowest, into the cache.
    fn layer(
        &mut self,
        cache: &Cache,
        number: usize,
        diff_id: &digest::Digest,
    ) -> Result<CacheEntry, Problem> {
        let (blobs, found) = self.found(cache)?;
        let layer = found
            .layers
            .get(number)
            .ok_or(Problem::LayerCount { manifest: found.layers.len(), config: number + 1 })?;
        layers::unpack(cache, blobs.as_mut(), layer, diff_id)
    }

    fn found(&mut self, cache: &Cache) -> Result<&mut (Box<dyn Blobs>, ResolvedImage), Problem> {
        if self.found.is_none() {
            let (mut blobs, tag): (Box<dyn Blobs>, Option<&str>) = match &self.origin {
                ImageOrigin::Layout { path, tag } => (Box::new(layout::Layout::open(path)?), tag.as_deref()),
                ImageOrigin::Archive { path, tag } => {
                    (Box::new(archive::Archive::open(path, cache)?), tag.as_deref())
                }
                ImageOrigin::Docker(name) => {
                    (Box::new(store::save(store::Program::Docker, name, cache)?), None)
                }
                ImageOrigin::Podman(name) => {
                    (Box::new(store::save(store::Program::Podman, name, cache)?), None)
                }
                ImageOrigin::Registry(_) | ImageOrigin::Named(_) | ImageOrigin::Built(_) => {
                    (Box::new(self.registry.take().ok_or(Problem::NoImage)?), None)
                }
            };
            let found = blobs.find(tag)?;
            self.found = Some((blobs, found));
        }
        self.found.as_mut().ok_or(Problem::NoImage)
    }
}

#[cfg(test)]
mod bombs;
#[cfg(test)]
mod tests;

//! Errors of container images. Each names the part of the image at fault.

use std::io;

use everett_input::file::Reason;

use super::limits::{IMAGE_BYTES_MAX, LAYER_BYTES_MAX, LAYERS_MAX};
use crate::compression::expansion::Expanded;
use crate::{archive, cache, squashfs, tree};

/// Reason why a container image cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the image {image}")]
pub struct Error {
    /// The image, as the world names it.
    pub image: String,
    /// The problem.
    #[source]
    pub problem: Problem,
}

/// Problem of a container image.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// A file cannot be read.
    #[error("cannot read {what}")]
    Read {
        /// The file or blob.
        what: String,
        /// Cause of the failure.
        source: Reason,
    },
    /// The path is neither a layout nor an archive.
    #[error("this is neither an OCI layout (a folder with the file oci-layout) nor an archive of an image")]
    NoImage,
    /// A JSON document is invalid.
    #[error("{what} is not valid: {problem}")]
    Document {
        /// The document: "the manifest", "the index".
        what: &'static str,
        /// Description of the defect.
        problem: String,
    },
    /// A document or blob is too long.
    #[error("{what} has more than {most} bytes")]
    TooLong {
        /// The document or blob.
        what: String,
        /// The bound in bytes.
        most: u64,
    },
    /// A blob is missing.
    #[error("it has no blob {blob}")]
    Missing {
        /// Digest or path of the blob.
        blob: String,
    },
    /// A blob is shorter or longer than its descriptor says.
    #[error("the blob {blob} has {found} bytes, and {expected} are declared: it is cut off or damaged")]
    Size {
        /// Digest of the blob.
        blob: String,
        /// Length from the descriptor, in bytes.
        expected: u64,
        /// Length of the blob, in bytes.
        found: u64,
    },
    /// A blob does not have its digest.
    #[error("{what} has the digest {found}, and {expected} is declared")]
    Digest {
        /// The blob or layer.
        what: String,
        /// The declared digest.
        expected: String,
        /// The computed digest.
        found: String,
    },
    /// A digest is malformed or uses an unknown algorithm.
    #[error("{0:?} is not a SHA-256 or SHA-512 digest")]
    NotADigest(String),
    /// There is no image for this architecture.
    #[error("it has no image for linux on amd64{}", there(.0))]
    Platform(Vec<String>),
    /// There are several images, and no tag chooses one.
    #[error("it has several images; write {transport}:PATH:NAME with one of these names: {}", names.join(", "))]
    Several {
        /// The word before a path to such a file that may be followed by a name.
        transport: &'static str,
        /// Names of the images.
        names: Vec<String>,
    },
    /// There is no image of this name.
    #[error("it has no image named {tag:?}{}", there(names))]
    NoTag {
        /// The requested name.
        tag: String,
        /// Names of the images.
        names: Vec<String>,
    },
    /// The manifest and the configuration differ in the number of layers.
    #[error("its manifest has {manifest} layers, and its configuration at least {config}")]
    LayerCount {
        /// Number of layers in the manifest.
        manifest: usize,
        /// Position of the configuration's first layer that the manifest lacks, from 1.
        config: usize,
    },
    /// The files of an image have lengths that a disk cannot have.
    #[error("its files are not those of a root filesystem: their lengths do not fit")]
    Parts,
    /// There are too many layers.
    #[error("more than {LAYERS_MAX} layers")]
    Layers,
    /// A layer unpacks to too many bytes.
    #[error("the layer {layer} unpacks to more than {LAYER_BYTES_MAX} bytes")]
    LayerBytes {
        /// Digest of the layer.
        layer: String,
    },
    /// A layer unpacks to suspiciously many bytes.
    #[error("the layer {layer}: {Expanded}")]
    Expansion {
        /// Digest of the layer.
        layer: String,
    },
    /// The layers are too long in total.
    #[error("its layers unpack to more than {IMAGE_BYTES_MAX} bytes")]
    ImageBytes,
    /// The archive with the image cannot be read.
    #[error("its archive")]
    Archive(#[source] archive::Error),
    /// The archive of a layer cannot be unpacked.
    #[error("the layer {layer}")]
    Layer {
        /// Digest of the layer.
        layer: String,
        /// Cause of the failure.
        source: archive::Error,
    },
    /// A whiteout is malformed.
    #[error("the layer {layer}: the whiteout {path} does not name a file")]
    Whiteout {
        /// Digest of the layer.
        layer: String,
        /// Path of the whiteout.
        path: String,
    },
    /// A path does not fit the tree.
    #[error(transparent)]
    Tree(#[from] tree::Error),
    /// The root filesystem cannot be written.
    #[error(transparent)]
    Squashfs(#[from] squashfs::Error),
    /// A value of the configuration cannot be used.
    #[error("its configuration: {key}: {problem}")]
    Config {
        /// The key.
        key: &'static str,
        /// Description of the defect.
        problem: String,
    },
    /// The name of an image in a registry is malformed.
    #[error("{0:?} is not the name of an image in a registry, such as docker.io/library/redis:7")]
    Reference(String),
    /// A registry cannot be reached, or refuses.
    #[error("the registry {host}: {}", everett_input::text::one_line(said))]
    Registry {
        /// Host of the registry.
        host: String,
        /// Description of the failure.
        said: String,
    },
    /// A program that stores images is missing.
    #[error("{0} is not on this host; save the image to a file, and name the file")]
    NoProgram(&'static str),
    /// The host has no program that builds images.
    #[error("building it needs docker or podman, which this host does not have; name a built image instead")]
    NoBuilder,
    /// A program that stores images failed.
    #[error("{program}: {said}")]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Its message.
        said: String,
    },
}

fn there(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) }
}

/// Returns a function that adds the name of a file or blob to an error of reading it.
pub(super) fn reading(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Problem {
    move |source| Problem::Read { what: what.to_string(), source: Reason::Io(source) }
}

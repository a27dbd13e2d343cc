//! Errors of container images. Each error names the faulty part of the image.

use std::io;

use everett_input::file::{self, Reason};

use super::limits::{IMAGE_BYTES_MAX, LAYER_BYTES_MAX, LAYERS_MAX};
use crate::compression::expansion::Expanded;
use crate::{archive, cache, squashfs, tree};

/// Reason why a container image cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the image {image}")]
pub struct Error {
    /// The image's name, as the world file gives it.
    pub image: String,
    /// Description of the problem.
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
        /// Name of the file or blob.
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
        /// Name of the document, for example "the manifest" or "the archive".
        what: &'static str,
        /// Description of the defect.
        problem: String,
    },
    /// A document or blob exceeds its bound.
    #[error("{what} has more than {most} bytes")]
    TooLong {
        /// Name of the document or blob.
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
    /// The content of a blob or layer does not match its digest.
    #[error("{what} has the digest {found}, and {expected} is declared")]
    Digest {
        /// Name of the blob or layer.
        what: String,
        /// The declared digest.
        expected: String,
        /// The computed digest.
        found: String,
    },
    /// A digest is malformed or uses an unknown algorithm.
    #[error("{0:?} is not a SHA-256 or SHA-512 digest")]
    NotADigest(String),
    /// There is no image for linux on amd64. The value lists the platforms for which there is an image.
    #[error("it has no image for linux on amd64{}", there(.0))]
    Platform(Vec<String>),
    /// There are several images, and no tag chooses one.
    #[error("it has several images; write {transport}:PATH:NAME with one of these names: {}", names.join(", "))]
    Several {
        /// Prefix of an image's name in a world file, to which the operator can append `:PATH:NAME`.
        transport: &'static str,
        /// Names of the images.
        names: Vec<String>,
    },
    /// There is no image of this name.
    #[error("it has no image named {tag:?}{}", there(names))]
    NoTag {
        /// The requested name.
        tag: String,
        /// Names of all images in the layout or archive.
        names: Vec<String>,
    },
    /// The configuration has more layers than the manifest.
    #[error("its manifest has {manifest} layers, and its configuration at least {config}")]
    LayerCount {
        /// Number of layers in the manifest.
        manifest: usize,
        /// Position, from 1, of a layer of the configuration that the manifest lacks.
        config: usize,
    },
    /// The files of an image (a root filesystem's tables and layers) cannot form one disk: a length is invalid, or
    /// there are too many layers.
    #[error("its files are not those of a root filesystem: their lengths do not fit")]
    Parts,
    /// The number of layers exceeds the bound.
    #[error("more than {LAYERS_MAX} layers")]
    Layers,
    /// The unpacked length of a layer exceeds the bound.
    #[error("the layer {layer} unpacks to more than {LAYER_BYTES_MAX} bytes")]
    LayerBytes {
        /// Digest of the layer's blob, or the blob's path in an archive of Docker's own format.
        layer: String,
    },
    /// A layer becomes so much longer when it is decompressed that Everett takes it for an attack.
    #[error("the layer {layer}: {Expanded}")]
    Expansion {
        /// Digest of the layer's blob, or the blob's path in an archive of Docker's own format.
        layer: String,
    },
    /// The total unpacked length of the layers exceeds the bound.
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
    /// A whiteout (a file that removes another file) is malformed.
    #[error("the layer {layer}: the whiteout {path} does not name a file")]
    Whiteout {
        /// Digest of the layer.
        layer: String,
        /// Path of the whiteout.
        path: String,
    },
    /// A path of a layer cannot be added to the root filesystem.
    #[error(transparent)]
    Tree(#[from] tree::Error),
    /// The root filesystem cannot be written.
    #[error(transparent)]
    Squashfs(#[from] squashfs::Error),
    /// A value of the configuration cannot be used.
    #[error("its configuration: {key}: {problem}")]
    Config {
        /// Name of the configuration's key.
        key: &'static str,
        /// Description of the defect.
        problem: String,
    },
    /// The name of an image in a registry is malformed.
    #[error("{0:?} is not the name of an image in a registry, such as docker.io/library/redis:7")]
    Reference(String),
    /// A registry cannot be reached, or refuses the request.
    #[error("the registry {host}: {}", everett_input::text::one_line(said))]
    Registry {
        /// Host of the registry.
        host: String,
        /// Description of the failure.
        said: String,
    },
    /// The host lacks the program that stores or builds the image. The value is its name: docker or podman.
    #[error("{0} is not on this host; save the image to a file, and name the file")]
    NoProgram(&'static str),
    /// The host has no program that builds images.
    #[error("building it needs docker or podman, which this host does not have; name a built image instead")]
    NoBuilder,
    /// docker or podman failed.
    #[error("{program}: {said}")]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Message of the program.
        said: String,
    },
}

fn there(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) }
}

/// Returns a function that turns an I/O error into [`Problem::Read`] for this file or blob.
pub(super) fn reading(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Problem {
    move |source| Problem::Read { what: what.to_string(), source: Reason::Io(source) }
}

impl From<file::Error> for Problem {
    fn from(error: file::Error) -> Problem {
        Problem::Read { what: error.path.display().to_string(), source: error.reason }
    }
}

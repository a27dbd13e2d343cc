//! The configuration and the layers to which a manifest refers ([`ResolvedImage`]).

use super::digest::Digest;

/// An image that Everett found in an archive, a layout folder or a registry: its configuration, and references to its
/// layers.
#[derive(Debug, Clone)]
pub(super) struct ResolvedImage {
    /// Text of the configuration. If the image gives a digest for it, the digest is verified.
    pub(super) config: Vec<u8>,
    /// References to the layers, the lowest layer first.
    pub(super) layers: Vec<LayerBlob>,
}

/// Reference to a layer in a manifest.
#[derive(Debug, Clone)]
pub(super) struct LayerBlob {
    /// Digest of the blob, or its path in an archive of Docker's own format.
    pub(super) blob: String,
    /// Digest of the blob. `None` if only the digest of the layer's uncompressed archive is known.
    pub(super) digest: Option<Digest>,
    /// Length of the blob in bytes, if the manifest declares it.
    pub(super) bytes: Option<u64>,
}

//! A manifest names the configuration and the layers of one image ([`ResolvedImage`]).

use super::digest::Digest;

/// An image that a source has: its configuration, and where its layers are.
#[derive(Debug, Clone)]
pub(super) struct ResolvedImage {
    /// The configuration, verified.
    pub(super) config: Vec<u8>,
    /// The layers, the lowest first.
    pub(super) layers: Vec<LayerBlob>,
}

/// A layer as a manifest names it.
#[derive(Debug, Clone)]
pub(super) struct LayerBlob {
    /// Digest or path of the blob.
    pub(super) blob: String,
    /// Digest of the blob; none if only the layer's diff ID is known.
    pub(super) digest: Option<Digest>,
    /// Length of the blob in bytes, if declared.
    pub(super) bytes: Option<u64>,
}

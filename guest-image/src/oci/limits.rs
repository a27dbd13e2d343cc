//! Bounds of an image's layers.

/// Maximum number of layers of an image. Docker's bound is 127.
pub(super) const LAYERS_MAX: usize = 256;

/// Maximum length of a layer's unpacked archive, in bytes.
pub(super) const LAYER_BYTES_MAX: u64 = 16 << 30;

/// Maximum total length of an image's unpacked layers, in bytes.
pub(super) const IMAGE_BYTES_MAX: u64 = 32 << 30;

//! Derivation of keys from lists of byte strings.

use super::key::Key;

/// Contexts of BLAKE3's key derivation, one for each step from a seed to a stream.
pub(super) mod context {
    pub(crate) const SEED: &str = "everett 3 lineage of a seed";
    pub(crate) const BOOT: &str = "everett 3 lineage of a boot";
    pub(crate) const CHILD: &str = "everett 3 lineage of a child";
    pub(crate) const OWNER: &str = "everett 3 key of an owner";
    pub(crate) const PURPOSE: &str = "everett 3 key of a purpose";
}

/// Derives a key from a list of byte strings (parts). The encoding has each part's length before the part, so no two
/// lists have the same encoding.
pub(super) struct Encoder(blake3::Hasher);

impl Encoder {
    /// Creates an encoder for one of the contexts in [`context`].
    pub(super) fn new(context: &str) -> Encoder {
        Encoder(blake3::Hasher::new_derive_key(context))
    }

    /// Appends a part and its length.
    pub(super) fn part(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Returns the key.
    pub(super) fn key(self) -> Key {
        Key::of_hash(self.0.finalize())
    }
}

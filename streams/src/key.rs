//! Keys from which streams of random numbers are generated.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

/// Result of one step of the derivation from a seed to a stream. The last step gives the key for a purpose (e.g. disk
/// errors), which is the key of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Key([u8; 32]);

impl Key {
    /// Returns this hash as a key.
    pub(super) fn of_hash(hash: blake3::Hash) -> Key {
        Key(*hash.as_bytes())
    }

    /// Returns the key of a stream.
    pub(super) fn of_stream(stream: &ChaCha20Rng) -> Key {
        Key(stream.get_seed())
    }

    /// Returns the bytes from which further keys are derived.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the stream with this key, at its beginning.
    pub(super) fn stream(self) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(self.0)
    }
}

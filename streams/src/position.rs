//! Stores a stream of random numbers in moments and digests, as the stream's key and position.

use chacha20::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use super::key::Key;

/// A stream that can be copied and stored.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Position", into = "Position")]
pub(super) struct Stream(pub(super) ChaCha20Rng);

impl Clone for Stream {
    fn clone(&self) -> Stream {
        Position::from(&self.0).into()
    }
}

/// Key and position, which determine all later numbers of a stream.
#[derive(Serialize, Deserialize)]
struct Position {
    key: Key,
    /// Nonce of the cipher.
    stream: u64,
    /// Number of 32-bit words drawn so far. Only the low 68 bits are used.
    word_pos: u128,
}

impl From<&ChaCha20Rng> for Position {
    fn from(rng: &ChaCha20Rng) -> Position {
        Position { key: Key::of_stream(rng), stream: rng.get_stream(), word_pos: rng.get_word_pos() }
    }
}

impl From<Stream> for Position {
    fn from(stream: Stream) -> Position {
        Position::from(&stream.0)
    }
}

impl From<Position> for Stream {
    fn from(position: Position) -> Stream {
        let mut rng = position.key.stream();
        rng.set_stream(position.stream);
        rng.set_word_pos(position.word_pos);
        Stream(rng)
    }
}

//! What was seen that must not be, or not seen that must.

use serde::{Deserialize, Serialize};

use crate::coverage::text::{head, hex};
use crate::coverage::{World, template};

use super::limits::{LINE_BYTES_MAX, TEXT_BYTES_MAX};

/// How many bytes of a hash a signature shows.
const SIGNATURE_BYTES: usize = 8;

/// A property that a timeline does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hit {
    /// Its name.
    pub property: String,
    /// Which of its hits, in 16 hexadecimal digits: two that differ only in numbers, times, ids and nodes are the same, and so
    /// are two wrong histories with one cause.
    pub signature: String,
    /// What was seen, at most [`TEXT_BYTES_MAX`] bytes of it. It may have any characters.
    pub text: String,
    /// When, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// On which node, by its index in the world.
    pub node: Option<u16>,
}

/// The start of a text, as a hit has it.
pub(super) fn clipped(text: &str) -> String {
    head(text, TEXT_BYTES_MAX).to_owned()
}

/// The signature of a text that hits a property.
pub(super) fn signature(property: &str, text: &str, world: &World) -> String {
    // Names of nodes first: where a name is `n1`, its number would be masked and its letter would not.
    let masked = template(&world.mask(head(text, LINE_BYTES_MAX)));
    let mut hasher = blake3::Hasher::new_derive_key("everett 1 signature of a hit");
    for part in [property, masked.as_str()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize().as_bytes()[..SIGNATURE_BYTES])
}

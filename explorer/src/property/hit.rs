//! Hits: violations of properties.

use everett_log_template::template;
use serde::{Deserialize, Serialize};

use crate::coverage::World;
use crate::text::{head, hex};

use super::limits::{TEMPLATE_LINE_BYTES_MAX, TEXT_BYTES_MAX};

/// Length of a signature, in bytes of a hash.
const SIGNATURE_BYTES: usize = 8;

/// Violation of a property on a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyHit {
    /// Name of the property.
    pub property: String,
    /// Signature in 16 hexadecimal digits. Hits of a property that differ only in numbers, times, ids and nodes have
    /// the same signature. Violations of a history have the same signature if they have the same cause.
    pub signature: String,
    /// Text that violates the property, cut to [`TEXT_BYTES_MAX`] bytes: of a record of several lines, its cause. It may have
    /// any characters.
    pub text: String,
    /// Virtual time of the violation, in nanoseconds.
    pub vtime_ns: u64,
    /// Node of the violation, by its index in the world.
    pub node: Option<u16>,
}

/// Returns the beginning of a text, at most [`TEXT_BYTES_MAX`] bytes.
pub(super) fn clipped(text: &str) -> String {
    head(text, TEXT_BYTES_MAX).to_owned()
}

/// Returns the signature of a text that violates a property. `place` is a place in a program that does not vary.
pub(super) fn signature(property: &str, text: &str, place: Option<&str>, world: &World) -> String {
    // Names of nodes are masked first. Otherwise only the number of a name such as `n1` would be masked.
    let masked = template(&world.mask(head(text, TEMPLATE_LINE_BYTES_MAX)));
    let mut hasher = blake3::Hasher::new_derive_key("everett 1 signature of a hit");
    for part in [property, masked.as_str()].into_iter().chain(place) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize().as_bytes()[..SIGNATURE_BYTES])
}

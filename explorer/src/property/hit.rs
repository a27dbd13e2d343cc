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
    /// Signature, as 16 hexadecimal digits. Two hits of a property have the same signature if they differ only in
    /// numbers, times, ids and nodes. Two violations of an operation history have the same signature if they have the
    /// same cause.
    pub signature: String,
    /// Text that violates the property, cut to [`TEXT_BYTES_MAX`] bytes. For a log record of several lines, this is the
    /// cause that the record names. The text may have any characters.
    pub text: String,
    /// Vtime of the violation, in nanoseconds.
    pub vtime_ns: u64,
    /// Index of the node that violated the property. `None` if the violation belongs to no single node.
    pub node: Option<u16>,
}

/// Cuts a text to [`TEXT_BYTES_MAX`] bytes.
pub(super) fn clipped(text: &str) -> String {
    head(text, TEXT_BYTES_MAX).to_owned()
}

/// Returns the signature of a text that violates a property. Numbers, times, ids and node names in `text` are masked,
/// so they do not change the signature. `place` is a position in a program's source. It is not masked, so two hits
/// with different places have different signatures.
pub(super) fn signature(property: &str, text: &str, place: Option<&str>, world: &World) -> String {
    // Mask the names of nodes first. Otherwise only the number in a name such as `n1` would be masked.
    let masked = template(&world.mask(head(text, TEMPLATE_LINE_BYTES_MAX)));
    let mut hasher = blake3::Hasher::new_derive_key("everett 1 signature of a hit");
    for part in [property, masked.as_str()].into_iter().chain(place) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize().as_bytes()[..SIGNATURE_BYTES])
}

//! Digests of a branch's places, as they are recorded.

use everett_vmm::digest::Digest;

use super::traveller::Marks;

/// Bytes of a digest that are kept for each place: enough to see where a replay leaves the trail.
const SHORT_BYTES: usize = 8;

/// One digest of all of them, in hexadecimal digits.
#[must_use]
pub fn digest(marks: &Marks) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("everett marks of a branch");
    for (vtime_ns, Digest(digest)) in marks {
        hasher.update(&vtime_ns.to_le_bytes()).update(digest);
    }
    hasher.finalize().to_hex().to_string()
}

/// The start of a digest, in hexadecimal digits.
#[must_use]
pub fn short(Digest(digest): Digest) -> String {
    digest.iter().take(SHORT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// All of them in their short form.
#[must_use]
pub fn shortened(marks: &Marks) -> Vec<(u64, String)> {
    marks.iter().map(|&(vtime_ns, digest)| (vtime_ns, short(digest))).collect()
}

//! Digests along a branch, in the form in which they are recorded.

use everett_vmm::digest::Digest;

use super::path_runner::Marks;

/// Number of bytes of each digest that are recorded: enough to locate the point where a replay leaves the trail.
const SHORT_BYTES: usize = 8;

/// Returns one digest of all marks, in hexadecimal digits.
#[must_use]
pub fn digest(marks: &Marks) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("everett marks of a branch");
    for (vtime_ns, Digest(digest)) in marks {
        hasher.update(&vtime_ns.to_le_bytes()).update(digest);
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns the first eight bytes of a digest, in hexadecimal digits.
#[must_use]
pub fn short(Digest(digest): Digest) -> String {
    digest.iter().take(SHORT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns all marks in the short form.
#[must_use]
pub fn shortened(marks: &Marks) -> Vec<(u64, String)> {
    marks.iter().map(|&(vtime_ns, digest)| (vtime_ns, short(digest))).collect()
}

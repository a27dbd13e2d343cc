//! Recorded form of the digests along a branch.

use everett_vmm::digest::Digest;

use super::path_runner::Marks;

/// Length of a recorded digest, in bytes. Eight bytes are enough to find the vtime at which a replay leaves the trail.
const SHORT_BYTES: usize = 8;

/// Returns one digest over all marks (digests along a branch), as hexadecimal digits.
#[must_use]
pub fn digest(marks: &Marks) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("everett marks of a branch");
    for (vtime_ns, Digest(digest)) in marks {
        hasher.update(&vtime_ns.to_le_bytes()).update(digest);
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns the first eight bytes of a digest, as hexadecimal digits.
#[must_use]
pub fn short(Digest(digest): Digest) -> String {
    digest.iter().take(SHORT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns all marks with shortened digests.
#[must_use]
pub fn shortened(marks: &Marks) -> Vec<(u64, String)> {
    marks.iter().map(|&(vtime_ns, digest)| (vtime_ns, short(digest))).collect()
}

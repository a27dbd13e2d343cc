//! Finding files: a finding with everything that replays it elsewhere, in one file.
//!
//! - this file: what the manifest says about a finding, and the names of members
//! - `pack`: which files of a run directory and of a world are members; `unpack`: their places on another host
//!
//! ```text
//! run/…             the run directory: run.json, branches.bin, end.json, and the files of the finding
//! world/NAME/…      the folder NAME of the world file: the file, its lock, and what it names by relative paths
//! world/everett.absolute/…  what it names by absolute paths
//! images/DIGEST     files that its machines boot from, if they were asked for
//! ```
//!
//! Not here: the archive (`everett_finding_file`), and reading a sealed world (`everett_world_file::seal`).
//!
//! **Invariants.** An unpacked world reads no host file outside of its folder. Files of images are stored by their
//! digests, so they take the place of nothing else in the cache. Moments are no members: a boot is a function of the
//! world and its images, and a moment from elsewhere could be one that no boot leads to.

mod pack;
mod unpack;

use everett_explorer::run::limits::EVIDENCE_LINES_MAX;
use everett_world_file::World;
use everett_world_file::seal::{Seal, SealedPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use pack::{Packed, Parts, pack};
pub use unpack::{ImagesTo, Unpacked, about, is_finding_file, unpack};

/// What the manifest says about the finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Version of Everett.
    pub everett: String,
    /// Version of the machine.
    pub machine_version: String,
    /// Number of the finding in its run.
    pub finding: u32,
    /// Violated property.
    pub property: String,
    /// Description of the finding, for people.
    pub text: String,
    /// Name of its timeline: identity, seed and path.
    pub timeline: String,
    /// Digest of its trail.
    pub trail: String,
    /// Fault plan of its timeline, one entry a line, for people: it follows from the world, the seed and the path.
    pub faults: Vec<Value>,
    /// Name of the member with the world file.
    pub world: String,
    /// Folders of the world that have no files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Everything else that the world has.
    pub seal: Seal,
}

/// Folder of the members of the run directory, of the world, and of its images.
const RUN: &str = "run";
const WORLD: &str = "world";
const IMAGES: &str = "images";

/// Maximum length of a file of the run directory, in bytes.
const RUN_FILE_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of a file of the world, in bytes: that of a file that is put into a guest.
const WORLD_FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum length of all files of the world, in bytes: those that are put into guests, and as much text.
const WORLD_BYTES_MAX: u64 = 512 << 20;
/// Maximum number of files of evidence.
const EVIDENCE_FILES_MAX: usize = EVIDENCE_LINES_MAX;

/// Files of a finding beside its run directory's own, by the beginnings and ends of their names.
const OF_FINDING: [(&str, &str); 3] =
    [("regression-", ".json"), ("timeline-", ".jsonl"), ("causality-", ".json")];
/// Files of a run directory.
const OF_RUN: [&str; 3] = ["run.json", "branches.bin", "end.json"];
/// Folder of the evidence in a run directory.
const FINDINGS: &str = "findings";

/// Returns the part of a world that a colleague does not have, and that only images carry: `None` if all can be fetched
/// by the lock.
#[must_use]
pub fn of_this_host(world: &World, is_locked: impl Fn(&str) -> bool) -> Option<String> {
    use everett_image_origin::ImageOrigin;
    use everett_world_file::Root;
    let path = |what: &str, path: &std::path::Path| Some(format!("{what} {}", path.display()));
    if let Some(kernel) = &world.image.kernel {
        return path("the kernel", kernel);
    }
    if let Root::Path(root) = &world.image.root {
        return path("the root filesystem", root);
    }
    world.nodes.iter().find_map(|node| match node.image.as_ref()? {
        ImageOrigin::Registry(_) => None,
        ImageOrigin::Named(name) if is_locked(name) => None,
        ImageOrigin::Layout { path: file, .. } | ImageOrigin::Archive { path: file, .. } => {
            path("the image", file)
        }
        ImageOrigin::Docker(name) | ImageOrigin::Podman(name) | ImageOrigin::Named(name) => {
            Some(format!("the image {name} of its local store"))
        }
        ImageOrigin::Built(build) => Some(format!("the image {}, which it builds", build.name)),
    })
}

/// Returns the name of the member for a file of the world, from its place in the sealed world.
fn member_of(place: &SealedPath, folder: &str) -> Option<String> {
    let (prefix, below) = match place {
        SealedPath::Folder(below) => (format!("{WORLD}/{folder}"), below),
        SealedPath::Beside(below) => (WORLD.to_owned(), below),
    };
    let below = below.to_str()?;
    Some(if below.is_empty() { prefix } else { format!("{prefix}/{below}") })
}

#[cfg(test)]
mod tests;

//! Finding files: a finding and everything that is needed to replay it, in one file.
//!
//! - this file: description of a finding, and names of the archive's members
//! - `pack`: packing of a run directory and a world
//! - `unpack`: unpacking on another host
//!
//! The members of the archive have these names:
//!
//! ```text
//! run/…             files of the run directory: run.json, branches.bin, end.json, and the files of the finding
//! world/NAME/…      files of the folder NAME: the world file, its lock, and files that it names by relative paths
//! world/everett.absolute/…  files that the world file names by absolute paths
//! images/DIGEST     files of images, if the operator exported them
//! ```
//!
//! Not here: the format of the archive (`everett_finding_file`), and reading an unpacked world, which may use only the
//! files that came with it (`everett_world_file::seal`).
//!
//! **Invariants.** An unpacked world reads no host file outside of its folder. Files of images are stored under their
//! digests, so they cannot replace other files in the cache. A finding file has no moments (stored
//! states of machines), because Everett could not tell a moment of a real boot from one that the file's author made up.

mod pack;
mod unpack;

use everett_explorer::run::limits::EVIDENCE_LINES_MAX;
use everett_world_file::World;
use everett_world_file::seal::{Seal, SealedPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use pack::{Packed, Parts, pack};
pub use unpack::{ImagesTo, Unpacked, about, is_finding_file, unpack};

/// Description of the finding in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Version of Everett that packed the file.
    pub everett: String,
    /// Machine version of the finding.
    pub machine_version: String,
    /// Number of the finding in its run directory.
    pub finding: u32,
    /// Name of the violated property.
    pub property: String,
    /// Description of the finding, for people.
    pub text: String,
    /// Name of the finding's timeline: identity, seed and path. The identity is a digest of everything else on which
    /// the timeline depends.
    pub timeline: String,
    /// Digest of the timeline's trail.
    pub trail: String,
    /// Fault plan of the timeline, for people. A replay derives the plan from the world, the seed and the path.
    pub faults: Vec<Value>,
    /// Name of the member that is the world file.
    pub world: String,
    /// Folders of the world that are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Seal: data that an unpacked world needs besides its own files, such as environment variables for a compose file,
    /// and files of images.
    pub seal: Seal,
}

/// Top folders of the archive, for the run directory, the world and its images.
const RUN: &str = "run";
const WORLD: &str = "world";
const IMAGES: &str = "images";

/// Maximum length of a file from the run directory, in bytes.
const RUN_FILE_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of a file of the world, in bytes. It equals the maximum length of a file that the agent (Everett's
/// program in the guest) writes into a guest.
const WORLD_FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum length of all files of the world, in bytes.
const WORLD_BYTES_MAX: u64 = 512 << 20;
/// Maximum number of evidence files.
const EVIDENCE_FILES_MAX: usize = EVIDENCE_LINES_MAX;

/// Files of a finding in its run directory, as beginning and end of the name. The finding's number lies between them.
const OF_FINDING: [(&str, &str); 3] =
    [("regression-", ".json"), ("timeline-", ".jsonl"), ("causality-", ".json")];
/// Files of a run directory that every finding file gets.
const OF_RUN: [&str; 3] = ["run.json", "branches.bin", "end.json"];
/// Folder of evidence files in a run directory.
const FINDINGS: &str = "findings";

/// Describes a part of the world that only this host has, such as an image from its local store. Other hosts then need
/// a finding file with images. Returns `None` if other hosts can fetch everything. `is_locked` returns true if the
/// lock file lists the image with this name.
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

/// Returns the name of the member for a file of the world. `place` is the file's path in the sealed world.
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

//! Identity of a timeline: a digest of everything that determines it, except its seed and path.
//!
//! A timeline's name is `e3:<identity>:<seed>/<path>` (`docs/exploring.md`).

use std::fmt;
use std::path::Path;

use everett_explorer::search::strategy::StrategyKind;
use everett_streams::Seed;

use everett_world_file::{Workload, World};

use crate::guest::programs::{COLLECTOR, LIBRARY};

/// Machine version. It changes with the CPU model, the devices, the ACPI tables, the agent protocol and the order of
/// events.
pub const MACHINE_VERSION: &str = "everett-3";
/// Short form of the machine version, with which names of timelines begin.
const PREFIX: &str = "e3";

/// Error for a file of another machine version. Under this version, the file's seed would give a different timeline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} was made by machine version {found}, but this Everett has {MACHINE_VERSION}: make it again, or use an Everett \
     that has {found}"
)]
pub struct OtherVersion {
    /// File that the other version made.
    pub what: String,
    /// Machine version in the file.
    pub found: String,
}

/// Checks that this machine version made the file `what`.
///
/// # Errors
/// Returns an error if `found`, the version in the file, is another one.
pub fn check_version(what: &Path, found: &str) -> Result<(), OtherVersion> {
    match found {
        MACHINE_VERSION => Ok(()),
        _ => Err(OtherVersion { what: what.display().to_string(), found: found.to_owned() }),
    }
}

/// Checks that this machine version made the file `what`, which names the timeline `timeline`. A name without a version
/// passes the check.
///
/// # Errors
/// Returns an error if the name has another version.
pub fn check_timeline(what: &Path, timeline: &str) -> Result<(), OtherVersion> {
    let prefix =
        timeline.split_once(':').map(|(prefix, _)| prefix).and_then(|prefix| prefix.strip_prefix('e'));
    match prefix.filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(number) => check_version(what, &format!("everett-{number}")),
        None => Ok(()),
    }
}

/// Digest of everything that a timeline depends on, except the seed and the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity(blake3::Hash);

impl Identity {
    /// Returns the identity of `world`. `image_digests` are the digests of the images from which its machines boot.
    #[must_use]
    pub fn new(world: &World, image_digests: &[String]) -> Identity {
        let mut hasher = blake3::Hasher::new();
        // The length of each part comes first, so that different lists of parts never give the same bytes.
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(MACHINE_VERSION.as_bytes());
        // A world consists of plain data with sorted string keys, so it always has exactly one JSON form.
        part(serde_json::to_string(world).unwrap_or_default().as_bytes());
        for digest in image_digests {
            part(digest.as_bytes());
        }
        for entry in world.nodes.iter().flat_map(|node| &node.files) {
            part(&entry.content);
        }
        if world.sdk.is_some() {
            part(LIBRARY);
            part(COLLECTOR);
        }
        Identity(hasher.finalize())
    }

    /// Returns the identity of a stored boot of `world`. The seed and most of the workload do not affect a boot. Two
    /// parts of the workload do. First, the wire has a port for Everett itself if a check connects to a node. Second,
    /// the agent (Everett's program in the guests) lists the folder of test commands during the boot.
    #[must_use]
    pub fn of_boot(world: &World, image_digests: &[String]) -> Identity {
        let workload = Workload { template: world.workload.template.clone(), ..Workload::default() };
        let plain = World { workload, seed: None, ..world.clone() };
        let Identity(hash) = Identity::new(&plain, image_digests);
        // A port for Everett changes the wire.
        Identity(if world.workload.has_host() { blake3::keyed_hash(hash.as_bytes(), b"host") } else { hash })
    }

    /// Returns the identity that the names of an exploration's paths contain. It is the same for all seeds. It covers
    /// the length of branches and the faults that the explorer draws, but not the evaluation of results.
    #[must_use]
    pub fn of_exploration(world: &World, image_digests: &[String]) -> Identity {
        let Identity(hash) = Identity::new(world, image_digests);
        let explore = &world.explore;
        let pct = (explore.strategy == StrategyKind::Pct).then_some(explore.depth);
        let what = (&world.faults, explore.segment, explore.horizon, explore.checks(), explore.swarm, pct);
        let mut hasher = blake3::Hasher::new_derive_key("everett exploration");
        hasher.update(hash.as_bytes());
        hasher.update(serde_json::to_string(&what).unwrap_or_default().as_bytes());
        Identity(hasher.finalize())
    }

    /// Returns the digest in hexadecimal, in full length.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.to_hex().to_string()
    }

    /// Returns the name of the timeline that has the seed `seed` and no forks.
    #[must_use]
    pub fn path(&self, seed: Seed) -> String {
        format!("{PREFIX}:{self}:{seed}/")
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex()[..8])
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Identity, MACHINE_VERSION, check_timeline};
    use everett_streams::Seed;
    use everett_world_file::parse;

    fn of(text: &str, image: &str) -> Identity {
        let world = parse(&format!("[[node]]\nname = \"a\"\n{text}"), Path::new("w.toml")).unwrap();
        Identity::new(&world, &[image.to_owned()])
    }

    #[test]
    fn other_versions_are_named() {
        let path = of("", "i").path(Seed::new(7));
        assert_eq!(
            path.split(':').next().map(|e| e.replace('e', "everett-")).as_deref(),
            Some(MACHINE_VERSION)
        );
        let file = Path::new("r.json");
        for fine in [&*path, "", "e:1", "ex:1", "everett"] {
            assert_eq!(check_timeline(file, fine), Ok(()), "{fine}");
        }
        assert_eq!(
            check_timeline(file, "e1:0:0/").unwrap_err().to_string(),
            "r.json was made by machine version everett-1, but this Everett has everett-3: make it again, or use an Everett \
             that has everett-1"
        );
    }

    #[test]
    fn only_inputs_of_the_timeline_change_its_identity() {
        let plain = of("", "i");
        assert_eq!(plain, of("# a comment\n", "i"));
        assert_ne!(plain, of("", "j"));
        assert_ne!(plain, of("memory = \"64M\"", "i"));
        let boot_seed = |n| {
            let text = format!("boot_seed = {n}\n[[node]]\nname = \"a\"\n");
            Identity::new(&parse(&text, Path::new("w.toml")).unwrap(), &["i".to_owned()])
        };
        assert_eq!(plain, boot_seed(0));
        assert_ne!(plain, boot_seed(1));
        assert_ne!(plain, of("service = [\"x\"]", "i"));
        assert!(plain.path(Seed::new(7)).starts_with("e3:") && plain.path(Seed::new(7)).ends_with(":7/"));
    }

    #[test]
    fn a_boot_is_the_same_for_every_workload_and_seed() {
        let boot = |text: &str| {
            let world = parse(text, Path::new("w.toml")).unwrap();
            Identity::of_boot(&world, &["i".to_owned()])
        };
        let node = "[[node]]\nname = \"a\"\n";
        let plain = boot(node);
        let driver = "[[workload.driver]]\nname = \"d\"\nargv = [\"true\"]\n";
        assert_eq!(plain, boot(&format!("seed = 5\n{node}{driver}")));
        assert_ne!(plain, boot(&format!("boot_seed = 5\n{node}")));
        let talk = |port| boot(&format!("{node}[[workload.check]]\nname = \"t\"\ntcp = {port}\n"));
        assert_ne!(plain, talk(80), "Everett has a port on the wire");
        assert_eq!(talk(80), talk(81));
        assert_ne!(plain, boot(&format!("{node}service = [\"x\"]\n")));
        let template = |folder| boot(&format!("{node}{driver}[workload]\ntemplate = \"{folder}\"\n"));
        assert_ne!(plain, template("/t"), "the commands in the folder are listed during the boot");
        assert_ne!(template("/t"), template("/u"));
        assert_eq!(template("/t"), template("//t/"));
    }

    #[test]
    fn a_files_content_matters() {
        let folder = tempfile::tempdir().unwrap();
        let at = |content: &str| {
            std::fs::write(folder.path().join("f"), content).unwrap();
            let text = "[[node]]\nname = \"a\"\nfiles = { \"/etc/f\" = \"f\" }";
            let world = parse(text, &folder.path().join("w.toml")).unwrap();
            Identity::new(&world, &[])
        };
        assert_ne!(at("one"), at("two"));
        assert_eq!(at("one"), at("one"));
    }
}

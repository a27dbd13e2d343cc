//! What lies in the cache: how large it is, when it was used, by which worlds.
//!
//! * [`list`] finds the items; `prune` chooses and removes them.
//!
//! An *item* is what is removed as one: a file of an image, a layer, a package, apt's lists of one set of sources, the boot of
//! a world, its boot with the moments that were saved on it, or a file that a killed process left.

mod prune;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use everett_guest_image::Cache;
use serde::Serialize;

pub use prune::{Bounds, Pruned, prune};

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A kernel, an initramfs or a root filesystem.
    Image,
    /// Base packages, configured.
    Layer,
    /// A downloaded package.
    Package,
    /// apt's lists of packages.
    Lists,
    /// A stored boot.
    Boot,
    /// A stored boot, and moments that were saved on it.
    Saved,
    /// What a process that was killed left.
    Leftover,
}

impl Kind {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Image => "image",
            Kind::Layer => "layer",
            Kind::Package => "package",
            Kind::Lists => "lists",
            Kind::Boot => "boot",
            Kind::Saved => "saved",
            Kind::Leftover => "leftover",
        }
    }
}

/// Something in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// Its path within the cache.
    pub path: String,
    /// What it takes on disk.
    pub bytes: u64,
    /// When it was last used, in seconds since 1970.
    pub used_unix_s: u64,
    /// Whether a running process uses it.
    pub running: bool,
    /// The world files that used it.
    pub worlds: BTreeSet<PathBuf>,
}

/// All items, by kind and path.
///
/// # Errors
/// A folder of the cache cannot be read.
pub fn list(cache: &Cache) -> anyhow::Result<Vec<Item>> {
    let mut items = Vec::new();
    for (folder, kind) in [
        ("entries", Kind::Image),
        ("packages", Kind::Package),
        ("apt", Kind::Lists),
        ("moments", Kind::Boot),
        ("temporary", Kind::Leftover),
    ] {
        let path = cache.folder().join(folder);
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
            let name = entry.with_context(|| path.display().to_string())?.file_name();
            let Some(name) = name.to_str() else { continue };
            // The record beside an entry goes with it.
            if kind == Kind::Image && name.ends_with(".json") {
                continue;
            }
            items.extend(item(cache.folder(), kind, format!("{folder}/{name}")));
        }
    }
    let mut by_path: BTreeMap<String, &mut Item> =
        items.iter_mut().map(|item| (item.path.clone(), item)).collect();
    for one in cache.uses()? {
        let used_unix_s = modified_unix_s(&one.path).unwrap_or(0);
        for path in &one.note.items {
            if let Some(item) = by_path.get_mut(path.as_str()) {
                item.worlds.insert(one.note.world.clone());
                item.running |= one.running;
                item.used_unix_s = item.used_unix_s.max(used_unix_s);
            }
        }
    }
    items.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    Ok(items)
}

/// An item; `None` if it is gone meanwhile.
fn item(cache: &Path, kind: Kind, path: String) -> Option<Item> {
    let place = cache.join(&path);
    let kind = match kind {
        Kind::Image if path.ends_with("-base") => Kind::Layer,
        Kind::Boot if has_saved(&place) => Kind::Saved,
        kind => kind,
    };
    let mut item = Item { kind, path, bytes: 0, used_unix_s: 0, running: false, worlds: BTreeSet::new() };
    measure(&place, &mut item)?;
    if matches!(kind, Kind::Image | Kind::Layer) {
        let _ = measure(&record_of(&place), &mut item);
    }
    Some(item)
}

/// The record beside an entry.
fn record_of(entry: &Path) -> PathBuf {
    let mut name = entry.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

/// Adds what a file or a folder takes, and when it was written last.
fn measure(path: &Path, item: &mut Item) -> Option<()> {
    /// Bytes of a block, as `stat(2)` counts them.
    const BLOCK_BYTES: u64 = 512;
    let metadata = fs::symlink_metadata(path).ok()?;
    item.bytes += metadata.blocks().saturating_mul(BLOCK_BYTES);
    if metadata.is_dir() {
        for entry in fs::read_dir(path).ok()?.flatten() {
            let _ = measure(&entry.path(), item);
        }
    } else {
        item.used_unix_s = item.used_unix_s.max(u64::try_from(metadata.mtime()).unwrap_or(0));
    }
    Some(())
}

fn modified_unix_s(path: &Path) -> Option<u64> {
    u64::try_from(fs::metadata(path).ok()?.mtime()).ok()
}

/// Whether moments were saved on a boot.
fn has_saved(boot: &Path) -> bool {
    let folders = fs::read_dir(boot.join("saved")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.into_iter().any(|file| file.path().extension().is_some_and(|end| end == "moment"))
}

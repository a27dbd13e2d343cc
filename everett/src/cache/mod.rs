//! Lists the items of the cache with their sizes, times of last use, and the worlds that used them.
//!
//! * [`list`] finds the items. `prune` chooses items and removes them.
//!
//! An *item* is the unit of removal: a file of an image, a layer, a package, apt's lists for one set of sources, the
//! stored boot of a world (its machines in the state after the boot) together with the moments saved on it, or a file
//! that a killed process left behind.

mod prune;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use everett_guest_image::Cache;
use serde::Serialize;

pub(crate) use prune::{Bounds, prune};

/// Kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Kernel, initramfs, root filesystem, or part of a container image.
    Image,
    /// Layer: a file system with the configured base packages.
    Layer,
    /// Downloaded package.
    Package,
    /// Package lists that apt downloaded.
    Lists,
    /// Stored boot without saved moments.
    Boot,
    /// Stored boot with saved moments.
    Saved,
    /// File that a killed process left behind.
    Leftover,
}

impl Kind {
    /// Returns the name that lists print.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
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

/// Item of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Item {
    /// Kind of the item. Lists are sorted by kind.
    pub kind: Kind,
    /// Path within the cache.
    pub path: String,
    /// Size on disk, in bytes.
    pub bytes: u64,
    /// Time of the last use, in seconds since 1970.
    pub used_unix_s: u64,
    /// True if a running process uses the item.
    pub running: bool,
    /// World files that used the item.
    pub worlds: BTreeSet<PathBuf>,
}

/// Returns all items, ordered by kind and path.
///
/// # Errors
/// Returns an error if a folder of the cache cannot be read.
pub(crate) fn list(cache: &Cache) -> anyhow::Result<Vec<Item>> {
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
            // A `.json` file is not an item. It has the size and hash of the file or folder beside it, and is removed
            // together with that.
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

/// Returns an item, or `None` if another process has removed it in the meantime.
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

/// Returns the path of the `.json` file with the size and hash of an image file or layer.
fn record_of(entry: &Path) -> PathBuf {
    let mut name = entry.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

/// Adds the size of a file or folder to `item`, and updates its time of last use.
fn measure(path: &Path, item: &mut Item) -> Option<()> {
    /// Size of a block as `stat(2)` counts them, in bytes.
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

/// True if moments were saved on a boot.
fn has_saved(boot: &Path) -> bool {
    let folders = fs::read_dir(boot.join("saved")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.into_iter().any(|file| file.path().extension().is_some_and(|end| end == "moment"))
}

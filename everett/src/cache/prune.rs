//! Removes items of the cache that were not used for some time.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, bail};
use everett_guest_image::Cache;
use everett_host::time;

use super::{Item, Kind, list, record_of};

/// Bounds that choose which items to keep.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    /// Age in seconds since the last use. Items of this age or older are removed.
    pub older_than_s: Option<u64>,
    /// Maximum total size in bytes. The least recently used items are removed until the total is at most this.
    pub keep_bytes: Option<u64>,
    /// True to remove saved moments as well.
    pub saved_moments: bool,
    /// True to report the items without removing them.
    pub dry_run: bool,
}

/// Result of pruning.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    /// Items that were removed. In a dry run, items that a real run would remove.
    pub removed: Vec<Item>,
    /// Items outside the bounds that stay because a running process uses them.
    pub running: Vec<Item>,
    /// Total size of the remaining items, in bytes.
    pub left_bytes: u64,
}

/// Removes the items outside the bounds, least recently used first. Items that a running process uses stay.
///
/// A saved moment needs the image on which it was saved. A rebuilt image could differ, because mirrors drop old
/// packages. So the images of a world stay as long as its saved moments. A use of a saved moment also counts as a use
/// of the images.
///
/// # Errors
/// Returns an error if another process is building images or looking for them, or if an item cannot be removed.
pub(crate) fn prune(cache: &Cache, bounds: &Bounds) -> anyhow::Result<Pruned> {
    let Some(_gate) = cache.enter_alone()? else {
        bail!(
            "{}: another process is building or looking up an image; prune when it has finished",
            cache.folder().display()
        );
    };
    let mut items = list(cache)?;
    let mut saved: Vec<Item> = items.iter().filter(|item| item.kind == Kind::Saved).cloned().collect();
    let needs =
        |moment: &Item, item: &Item| item.kind == Kind::Image && !moment.worlds.is_disjoint(&item.worlds);
    for item in &mut items {
        let used_by =
            saved.iter().filter(|moment| needs(moment, item)).map(|moment| moment.used_unix_s).max();
        item.used_unix_s = item.used_unix_s.max(used_by.unwrap_or(0));
    }
    // If a moment and the image that it needs have the same time of last use, the moment is removed first.
    let order = |item: &Item| (item.used_unix_s, item.kind == Kind::Image, item.path.clone());
    items.sort_by_cached_key(order);
    let now_s = time::unix_s();
    let mut pruned = Pruned { left_bytes: items.iter().map(|item| item.bytes).sum(), ..Pruned::default() };
    for item in items {
        let old = bounds.older_than_s.is_some_and(|age_s| item.used_unix_s.saturating_add(age_s) <= now_s);
        let too_much = bounds.keep_bytes.is_some_and(|most| pruned.left_bytes > most);
        let kept = item.kind == Kind::Saved && !bounds.saved_moments
            || saved.iter().any(|moment| needs(moment, &item));
        // Leftovers (temporary files of killed processes) are always removed. This process holds the cache's lock (the
        // gate) exclusively, so no other process uses temporary files.
        if kept || !(old || too_much || item.kind == Kind::Leftover) {
            continue;
        }
        if item.running {
            pruned.running.push(item);
            continue;
        }
        if !bounds.dry_run {
            remove(cache.folder(), &item)?;
        }
        saved.retain(|moment| moment.path != item.path);
        pruned.left_bytes = pruned.left_bytes.saturating_sub(item.bytes);
        pruned.removed.push(item);
    }
    if !bounds.dry_run {
        forget(cache)?;
    }
    Ok(pruned)
}

fn remove(cache: &Path, item: &Item) -> anyhow::Result<()> {
    let path = cache.join(&item.path);
    let gone = |result: io::Result<()>, path: &Path| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.with_context(|| format!("cannot remove {}", path.display())),
    };
    if matches!(item.kind, Kind::Image | Kind::Layer) {
        // Remove the record (the `.json` file with the item's size and hash) first. Readers ignore an item without a
        // record and create it again, so an interruption here is harmless.
        let record = record_of(&path);
        gone(fs::remove_file(&record), &record)?;
    }
    let is_folder = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
    gone(if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }, &path)
}

/// Removes usage notes (records of which items a world uses) whose items are all gone.
fn forget(cache: &Cache) -> anyhow::Result<()> {
    for one in cache.uses()? {
        let left = one.note.items.iter().any(|item| cache.folder().join(item).exists());
        if !left && !one.running {
            fs::remove_file(&one.path).with_context(|| format!("cannot remove {}", one.path.display()))?;
        }
    }
    Ok(())
}

//! `everett cache`: lists and prunes the cache.

use std::collections::BTreeMap;
use std::path::PathBuf;

use everett_guest_image::Cache;
use everett_host::time;
use everett_input::units::{self, show_bytes};
use serde::Serialize;

use super::Outcome;
use crate::cache::{self, Bounds, Item, Kind};
use crate::ui::{Ui, printable, style};

/// `everett cache`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command; by default the cache is listed
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
}

/// `everett cache …`
#[derive(Debug, clap::Subcommand)]
pub enum CacheCommand {
    /// Remove items that were not used for some time, except items that a running process uses
    ///
    /// Saved moments stay, with the images and the stored boots (booted worlds) that they need. Everett makes all other
    /// items again when it needs them, if mirrors still have the packages.
    Prune {
        /// Remove items that were not used for this long, such as 12h or 7d [default without --keep: 7d]
        #[arg(long, value_name = "AGE", value_parser = super::age::parse_age_ns)]
        older_than: Option<u64>,
        /// Remove the least recently used items until the cache is no larger than this, such as 2G
        #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
        keep: Option<u64>,
        /// Also remove saved moments, and the stored boots and images that these moments need
        #[arg(long)]
        saved_moments: bool,
        /// Remove nothing; list what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Default of `--older-than`, in seconds. It does not apply with `--keep`.
const AGE_DEFAULT_S: u64 = 7 * 24 * 3600;
const SECOND_NS: u64 = 1_000_000_000;

#[derive(Serialize)]
#[serde(tag = "kind")]
enum Record<'a> {
    #[serde(rename = "cache_item")]
    Item { item: &'a Item },
    #[serde(rename = "cache_removed")]
    Removed { item: &'a Item, dry_run: bool },
    #[serde(rename = "cache_kept")]
    Kept { item: &'a Item },
    #[serde(rename = "cache_total")]
    Total { folder: PathBuf, items: usize, bytes: u64 },
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let cache = Cache::of_user()?;
    match &args.command {
        None => list(ui, &cache),
        Some(CacheCommand::Prune { older_than, keep, saved_moments, dry_run }) => {
            let older_than_s = older_than.map(|age_ns| age_ns / SECOND_NS);
            let older_than_s = older_than_s.or_else(|| keep.is_none().then_some(AGE_DEFAULT_S));
            let bounds =
                Bounds { older_than_s, keep_bytes: *keep, saved_moments: *saved_moments, dry_run: *dry_run };
            prune(ui, &cache, &bounds)
        }
    }
    .map(|()| Outcome::Fine)
}

fn list(ui: &Ui, cache: &Cache) -> anyhow::Result<()> {
    let items = cache::list(cache)?;
    let now_s = time::unix_s();
    ui.say(style::paint(style::HEAD, format!("{:<9}{:>11}  {:<10}{}", "what", "size", "last used", "by")))?;
    // Packages are many and alike, so one line sums them up.
    let mut packages: BTreeMap<Kind, (usize, Item)> = BTreeMap::new();
    for item in &items {
        ui.record(&Record::Item { item })?;
        if item.kind == Kind::Package {
            let (count, sum) = packages.entry(item.kind).or_insert((0, Item { bytes: 0, ..item.clone() }));
            *count += 1;
            sum.bytes += item.bytes;
            sum.used_unix_s = sum.used_unix_s.max(item.used_unix_s);
            continue;
        }
        ui.say(line(item, now_s, &item.path))?;
    }
    for (count, sum) in packages.values() {
        ui.say(line(sum, now_s, &format!("{count} packages")))?;
    }
    let bytes = items.iter().map(|item| item.bytes).sum();
    ui.say(format!("{} in {}", show_bytes(bytes), cache.folder().display()))?;
    ui.record(&Record::Total { folder: cache.folder().to_owned(), items: items.len(), bytes })?;
    Ok(())
}

/// Formats an item as a line of a list. The line names the worlds that used the item, or `path` if no world used it.
fn line(item: &Item, now_s: u64, path: &str) -> String {
    let worlds: Vec<String> = item.worlds.iter().map(|world| world.display().to_string()).collect();
    let by = if worlds.is_empty() { path.to_owned() } else { worlds.join(", ") };
    let used = if item.running { "now".to_owned() } else { age(now_s.saturating_sub(item.used_unix_s)) };
    format!("{:<9}{:>11}  {used:<10}{}", item.kind.name(), show_bytes(item.bytes), printable(&by))
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn prune(ui: &Ui, cache: &Cache, bounds: &Bounds) -> anyhow::Result<()> {
    let pruned = cache::prune(cache, bounds)?;
    let now_s = time::unix_s();
    for item in &pruned.removed {
        ui.record(&Record::Removed { item, dry_run: bounds.dry_run })?;
        ui.say(line(item, now_s, &item.path))?;
    }
    for item in &pruned.running {
        ui.record(&Record::Kept { item })?;
        ui.say(style::paint(style::FAINT, format!("{}  kept: it is in use", line(item, now_s, &item.path))))?;
    }
    let bytes = pruned.removed.iter().map(|item| item.bytes).sum();
    let done = if bounds.dry_run { "would be freed" } else { "freed" };
    ui.say(format!("{} {done}, {} left", show_bytes(bytes), show_bytes(pruned.left_bytes)))?;
    ui.record(&Record::Total {
        folder: cache.folder().to_owned(),
        items: pruned.removed.len(),
        bytes: pruned.left_bytes,
    })?;
    Ok(())
}

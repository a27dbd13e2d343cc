//! Arguments of `everett runs prune`, with or without the history.

use std::path::PathBuf;

/// Arguments of `everett runs prune`. A run that `keep` or `older_than_ns` keeps stays.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PruneArgs {
    /// Prune only explorations of this world file
    pub world: Option<PathBuf>,
    /// Keep the newest N explorations of each world
    #[arg(long, value_name = "N", required_unless_present_any = ["older_than", "gone"])]
    pub keep: Option<usize>,
    /// Keep explorations that began later than this long ago, such as 12h or 7d
    #[arg(long = "older-than", id = "older_than", value_name = "AGE", value_parser = super::age::parse_age_ns)]
    pub older_than_ns: Option<u64>,
    /// Remove only records whose run directory is gone
    #[arg(long, conflicts_with_all = ["keep", "older_than"])]
    pub gone: bool,
    /// Remove nothing; list what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

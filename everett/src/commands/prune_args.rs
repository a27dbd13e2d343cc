//! Arguments of `everett runs prune`, for builds with and without the feature `history` (the database of explorations).

use std::path::PathBuf;

/// Arguments of `everett runs prune`. The command keeps a run if at least one of the given options says so.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PruneArgs {
    /// Prune only explorations of this world file
    pub world: Option<PathBuf>,
    /// Keep the newest N explorations of each world
    #[arg(long, value_name = "N", required_unless_present_any = ["older_than", "gone"])]
    pub keep: Option<usize>,
    /// Keep explorations that began less than this long ago, such as 12h or 7d
    #[arg(long = "older-than", id = "older_than", value_name = "AGE", value_parser = super::age::parse_age_ns)]
    pub older_than_ns: Option<u64>,
    /// Keep all explorations whose run directory still exists; remove the records of the others
    #[arg(long, conflicts_with_all = ["keep", "older_than"])]
    pub gone: bool,
    /// Remove nothing; list what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

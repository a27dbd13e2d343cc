//! Arguments that name a timeline, for `run` and `verify`: its world, seeds, start and faults.

use std::path::PathBuf;

use everett_streams::{BootSeed, Seed};

use super::engine_options::Hidden;

/// Arguments that name a timeline.
#[derive(Debug, Clone, clap::Args)]
pub struct TimelineArgs {
    /// The world file [default: world.toml, else a compose file, in the current folder]
    pub world: Option<PathBuf>,
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<Seed>,
    /// The seed of the boot [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub boot_seed: Option<BootSeed>,
    /// Start at power-on instead of at the stored boot
    #[arg(long)]
    pub cold: bool,
    /// Start from this saved moment of the timeline
    #[arg(long, value_name = "MOMENT", conflicts_with = "cold")]
    pub from: Option<String>,
    /// Fault plan (JSON lines; see docs/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Options that set how the engine executes
    #[command(flatten)]
    pub hidden: Hidden,
}

//! Options `--profile` and `--profile-every` of `everett run`, for builds with and without the feature `inside`.

use std::path::PathBuf;

/// Default number of retired instructions of a node between two samples.
const PROFILE_EVERY: u64 = 2_000_000;
/// Minimum number of retired instructions between two samples. A sample takes the host longer than this many instructions.
const PROFILE_EVERY_MIN: u64 = 1_000;
/// Maximum number of retired instructions between two samples.
const PROFILE_EVERY_MAX: u64 = 1_000_000_000;

/// Options of a profile, which observes a timeline without changing it.
#[derive(Debug, Clone, clap::Args)]
pub struct ProfileArgs {
    /// New folder for a profile of all guests by retired instructions: profile.txt, profile.json, profile.folded and flame.svg
    #[arg(long, value_name = "DIR")]
    pub profile: Option<PathBuf>,
    /// With --profile: the number of instructions that a node retires between two samples
    #[arg(
        long,
        value_name = "N",
        requires = "profile",
        default_value_t = PROFILE_EVERY,
        value_parser = clap::value_parser!(u64).range(PROFILE_EVERY_MIN..=PROFILE_EVERY_MAX)
    )]
    pub profile_every: u64,
}

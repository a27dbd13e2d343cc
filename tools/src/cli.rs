//! The arguments of every command.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use everett_explorer::search::strategy::StrategyKind;

use crate::engines::Asked;
use crate::session::watching::Watched;
use crate::units;

/// Everett runs unmodified Linux servers in a deterministic world: the same world and seed give the same run, to the
/// bit.
#[derive(Debug, Parser)]
#[command(
    name = "everett",
    version,
    after_help = "Exit status: 0 fine, 1 something was found, 2 could not run."
)]
pub struct Cli {
    /// Print one JSON object a line instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// What executes guest code
    #[arg(long, global = true, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineChoice,
    /// Run on /dev/kvm with --engine kvm though it did not prove exact here; every result is marked
    #[arg(long, global = true)]
    pub allow_inexact: bool,
    /// On /dev/kvm: give up a guest that computes for so long without an exit, of the host's time
    #[arg(long, global = true, value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "60s")]
    pub patience: u64,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Which engine is asked for.
    #[must_use]
    pub fn asked(&self) -> Asked {
        let patience = Duration::from_nanos(self.patience);
        Asked { engine: self.engine, allow_inexact: self.allow_inexact, patience }
    }
}

/// What executes guest code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The fastest that proved exact on this host
    Auto,
    /// Everett's own x86-64 CPU; exact on every host
    Soft,
    /// The host's /dev/kvm
    Kvm,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what this host can do, and which engine that means
    Doctor(Doctor),
    /// Build images: kernel, initramfs, root filesystem
    #[command(subcommand)]
    Image(Image),
    /// Show and prune the cache of images, layers, packages and boots
    Cache(Cache),
    /// Boot one machine with its console on the terminal
    Boot(Boot),
    /// Run one timeline
    Run(Run),
    /// Run one timeline again and again, and compare
    Verify(Verify),
    /// Save, list, show, restore and drop moments of a timeline
    #[command(subcommand)]
    Moment(Moment),
    /// Draw a fault plan for a world: JSON lines for --faults
    Plan(Plan),
    /// Fork timelines of a world, do other things to each, and look for what must not be seen
    Explore(Explore),
    /// List what an exploration found
    Findings(RunFolder),
    /// Show a finding or a branch of an exploration, or the digest of all of it
    Show(Show),
    /// Run a finding or a branch again, exactly, and compare it with what was recorded
    Replay(Replay),
    /// Find the fewest faults that still show a finding
    Shrink(Shrink),
    /// Say what an exploration covered, found, and never reached
    Report(Report),
    /// Explore a real cluster until it loses acknowledged writes; replay, shrink and tell it
    Demo(Demo),
}

/// `everett doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Look at /dev/kvm alone, and so hard that what holds only most of the time does not pass
    ///
    /// Takes minutes. Ends with status 0 if everything that an exact kvm engine needs was shown, else with 1.
    #[arg(long)]
    pub prove: bool,
}

/// `everett image …`
#[derive(Debug, Subcommand)]
pub enum Image {
    /// Build a world's image, or find it in the cache; writes world.lock beside the world file
    Build {
        /// The world file
        world: PathBuf,
    },
}

/// `everett cache`
#[derive(Debug, Args)]
pub struct Cache {
    /// What to do; without it, list what lies in the cache
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
}

/// `everett cache …`
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove what was not used for some time; never what a running process uses
    Prune {
        /// Remove what was last used so long ago, such as 12h or 7d; 7d without this and --keep
        #[arg(long, value_name = "AGE", value_parser = parse_age_ns)]
        older_than: Option<u64>,
        /// Remove what was used longest ago, until the cache has at most this size, such as 2G
        #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
        keep: Option<u64>,
        /// Remove saved moments, too, with the boots that they need
        #[arg(long)]
        saved_moments: bool,
        /// Remove nothing; say what would be
        #[arg(long)]
        dry_run: bool,
    },
}

/// A duration that may be in days.
fn parse_age_ns(text: &str) -> Result<u64, units::UnitError> {
    const DAY_NS: u64 = 24 * 3_600_000_000_000;
    match text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok()) {
        Some(days) => days.checked_mul(DAY_NS).ok_or_else(|| units::UnitError::TooLarge(text.to_owned())),
        None => units::parse_duration_ns(text),
    }
}

/// `everett boot`
#[derive(Debug, Args)]
#[command(
    after_help = "With a COMMAND, it runs in the guest once the services are ready, then the machine powers \
                        off; the exit status is 0 if the command's is, else 1."
)]
pub struct Boot {
    /// The world file
    #[arg(required_unless_present = "kernel")]
    pub world: Option<PathBuf>,
    /// Which node, if the world has several
    #[arg(long, value_name = "NAME", requires = "world")]
    pub node: Option<String>,
    /// Boot this vmlinux or bzImage instead of the image's
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Boot with this initramfs instead of the image's; nobody answers its agent then
    #[arg(long, value_name = "FILE")]
    pub initramfs: Option<PathBuf>,
    /// Add to the kernel's command line
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub cmdline: String,
    /// RAM without a world, such as 256M
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes, conflicts_with = "world")]
    pub memory: Option<u64>,
    /// The seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop at this vtime; without it the guest runs until it powers off, or Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub duration_ns: Option<u64>,
    /// Run this in the guest, then power off
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
    /// Switches that only tests use
    #[command(flatten)]
    pub hidden: Hidden,
}

/// Which timeline.
#[derive(Debug, Clone, Args)]
pub struct Timeline {
    /// The world file
    pub world: PathBuf,
    /// The seed; the world file's, or 0, without it
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The seed under which the machine boots, up to where its services are ready; the world file's, or 0, without it
    #[arg(long, value_name = "N")]
    pub boot_seed: Option<u64>,
    /// Boot from power-on, instead of starting where a stored boot is ready
    #[arg(long)]
    pub cold: bool,
    /// Start from this saved moment of the timeline
    #[arg(long, value_name = "MOMENT", conflicts_with = "cold")]
    pub from: Option<String>,
    /// Do to the world what this fault plan says (JSON lines; see docs/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Switches that only tests use
    #[command(flatten)]
    pub hidden: Hidden,
}

/// `everett moment …`
#[derive(Debug, Subcommand)]
pub enum Moment {
    /// Run a timeline to a place, and save the machine as it is there
    Save {
        /// Which timeline
        #[command(flatten)]
        place: Place,
        /// What to call it; the seed and the vtime, without it
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// List the saved moments of a world
    List {
        /// The world file
        world: PathBuf,
    },
    /// Show what a saved moment is, after checking every byte of it
    Show {
        /// The world file
        world: PathBuf,
        /// Its name
        moment: String,
    },
    /// Restore a saved moment into a machine, and check that it is the machine that was saved
    Restore {
        /// The world file
        world: PathBuf,
        /// Its name
        moment: String,
    },
    /// Drop a saved moment
    Drop {
        /// The world file
        world: PathBuf,
        /// Its name
        moment: String,
    },
}

/// A place on a timeline.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The world file
    pub world: PathBuf,
    /// The seed; the world file's, or 0, without it
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How much vtime after the services are ready
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub at: u64,
    /// Start from this saved moment of the timeline
    #[arg(long, value_name = "MOMENT")]
    pub from: Option<String>,
    /// Do to the world what this fault plan says (JSON lines; see docs/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
}

/// `everett run`
#[derive(Debug, Args)]
pub struct Run {
    /// Which timeline
    #[command(flatten)]
    pub timeline: Timeline,
    /// How much vtime, from where the services are ready; without it, until the workload is done
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, display_order = 3)]
    pub duration_ns: Option<u64>,
    /// End when the workload is done, 10 minutes of vtime after ready at the latest: the default without --for
    ///
    /// It is done when the drivers have ended, each driver and anytime_ command of a test template has ended at least once, and
    /// the fault plan is carried out. A driver with repeat = true never ends: then --for says how long it runs.
    #[arg(long, conflicts_with = "duration_ns", display_order = 3)]
    pub until_done: bool,
    /// Write run.json, events.jsonl, trail.jsonl, wire.jsonl, wire.pcapng and consoles into this new folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What is seen of it besides
    #[command(flatten)]
    pub instruments: Instruments,
}

/// What is seen of a timeline that it does not notice.
#[derive(Debug, Clone, Default, Args)]
pub struct Instruments {
    /// Tell who stores to these bytes of a node (w), loads from them (r), or both (rw): n1:0xffffffff82a12340+8:w
    #[arg(long, value_name = "NODE:ADDRESS+BYTES:rw")]
    pub watch: Vec<Watched>,
    /// Write into this new file which branches of programs and kernel went where (JSON lines)
    #[arg(long, value_name = "FILE")]
    pub edges: Option<PathBuf>,
}

/// `everett plan`
#[derive(Debug, Args)]
pub struct Plan {
    /// The world file; its [faults] table says which faults, how often and how strong
    pub world: PathBuf,
    /// The seed; the world file's, or 0, without it
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How much vtime after the services are ready
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "20s")]
    pub duration_ns: u64,
}

/// `everett verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// Which timeline
    #[command(flatten)]
    pub timeline: Timeline,
    /// How much vtime, from where the services are ready
    #[arg(
        long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "20s",
        display_order = 3
    )]
    pub duration_ns: u64,
    /// How often to run it
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub runs: u32,
    /// How many runs at a time; without it, one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// `everett explore`
#[derive(Debug, Args)]
#[command(
    after_help = "Without --budget and --branches it goes on until Ctrl-C. A run directory that is there is gone on with, \
                        if it is of the same world and seed. Where the world file does not say how many branches are in \
                        flight and how many are checked, that fits --branches or --budget; see docs/exploring.md."
)]
pub struct Explore {
    /// The world file; its [explore], [faults] and [[property]] tables say how, and what for
    pub world: PathBuf,
    /// The seed; the world file's, or 0, without it
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The run directory
    #[arg(short, long, value_name = "RUN")]
    pub output: PathBuf,
    /// End after so much time
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// End after so many branches
    #[arg(long, value_name = "N")]
    pub branches: Option<u64>,
    /// End with the first branch on which something is found
    #[arg(long)]
    pub until_found: bool,
    /// How many branches at a time; without it, one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// What moments may take of memory; without it, a quarter of the host's
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
    pub memory: Option<u64>,
    /// From where branches go on, instead of what the world file says: uniform, novelty or pct
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<StrategyKind>,
    /// Switches that only tests use
    #[command(flatten)]
    pub hidden: Hidden,
    /// Wait so many milliseconds before each third branch
    #[arg(long, hide = true, value_name = "MS", default_value_t = 0)]
    pub slow_branches_ms: u64,
}

/// An exploration.
#[derive(Debug, Args)]
pub struct RunFolder {
    /// The run directory
    pub run: PathBuf,
}

/// `everett show`
#[derive(Debug, Args)]
pub struct Show {
    /// The run directory
    pub run: PathBuf,
    /// A finding's number, or b and a branch's
    pub id: Option<Id>,
    /// One digest of the tree, its findings and its coverage
    #[arg(long, conflicts_with = "id")]
    pub digest: bool,
    /// Only of the first branches
    #[arg(long, value_name = "N", requires = "digest")]
    pub branches: Option<u64>,
}

/// `everett replay`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 1 when what was found is found again, 0 when it is not, and for branches on which nothing was \
                        found; 2 when it leaves the recorded trail."
)]
pub struct Replay {
    /// The run directory, or a regression file
    pub run: PathBuf,
    /// A finding's number, or b and a branch's
    pub id: Option<Id>,
    /// Of a regression file: the world file, if it is neither where it was nor beside the regression file
    #[arg(long, value_name = "PATH")]
    pub world: Option<PathBuf>,
    /// Stop at this vtime since the world was switched on
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub until: Option<u64>,
    /// Say nothing but how it ended
    #[arg(short, long)]
    pub quiet: bool,
    /// What is seen of it besides
    #[command(flatten)]
    pub instruments: Instruments,
}

/// `everett shrink`
#[derive(Debug, Args)]
pub struct Shrink {
    /// The run directory
    pub run: PathBuf,
    /// A finding's number
    pub id: u32,
    /// End after so much time with the best plan so far, as Ctrl-C does; the regression file says that it is not minimal
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// How many runs at a time; without it, one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Where to write the regression file; into the run directory without it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `everett report`
#[derive(Debug, Args)]
pub struct Report {
    /// The run directory
    pub run: PathBuf,
    /// Write report.md and report.json into this folder instead of printing
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// A finding, or a branch, of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    /// A finding, from 1.
    Finding(u32),
    /// A branch, from 0.
    Branch(u64),
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        let id = match text.strip_prefix('b') {
            Some(number) => number.parse().ok().map(Id::Branch),
            None => text.parse().ok().map(Id::Finding),
        };
        id.ok_or_else(|| {
            format!("\"{text}\" is neither the number of a finding nor b and that of a branch, as in b17")
        })
    }
}

/// `everett demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// The seed
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub seed: u64,
    /// Where the run directory is made; a temporary folder without it
    #[arg(short, long, value_name = "RUN")]
    pub output: Option<PathBuf>,
}

/// How Everett's own CPU executes guest code. Nothing of it shows in a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SoftMode {
    /// Translate hot code to host code
    #[default]
    Translate,
    /// Interpret all of it
    Interp,
    /// Do both, compare registers and memory all the time, and stop where they differ; for tests of Everett itself
    Lockstep,
}

/// How the engine executes, and hidden switches that break determinism or disturb caches on purpose: only tests use those, to
/// show that a gate can fail.
#[derive(Debug, Clone, Default, Args)]
pub struct Hidden {
    /// How Everett's own CPU executes guest code; timelines are the same
    #[arg(long, value_name = "MODE", default_value = "translate")]
    pub soft_mode: SoftMode,
    /// Plant a leak that verification must find
    #[arg(long, hide = true, value_name = "LEAK")]
    pub plant: Option<Leak>,
    /// Size of the soft engine's TLB, in entries
    #[arg(long, hide = true, value_name = "N")]
    pub tlb_entries: Option<usize>,
    /// Size of the soft engine's block cache, in blocks
    #[arg(long, hide = true, value_name = "N")]
    pub block_cache: Option<usize>,
    /// Drop every engine cache at instants drawn from this seed
    #[arg(long, hide = true, value_name = "SEED")]
    pub flush_caches: Option<u64>,
}

/// A planted leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Leak {
    /// Host time in one MMIO read
    HostTime,
    /// A lost bit of the local APIC's state
    Lapic,
    /// A stale TLB entry
    Tlb,
    /// A panic in the engine, at each CPUID
    Panic,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }
}

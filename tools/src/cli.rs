//! The arguments of every command. `runs` and `serve` have those of one command each.

mod runs;
mod serve;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use everett_explorer::causality::search::FUTURES_MAX;
use everett_explorer::search::strategy::StrategyKind;

use everett_input::units;
use everett_session::engines::{self, Asked};
use everett_session::watching::Watched;
use everett_world_file::NODES_MAX;

pub use runs::{Runs, RunsCommand};
pub use serve::Serve;

/// Everett runs unmodified Linux servers in a deterministic simulation: the same world and seed give the same run, to
/// the bit.
#[derive(Debug, Parser)]
#[command(
    name = "everett",
    version,
    after_help = "Exit status: 0 if all is well, 1 if something was found, 2 if the command failed."
)]
pub struct Cli {
    /// Print JSON lines instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Engine that executes guest code (ignored by demo, which uses soft)
    #[arg(long, global = true, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineChoice,
    /// With --engine kvm: run even if /dev/kvm did not prove exact on this host; every result is marked
    #[arg(long, global = true)]
    pub allow_inexact: bool,
    /// On /dev/kvm: host time after which a guest that computes without an exit is given up
    #[arg(long, global = true, value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "60s")]
    pub patience: u64,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Returns the engine that the arguments ask for.
    #[must_use]
    pub fn asked(&self) -> Asked {
        let patience = Duration::from_nanos(self.patience);
        Asked { engine: self.engine.into(), allow_inexact: self.allow_inexact, patience }
    }
}

/// Engine that executes guest code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// The fastest engine that proved exact on this host
    Auto,
    /// Everett's own x86-64 CPU; exact on all hosts tried so far
    Soft,
    /// The host's /dev/kvm
    Kvm,
}

impl From<EngineChoice> for engines::EngineChoice {
    fn from(choice: EngineChoice) -> engines::EngineChoice {
        match choice {
            EngineChoice::Auto => engines::EngineChoice::Auto,
            EngineChoice::Soft => engines::EngineChoice::Soft,
            EngineChoice::Kvm => engines::EngineChoice::Kvm,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the capabilities of this host and the engine that follows from them
    Doctor(Doctor),
    /// Build images: kernel, initramfs, root filesystem
    #[command(subcommand)]
    Image(Image),
    /// Show and prune the cache of images, layers, packages and boots
    Cache(Cache),
    /// Boot one machine with its console on the terminal
    Boot(Boot),
    /// Write a first world file from a compose file, an image, a Debian package or a program
    Init(Init),
    /// Run one timeline
    Run(Run),
    /// Run one timeline several times and compare the runs
    Verify(Verify),
    /// Save, list, show, restore and drop moments of a timeline
    #[command(subcommand)]
    Moment(Moment),
    /// Draw a fault plan for a world: JSON lines for --faults
    Plan(Plan),
    /// Fork timelines of a world, inject different faults into each, and look for findings
    Explore(Explore),
    /// List what an exploration found
    Findings(Findings),
    /// Show a finding or a branch, or the digest of the whole exploration
    Show(Show),
    /// Replay a finding or a branch exactly, and compare it with the record
    Replay(Replay),
    /// Find the fewest faults that still show a finding
    Shrink(Shrink),
    /// Find the step of a finding's timeline at which the finding became likely
    Causality(Causality),
    /// Report what an exploration covered, found and never reached
    Report(Report),
    /// Show the report of a run in a browser while the run goes on
    Serve(Serve),
    /// List the explorations of a world, and prune them
    Runs(Runs),
    /// Explore a real cluster until it loses acknowledged writes; replay, shrink and explain it
    Demo(Demo),
    /// Print completions for a shell
    Completions(Completions),
    /// Write man pages into a folder
    Man(Man),
}

/// `everett completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `everett man`
#[derive(Debug, Args)]
pub struct Man {
    /// The folder; it is made if it does not exist
    pub folder: PathBuf,
}

/// `everett doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Examine only /dev/kvm, each property a hundred times
    ///
    /// Takes minutes. The exit status is 0 if every property that an exact kvm engine needs held, else 1.
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
    /// The command; without one, the contents of the cache are listed
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
}

/// `everett cache …`
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove items that were not used for some time; never those that a running process uses
    ///
    /// Saved moments and the images of their worlds are kept. Everything else is made again when it is needed, if
    /// mirrors still have the packages.
    Prune {
        /// Remove items unused for this long, such as 12h or 7d [default without --keep: 7d]
        #[arg(long, value_name = "AGE", value_parser = parse_age_ns)]
        older_than: Option<u64>,
        /// Remove the least recently used items until the cache has at most this size, such as 2G
        #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
        keep: Option<u64>,
        /// Also remove saved moments, with the boots and images that they need
        #[arg(long)]
        saved_moments: bool,
        /// Remove nothing; list what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Parses a duration that may be in days.
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
    /// The node, if the world has several
    #[arg(long, value_name = "NAME", requires = "world")]
    pub node: Option<String>,
    /// Boot this vmlinux or bzImage instead of the image's
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Boot with this initramfs instead of the image's; without a world, Everett does not talk to its agent
    #[arg(long, value_name = "FILE")]
    pub initramfs: Option<PathBuf>,
    /// Text added to the kernel's command line
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub cmdline: String,
    /// RAM of a machine without a world, such as 256M
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes, conflicts_with = "world")]
    pub memory: Option<u64>,
    /// The seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop at this vtime; without it the guest runs until it powers off, or Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub duration_ns: Option<u64>,
    /// Command to run in the guest before it powers off
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
    /// Switches that only tests use
    #[command(flatten)]
    pub hidden: Hidden,
}

/// `everett init`
#[derive(Debug, Args)]
#[command(
    after_help = "A name that ends in .yaml or .yml is a compose file, a path is a program (or a folder with a compose file or an \
                        OCI layout), a word with a colon is an image, any other word a Debian package. docs/guide.md has the rules."
)]
pub struct Init {
    /// A compose file, an image, a Debian package or a program [default: the compose file in the current folder]
    pub subject: Option<String>,
    /// Container image, as in a world file: a name, docker://…, oci:…, an archive
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["subject", "package"])]
    pub image: Option<String>,
    /// Debian package
    #[arg(long, value_name = "PACKAGE", conflicts_with = "subject")]
    pub package: Option<String>,
    /// World file to write [default: world.toml in the current folder, or beside the compose file]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Number of machines with the server [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=NODES_MAX as i64))]
    pub nodes: Option<u16>,
    /// TCP port at which the server serves
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Do not boot a machine to find out how an unknown package starts its server and at which port a server listens
    #[arg(long)]
    pub no_boot: bool,
    /// Arguments of a program
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

/// A timeline.
#[derive(Debug, Clone, Args)]
pub struct Timeline {
    /// The world file [default: world.toml, else a compose file, in the current folder]
    pub world: Option<PathBuf>,
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The seed of the boot, up to ready [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub boot_seed: Option<u64>,
    /// Start at power-on instead of at the stored boot
    #[arg(long)]
    pub cold: bool,
    /// Start from this saved moment of the timeline
    #[arg(long, value_name = "MOMENT", conflicts_with = "cold")]
    pub from: Option<String>,
    /// Fault plan to carry out (JSON lines; see docs/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Switches that only tests use
    #[command(flatten)]
    pub hidden: Hidden,
}

/// `everett moment …`
#[derive(Debug, Subcommand)]
pub enum Moment {
    /// Run a timeline to a vtime and save the world there
    Save {
        /// The timeline
        #[command(flatten)]
        place: Place,
        /// Name of the moment [default: made of the seed and the vtime]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// List the saved moments of a world
    List {
        /// The world file
        world: PathBuf,
    },
    /// Check every byte of a saved moment and describe it
    Show {
        /// The world file
        world: PathBuf,
        /// Its name
        moment: String,
    },
    /// Restore a saved moment into machines and check that they equal those that were saved
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
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Vtime after ready
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub at: u64,
    /// Start from this saved moment of the timeline
    #[arg(long, value_name = "MOMENT")]
    pub from: Option<String>,
    /// Fault plan to carry out (JSON lines; see docs/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
}

/// `everett run`
#[derive(Debug, Args)]
pub struct Run {
    /// The timeline
    #[command(flatten)]
    pub timeline: Timeline,
    /// Vtime of the workload, from ready on [default: until it is done]
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, display_order = 3)]
    pub duration_ns: Option<u64>,
    /// End when the workload is done, at the latest 10 minutes of vtime after ready: the default without --for
    ///
    /// The workload is done when the drivers have ended, each driver and anytime_ command of a test template has ended
    /// at least once, and the fault plan is carried out. A driver with repeat = true never ends; use --for with it.
    #[arg(long, conflicts_with = "duration_ns", display_order = 3)]
    pub until_done: bool,
    /// Write run.json, events.jsonl, trail.jsonl, wire.jsonl, wire.pcapng and consoles into this new folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Instruments
    #[command(flatten)]
    pub instruments: Instruments,
}

/// Instruments that observe a timeline without changing it.
#[derive(Debug, Clone, Default, Args)]
pub struct Instruments {
    /// Report stores to these bytes of a node (w), loads (r), or both (rw): n1:0xffffffff82a12340+8:w
    #[arg(long, value_name = "NODE:ADDRESS+BYTES:rw")]
    pub watch: Vec<Watched>,
    /// New file for the executed edges (branches) of programs and kernel (JSON lines)
    #[arg(long, value_name = "FILE")]
    pub edges: Option<PathBuf>,
}

/// `everett plan`
#[derive(Debug, Args)]
pub struct Plan {
    /// The world file; its `[faults]` table sets kinds, rates and strengths
    pub world: PathBuf,
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Vtime after ready
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "20s")]
    pub duration_ns: u64,
}

/// `everett verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// The timeline
    #[command(flatten)]
    pub timeline: Timeline,
    /// Vtime of the workload, from ready on
    #[arg(
        long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, default_value = "20s",
        display_order = 3
    )]
    pub duration_ns: u64,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub runs: u32,
    /// Runs at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// `everett explore`
#[derive(Debug, Args)]
#[command(
    after_help = "Without --budget and --branches the exploration runs until Ctrl-C. An existing run directory of the same \
                        world and seed is resumed. Where the world file does not set in_flight and checks, both follow \
                        from --branches or --budget; see docs/exploring.md."
)]
pub struct Explore {
    /// The world file, with its `[explore]`, `[faults]` and `[[property]]` tables [default: world.toml, else a compose file,
    /// in the current folder]
    pub world: Option<PathBuf>,
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The run directory [default: run in the current folder]
    #[arg(short, long, value_name = "RUN", default_value = "run", hide_default_value = true)]
    pub output: PathBuf,
    /// End after this much host time
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// End after this number of branches
    #[arg(long, value_name = "N")]
    pub branches: Option<u64>,
    /// End with the first branch on which something is found
    #[arg(long)]
    pub until_found: bool,
    /// Branches at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Memory for moments [default: a quarter of the host's]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
    pub memory: Option<u64>,
    /// Print lines instead of the live view
    ///
    /// Lines are also printed if standard input or output is no terminal, and with --json.
    #[arg(long)]
    pub plain: bool,
    /// Host time for replaying findings at the end, so that the report has their whole timelines; 0s replays none
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::parse_duration_ns)]
    pub record: u64,
    /// Strategy that chooses where branches continue, instead of the world file's: uniform, novelty or pct
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<StrategyKind>,
    /// Switches that only tests use
    #[command(flatten)]
    pub hidden: Hidden,
    /// First branch that is not begun; the exploration then waits for Ctrl-C
    #[arg(long, hide = true, value_name = "N")]
    pub hold_from: Option<u64>,
}

/// `everett findings`
#[derive(Debug, Args)]
pub struct Findings {
    /// The run directory
    pub run: PathBuf,
    /// List all findings, not only the first ones
    #[arg(long)]
    pub all: bool,
}

/// `everett show`
#[derive(Debug, Args)]
pub struct Show {
    /// The run directory
    pub run: PathBuf,
    /// Number of a finding, or of a branch as in b17
    pub id: Option<Id>,
    /// Print all evidence of a finding, and all findings of a run
    #[arg(long)]
    pub all: bool,
    /// Print one digest of the tree, its findings and its coverage
    #[arg(long, conflicts_with = "id")]
    pub digest: bool,
    /// Include only the first N branches in the digest
    #[arg(long, value_name = "N", requires = "digest")]
    pub branches: Option<u64>,
}

/// `everett replay`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 1 if a finding shows, 0 if a branch has none or a regression file's finding does not show, 2 if \
                            the run leaves the recorded trail or a recorded finding does not show."
)]
pub struct Replay {
    /// The run directory, a finding file or a regression file
    pub run: PathBuf,
    /// Number of a finding, or of a branch as in b17
    pub id: Option<Id>,
    /// The world file of a regression file that has been moved away from it
    #[arg(long, value_name = "PATH")]
    pub world: Option<PathBuf>,
    /// Stop at this vtime, counted from power-on
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub until: Option<u64>,
    /// Print only how it ended
    #[arg(short, long)]
    pub quiet: bool,
    /// Keep all lines and messages of a finding's timeline in the run directory, for its report
    #[arg(long)]
    pub record: bool,
    /// Instruments
    #[command(flatten)]
    pub instruments: Instruments,
}

/// `everett shrink`
#[derive(Debug, Args)]
pub struct Shrink {
    /// The run directory
    pub run: PathBuf,
    /// Number of the finding
    pub id: u32,
    /// End after this much host time with the best plan so far; the regression file says that it is not minimal
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// Runs at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Regression file to write [default: in the run directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `everett causality`
#[derive(Debug, Args)]
#[command(
    after_help = "Futures start at vtimes before the finding, with its past and random streams and faults of their own. The share that \
                        shows the finding is its likelihood there. The result is causality-ID.json in the run directory, which \
                        the report shows. docs/causality.md says more."
)]
pub struct Causality {
    /// The run directory
    pub run: PathBuf,
    /// Number of the finding
    pub id: u32,
    /// End after this much host time with the narrowest interval so far
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub budget: Option<u64>,
    /// End after this number of futures with the narrowest interval so far
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=FUTURES_MAX))]
    pub branches: u64,
    /// Keep the finding's faults in all futures; only random streams differ
    #[arg(long)]
    pub same_faults: bool,
    /// Probability in percent that a named step may be the wrong one
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = parse_error)]
    pub error: f64,
    /// Futures at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Memory for moments [default: a quarter of the host's]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size_bytes)]
    pub memory: Option<u64>,
}

/// Parses a probability of an error in percent.
fn parse_error(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if (0.01..=50.0).contains(&percent) => Ok(percent),
        _ => Err("an error is a number from 0.01 to 50, in percent".to_owned()),
    }
}

/// `everett report`
#[derive(Debug, Args)]
#[command(
    after_help = "Without --html, --data, --all and -o it prints what matters most, on one screen. docs/report.md describes the page, \
                        docs/report-data.md the data."
)]
pub struct Report {
    /// The run directory
    pub run: PathBuf,
    /// Older runs of the world, the oldest first: what is new, what is gone, and how sure that is
    ///
    /// The word history stands for the newest 32 older runs of the world that `everett runs` lists and that are still
    /// there. A folder of that name is ./history.
    #[arg(long, value_name = "OLDER", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// Write one HTML page [default: report.html in the run directory]
    #[arg(long)]
    pub html: bool,
    /// Write the data of the page as JSON [default: print]
    #[arg(long, conflicts_with = "html")]
    pub data: bool,
    /// Print everything as Markdown
    #[arg(long, conflicts_with_all = ["html", "data"])]
    pub all: bool,
    /// Confidence in percent at which a finding counts as gone
    #[arg(long, value_name = "PERCENT", default_value_t = 94.0, value_parser = parse_confidence)]
    pub confidence: f64,
    /// Files of executed edges that `run` and `replay` wrote
    #[arg(long, value_name = "FILE")]
    pub edges: Vec<PathBuf>,
    /// File for --html or --data; without them, folder for report.md and report.json
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// Parses a confidence in percent.
fn parse_confidence(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if (1.0..=99.9999).contains(&percent) => Ok(percent),
        _ => Err("a confidence is a number from 1 to 99.9999, in percent".to_owned()),
    }
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
            format!("\"{text}\" is neither a finding's number, as in 1, nor a branch's, as in b17")
        })
    }
}

/// `everett demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// The seed
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub seed: u64,
    /// Run directory [default: everett-demo in the current folder, or everett-demo-2 and so on]
    #[arg(short, long, value_name = "RUN")]
    pub output: Option<PathBuf>,
}

/// How Everett's own CPU executes guest code. Timelines do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SoftMode {
    /// Translate hot code to host code
    #[default]
    Translate,
    /// Interpret all code
    Interp,
    /// Do both, compare registers and memory continuously, and stop at a difference; for tests of Everett itself
    Lockstep,
}

/// How the engine executes. The hidden switches break determinism or disturb caches on purpose; tests use them to show
/// that verification can fail.
#[derive(Debug, Clone, Default, Args)]
pub struct Hidden {
    /// How Everett's own CPU executes guest code; timelines do not depend on it
    #[arg(long, value_name = "MODE", default_value = "translate")]
    pub soft_mode: SoftMode,
    /// Leak to plant, which verification must find
    #[arg(long, hide = true, value_name = "LEAK")]
    pub plant: Option<Leak>,
    /// Size of the soft engine's TLB, in entries
    #[arg(long, hide = true, value_name = "N")]
    pub tlb_entries: Option<usize>,
    /// Size of the soft engine's block cache, in blocks
    #[arg(long, hide = true, value_name = "N")]
    pub block_cache: Option<usize>,
    /// Seed of the instants at which every engine cache is dropped
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

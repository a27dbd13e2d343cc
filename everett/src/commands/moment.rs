//! `everett moment`: saved moments, i.e. snapshots of a world from which runs can start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units::{self, Vtime, show_bytes, show_duration_ns};
use everett_session::machines::EngineOptions;
use everett_session::machines::engines::{Asked, Engine, EngineChoice};
use everett_session::run::booted::{Booted, waiting};
use everett_session::world::conversation::Phase;
use everett_session::world::moments::{MomentFolder, Recorded, Stored, check_name};
use everett_session::world::timeline::Timeline;
use everett_snapshot::moment::MomentHeader;
use everett_streams::Seed;
use everett_vmm::machine::Until;
use everett_world_file::World;
use serde::Serialize;

use super::Outcome;
use super::common::{self, Prepared};
use super::engine_choice::EngineArgs;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};

/// `everett moment …`
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// Run a timeline up to a vtime and save the world there
    Save {
        /// The timeline
        #[command(flatten)]
        place: TimelinePoint,
        /// Name of the moment [default: built from the seed and the vtime]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Engine
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// List the saved moments of a world
    List {
        /// The world file
        world: PathBuf,
    },
    /// Verify every byte of a saved moment and describe it
    Show {
        /// The world file
        world: PathBuf,
        /// The name of the moment
        moment: String,
    },
    /// Restore a saved moment into machines, and check that they equal the saved ones
    Restore {
        /// The world file
        world: PathBuf,
        /// The name of the moment
        moment: String,
        /// Engine
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Drop a saved moment
    Drop {
        /// The world file
        world: PathBuf,
        /// The name of the moment
        moment: String,
    },
}

/// Arguments that name a vtime of a timeline.
#[derive(Debug, Clone, clap::Args)]
pub struct TimelinePoint {
    /// The world file
    pub world: PathBuf,
    /// The seed [default: the world file's, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<Seed>,
    /// Vtime to save, counted from the time when all nodes are ready
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub at: u64,
    /// Start from this saved moment of the timeline
    #[arg(long, value_name = "MOMENT")]
    pub from: Option<String>,
    /// Fault plan (JSON lines; see docs/faults.md)
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
}

/// Interval at which progress is shown, in nanoseconds of vtime.
const STEP_NS: u64 = 20_000_000;

/// Engine for subcommands that execute no guest code.
const SOFT: Asked = Asked { engine: EngineChoice::Soft, allow_inexact: false, patience: Duration::ZERO };

#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    name: &'a str,
    /// Label of the moment: the timeline's path and the vtime. `name` is the name under which it is saved.
    moment: &'a str,
    seed: Seed,
    vtime_ns: u64,
    /// Number of memory pages and disk blocks that differ from *ready*, the moment when all services are up.
    /// `distinct_pages` counts how many different contents they have.
    pages: u64,
    distinct_pages: u64,
    file_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    match args {
        Args::Save { place, name, engine } => save(ui, engine.asked(), place, name.as_deref())?,
        Args::List { world } => return list(ui, &open(ui, world)?.moment_folder),
        Args::Show { world, moment } => show(ui, world, moment)?,
        Args::Restore { world, moment, engine } => return restore(ui, engine.asked(), world, moment),
        Args::Drop { world, moment } => {
            open(ui, world)?.moment_folder.drop_saved(moment)?;
            ui.say(format!("dropped {moment}"))?;
        }
    }
    Ok(Outcome::Fine)
}

fn open(ui: &Ui, world: &Path) -> anyhow::Result<Prepared> {
    common::prepare(ui, common::load(world)?, EngineOptions::default(), &Interrupt::install()?)
}

/// Returns the label of a moment: the timeline's path and the vtime.
fn place_name(prepared: &Prepared, seed: Seed, vtime_ns: u64) -> String {
    format!("{}@{vtime_ns}", prepared.identity.path(seed))
}

/// Chooses the engine. Refuses an inexact engine: its results must be marked as inexact, and the file of a moment has
/// no place for a mark.
fn exact_engine(asked: Asked, world: &World) -> anyhow::Result<Engine> {
    let engine = Engine::choose(asked, world.clock, world.cpu)?;
    if !engine.exact {
        anyhow::bail!("--allow-inexact: a saved moment cannot carry the mark inexact; use --engine soft");
    }
    Ok(engine)
}

fn save(ui: &Ui, asked: Asked, place: &TimelinePoint, name: Option<&str>) -> anyhow::Result<()> {
    if let Some(name) = name {
        check_name(name).map_err(anyhow::Error::msg)?;
    }
    let interrupt = Interrupt::install()?;
    let world = common::load(&place.world)?;
    let plan = common::plan(place.faults.as_deref(), &world)?;
    let engine = exact_engine(asked, &world)?;
    let options = engine.options(EngineOptions::default());
    let mut prepared = common::prepare(ui, world, options, &interrupt)?;
    common::announce_engine(ui, &engine)?;
    let booted = prepared.start_stored(ui, place.from.as_deref(), &interrupt)?;
    prepared.apply_faults(ui, plan, &interrupt)?;
    let seed = prepared.seed(place.seed);
    let default = format!("seed{seed}-{}", exact(place.at));
    let name = name.unwrap_or(&default);
    prepared.moment_folder.check_free(name)?;
    let mut timeline = prepared.launcher.start(seed)?;
    let stored = run_to(ui, &mut timeline, place.at, &booted, &interrupt)?;
    let label = place_name(&prepared, seed, stored.moment.vtime());
    let header = prepared.moment_folder.save(name, &label, &stored, seed, &mut waiting(ui, &interrupt))?;
    tell(ui, name, &header, None)
}

/// Formats a duration exactly, in the largest unit that gives a whole number.
fn exact(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let unit = units.into_iter().find(|(_, factor)| ns.is_multiple_of(*factor));
    unit.map_or_else(|| format!("{ns}ns"), |(name, factor)| format!("{}{name}", ns / factor))
}

/// Runs the timeline to `at_ns` after *ready*, and takes a moment there.
fn run_to(
    ui: &Ui,
    timeline: &mut Timeline,
    at_ns: u64,
    booted: &Booted,
    interrupt: &Interrupt,
) -> anyhow::Result<Stored> {
    let bar = RunBar::new(ui, at_ns);
    // The root moment, from which all branches fork, can lie slightly later than *ready*, because a machine stops only
    // between two instructions.
    let root_ns = booted.ready.moment.vtime();
    let ready_ns = booted.ready.session.ready_ns().unwrap_or(root_ns);
    let end_ns = ready_ns.saturating_add(at_ns).max(root_ns);
    if timeline.vtime() > end_ns {
        anyhow::bail!(
            "--from: this moment lies later than {} after ready; choose an earlier one, or a later --at",
            show_duration_ns(at_ns)
        );
    }
    let mut recorded = Recorded::new(timeline.world().nodes().len());
    while timeline.vtime() < end_ns {
        let next_ns = end_ns.min(timeline.vtime().saturating_add(STEP_NS));
        timeline.run(&Until::vtime(next_ns));
        recorded.take(timeline)?;
        let vtime_ns = timeline.vtime();
        bar.at(vtime_ns.saturating_sub(ready_ns), timeline.icount());
        if interrupt.wanted() {
            anyhow::bail!("interrupted at {} s of vtime", Vtime(vtime_ns));
        }
        if timeline.phase() == Phase::Broken {
            anyhow::bail!("the machine stopped at {} s of vtime; `everett run` shows why", Vtime(vtime_ns));
        }
    }
    bar.clear();
    recorded.take(timeline)?;
    let (events, consoles) = recorded.into_parts();
    Ok(Stored::of(timeline, &booted.pool, events, consoles))
}

fn list(ui: &Ui, moment_folder: &MomentFolder) -> anyhow::Result<Outcome> {
    let (found, broken) = moment_folder.list()?;
    if found.is_empty() && broken.is_empty() {
        ui.say("no moment of this world and image is saved")?;
    }
    for summary in &found {
        tell(ui, &summary.name, &summary.header, None)?;
    }
    for line in &broken {
        ui.say(style::paint(style::BAD, line))?;
    }
    Ok(if broken.is_empty() { Outcome::Fine } else { Outcome::Found })
}

/// Reads a saved moment. Also returns the prepared world, whose timelines then start from this moment.
fn read(ui: &Ui, asked: Asked, world: &Path, name: &str) -> anyhow::Result<(Prepared, Arc<Stored>)> {
    let interrupt = Interrupt::install()?;
    let world = common::load(world)?;
    let options = exact_engine(asked, &world)?.options(EngineOptions::default());
    let mut prepared = common::prepare(ui, world, options, &interrupt)?;
    let booted = prepared.start_stored(ui, Some(name), &interrupt)?;
    let stored = prepared.launcher.from.clone().unwrap_or(booted.ready);
    Ok((prepared, stored))
}

fn show(ui: &Ui, world: &Path, name: &str) -> anyhow::Result<()> {
    let (prepared, stored) = read(ui, SOFT, world, name)?;
    let header = prepared.moment_folder.header(name)?;
    tell(ui, name, &header, Some(stored.digest))?;
    let path = prepared.moment_folder.folder();
    let ready_ns = stored.session.ready_ns().unwrap_or(0);
    let after = show_duration_ns(stored.moment.vtime().saturating_sub(ready_ns));
    ui.say(format!("    {after} after ready; {} events before it", stored.events.len()))?;
    let counted = prepared.launcher.world.clock.mode().units();
    for ((node, phase), machine) in stored.session.phases().zip(&stored.moment.machines) {
        let disks = machine.disks().iter().map(|disk| disk.blocks.len()).sum::<u64>();
        let (pages, icount) = (machine.memory().delta_pages().count(), machine.icount());
        ui.say(format!(
            "    {node}: {phase:?}; {icount} {counted} since power-on; {pages} pages of memory and {disks} blocks of disks \
             of its own"
        ))?;
    }
    ui.say(style::paint(style::FAINT, format!("    in {}", path.display())))?;
    Ok(())
}

fn restore(ui: &Ui, asked: Asked, world: &Path, name: &str) -> anyhow::Result<Outcome> {
    let (prepared, stored) = read(ui, asked, world, name)?;
    let header = prepared.moment_folder.header(name)?;
    let clock = Stopwatch::start();
    let mut timeline = prepared.launcher.resume(&stored)?;
    let seconds = clock.seconds();
    // Compares the pages themselves; the digest covers only their hashes.
    let nodes = timeline.world().nodes().iter().zip(&stored.moment.machines);
    let different = nodes.map(|(node, then)| (node, node.machine().differing_page(then)));
    let different =
        different.filter_map(|(node, page)| Some((node.machine().name().to_owned(), page?))).next();
    tell(ui, name, &header, Some(timeline.digest()))?;
    let Some((node, page)) = different else {
        let line = format!("    restored in {:.1} ms; the world equals the saved one", seconds * 1e3);
        ui.say(style::paint(style::GOOD, line))?;
        return Ok(Outcome::Fine);
    };
    let line =
        format!("    the restored world differs from the saved one: page {page:#x} of {node}'s memory");
    ui.say(style::paint(style::BAD, line))?;
    Ok(Outcome::Found)
}

fn tell(
    ui: &Ui,
    name: &str,
    header: &MomentHeader,
    digest: Option<everett_vmm::Digest>,
) -> anyhow::Result<()> {
    let info = &header.info;
    ui.say(format!(
        "{}  {}  {} pages, {}{}",
        style::paint(style::HEAD, name),
        printable(&info.label),
        header.delta_pages,
        show_bytes(header.file_bytes),
        digest.map(|digest| format!(", digest {digest:#}")).unwrap_or_default(),
    ))?;
    ui.record(&Record {
        kind: "moment",
        name,
        moment: &info.label,
        seed: Seed::new(info.seed),
        vtime_ns: info.vtime,
        pages: header.delta_pages,
        distinct_pages: header.distinct_pages,
        file_bytes: header.file_bytes,
        digest: digest.map(|digest| format!("{digest:#}")),
    })?;
    Ok(())
}

//! `everett run`: runs one timeline.

use std::path::PathBuf;

use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units::{self, show_duration_ns};
use everett_session::explore::abstractions::Abstractions;
use everett_session::machines::EngineKind;
use everett_session::machines::engines::Engine;
use everett_session::output::run_folder::RunFolder;
use everett_session::run::booted;
use everett_session::run::drive::{Ended, UNTIL_DONE_NS_MAX, Watch as _, drive, drive_until_done};
use everett_session::world::conversation::Phase;
use everett_session::world::identity::MACHINE_VERSION;
use everett_session::world::timeline::Timeline;
use everett_streams::Seed;
use everett_world_file::{Clock, World};
use serde::Serialize;

use super::Outcome;
use super::common::{self, Prepared};
use super::engine_choice::EngineArgs;
use super::engine_options::engine_options;
use super::instruments::{self, EdgeFile, Instruments};
use super::judge::Judge;
use super::profile::{self, Profiler};
use super::profile_args::ProfileArgs;
use super::reporter::{FaultCounts, Reporter};
use super::timeline::TimelineArgs;
use crate::ui::{Ui, printable, style};

/// `everett run`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The timeline
    #[command(flatten)]
    pub timeline: TimelineArgs,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Vtime that the workload runs after all nodes are ready [default: until the workload is done]
    #[arg(long = "for", value_name = "DURATION", value_parser = units::parse_duration_ns, display_order = 3)]
    pub duration_ns: Option<u64>,
    /// End when the workload is done, or 10 minutes of vtime after ready; the default without --for
    ///
    /// The workload is done when all drivers have ended and the fault plan has been carried out. In a test template,
    /// each driver and anytime_ command must have ended at least once. A driver with repeat = true never ends: give
    /// --for with it.
    #[arg(long, conflicts_with = "duration_ns", display_order = 3)]
    pub until_done: bool,
    /// New folder for run.json, events.jsonl, trail.jsonl, wire.jsonl, wire.pcapng and the consoles
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Instruments
    #[command(flatten)]
    pub instruments: Instruments,
    /// Profile
    #[command(flatten)]
    pub profile: ProfileArgs,
}

/// Result of a timeline: the last line of `--json`, and `run.json`.
#[derive(Debug, Serialize)]
struct Summary {
    kind: &'static str,
    machine_version: &'static str,
    path: String,
    identity: String,
    image: String,
    seed: Seed,
    engine: EngineKind,
    /// Clock mode, which gives the unit of `instructions` and `executed`: instructions in `insn`, conditional
    /// branches in `branch`, exits in `exit`.
    clock: Clock,
    exact: bool,
    vtime_ns: u64,
    ready_ns: Option<u64>,
    instructions: u64,
    /// Part of `instructions` that this run executed itself, i.e. after the moment from which it started.
    executed: u64,
    trail: String,
    trail_points: usize,
    findings: u64,
    #[serde(flatten)]
    faults: FaultCounts,
    whole: bool,
    /// True if the run was to last until the workload was done, but reached its time limit first.
    not_done: bool,
    host_seconds: f64,
    mips: f64,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let world = common::world(&args.timeline)?;
    if args.duration_ns.is_none() {
        check_that_it_ends(&world)?;
    }
    let engine = Engine::choose(args.engine.asked(), world.clock, world.cpu)?;
    let plan = common::plan(args.timeline.faults.as_deref(), &world)?;
    let abstractions = Abstractions::new(&world)?;
    let judged = plan.clone().unwrap_or_default();
    let options = engine.options(engine_options(&args.timeline.hidden)?);
    args.output.as_deref().map_or(Ok(()), RunFolder::check_free)?;
    let profile = profile::Asked::new(&args.profile, &engine)?;
    let interrupt = Interrupt::install()?;
    instruments::check(&args.instruments, &world, &engine)?;
    let edges = EdgeFile::new(&args.instruments)?;
    let mut prepared = common::prepare(ui, world, options, &interrupt)?;
    instruments::attach(&args.instruments, &mut prepared.launcher)?;
    common::announce_engine(ui, &engine)?;
    let failed = prepared.start_as_asked(ui, &args.timeline, args.duration_ns, &interrupt)?;
    if failed.is_none() {
        prepared.apply_faults(ui, plan, &interrupt)?;
    }
    let seed = prepared.seed(args.timeline.seed);
    let Prepared { launcher, identity, image, .. } = prepared;

    let clock = Stopwatch::start();
    let boot_seconds = failed.as_ref().map_or(0.0, |failed| failed.seconds);
    let is_recorded = args.output.is_some()
        || !args.instruments.watch.is_empty()
        || args.instruments.edges.is_some()
        || profile.is_some();
    let mut timeline = match failed {
        Some(failed) if !is_recorded => failed.into_timeline(seed),
        Some(failed) => {
            let text = format!("{}; Everett boots the world again to record the boot", failed.error);
            ui.say(style::paint(style::FAINT, printable(&text)))?;
            launcher.start(seed)?
        }
        None => launcher.start(seed)?,
    };
    let folder = args.output.as_deref();
    let ports = timeline.world_mut().wire().ports().to_vec();
    let folder = folder.map(|folder| RunFolder::create(folder, &launcher.world, &ports)).transpose()?;
    timeline.world_mut().capture(folder.is_some());
    // A run that does not start from a moment starts at power-on. Its count includes the boot, even a failed boot.
    let started = if launcher.from.is_some() { timeline.icount() } else { 0 };
    let judge = Judge::new(&abstractions, &judged)?;
    let mut reporter = Reporter::new(ui, folder, interrupt, &launcher.world, args.duration_ns, judge);
    reporter.edges = edges;
    reporter.profiler = profile.map(|asked| Profiler::begin(asked, &launcher, &mut timeline)).transpose()?;
    let ended = match args.duration_ns {
        Some(duration_ns) => drive(&mut timeline, duration_ns, &mut reporter),
        None => drive_until_done(&mut timeline, &mut reporter),
    };
    let ended = ended.map_err(|error| booted::named(error, &launcher))?;
    end_of_wire(ui, &mut timeline, &mut reporter)?;
    reporter.over(timeline.vtime(), ended == Ended::Whole && timeline.phase() == Phase::Done)?;
    reporter.finish();
    let host_seconds = clock.seconds() + boot_seconds;
    if let Some(edges) = reporter.edges.take() {
        edges.write(ui, &launcher)?;
    }
    if let Some(profiler) = reporter.profiler.take() {
        profiler.write(ui, &mut timeline, &identity.path(seed))?;
    }
    let findings = reporter.judge.findings(timeline.findings());
    for (number, node) in timeline.world().nodes().iter().enumerate() {
        if !node.is_on() && timeline.findings() > 0 {
            reporter.show_console(number)?;
        }
    }

    let summary = Summary {
        kind: "end",
        machine_version: MACHINE_VERSION,
        path: identity.path(seed),
        identity: identity.hex(),
        image,
        seed,
        engine: engine.kind,
        clock: engine.clock,
        exact: engine.exact,
        vtime_ns: timeline.vtime(),
        ready_ns: timeline.ready_ns(),
        instructions: timeline.icount(),
        executed: timeline.icount().saturating_sub(started),
        trail: format!("{:#}", timeline.trail().digest()),
        trail_points: timeline.trail().points().len(),
        findings,
        faults: reporter.faults,
        whole: ended == Ended::Whole,
        not_done: timeline.was_not_done(),
        host_seconds,
        mips: timeline.icount().saturating_sub(started) as f64 / 1e6 / host_seconds.max(1e-9),
    };
    common::tell_bridged(ui, &timeline)?;
    ui.record(&summary)?;
    tell_end(ui, &summary)?;
    common::warn_of_engine(ui, &engine)?;
    if let Some(folder) = reporter.folder {
        folder.finish(&summary)?;
    }
    if ended == Ended::Cut {
        match summary.ready_ns {
            None => anyhow::bail!("interrupted before the world was ready, {}", timeline.boot_state()),
            Some(_) => anyhow::bail!("interrupted at {} of vtime", show_duration_ns(summary.vtime_ns)),
        }
    }
    Ok(if summary.findings > 0 { Outcome::Found } else { Outcome::Fine })
}

/// Returns an error if the workload of a world never ends.
fn check_that_it_ends(world: &World) -> anyhow::Result<()> {
    let mut drivers = world.workload.drivers.iter();
    match drivers.find(|driver| driver.repeat) {
        None => Ok(()),
        Some(driver) => anyhow::bail!(
            "{}: the driver \"{}\" has repeat = true and never ends; give a duration, such as --for 20s",
            world.file.display(),
            driver.name
        ),
    }
}

/// Records the fate of the frames that are still in flight at the end. Prints how many moves (outcomes of a frame) are
/// missing from `wire.jsonl`, and how many frames are missing from `wire.pcapng`.
fn end_of_wire(ui: &Ui, timeline: &mut Timeline, reporter: &mut Reporter<'_>) -> anyhow::Result<()> {
    let (end_ns, frames) = (timeline.vtime(), timeline.world_mut().take_captured());
    let frames_lost = timeline.world().captured_lost();
    let wire = timeline.world_mut().wire();
    wire.close_log(end_ns);
    reporter.wire(&wire.take_steps(), &frames)?;
    let lost = [(wire.steps_lost(), "moves", "wire.jsonl"), (frames_lost, "frames", "wire.pcapng")];
    for (count, what, file) in lost.into_iter().filter(|&(count, ..)| count > 0 && reporter.folder.is_some())
    {
        ui.say(style::paint(
            style::BAD,
            format!("{file} lacks {count} {what}, because too many came at once"),
        ))?;
    }
    Ok(())
}

fn tell_end(ui: &Ui, summary: &Summary) -> anyhow::Result<()> {
    ui.say(format!(
        "{}  {} of vtime, {}",
        style::paint(style::HEAD, &summary.path),
        show_duration_ns(summary.vtime_ns),
        common::executed(summary.clock, summary.executed, summary.host_seconds),
    ))?;
    ui.say(format!(
        "trail {} of {} points",
        style::paint(style::HEAD, &summary.trail),
        summary.trail_points
    ))?;
    let FaultCounts { faults, disk_losses, disk_losses_of_data } = summary.faults;
    if faults > 0 {
        let disks = match disk_losses {
            0 => String::new(),
            _ => format!(
                "; disks lost power {disk_losses} times, {disk_losses_of_data} times with unflushed sectors"
            ),
        };
        ui.say(format!("{faults} {}{disks}", if faults == 1 { "fault" } else { "faults" }))?;
    }
    if summary.not_done {
        ui.say(format!(
            "the workload was not done {} after ready, so Everett ended it; give it more time with --for",
            show_duration_ns(UNTIL_DONE_NS_MAX)
        ))?;
    }
    match summary.findings {
        0 => ui.say(style::paint(style::GOOD, "nothing found"))?,
        1 => ui.say(style::paint(style::BAD, "1 finding"))?,
        n => ui.say(style::paint(style::BAD, format!("{n} findings")))?,
    }
    Ok(())
}

//! `everett replay`: runs a branch of a run directory or of a finding file again and compares it with its record. It
//! also runs regression files.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use everett_cpu::Edge;
use everett_explorer::run::Record;
use everett_guest_image::Cache;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::units::{self, Vtime, show_duration_ns};
use everett_session::explore::path_runner::{Interrupted, PathRunner, Watch, ended_early};
use everett_session::explore::regression::Regression;
use everett_session::explore::replay::{Recorded, Replayed, replay};
use everett_session::explore::setting::Setting;
use everett_session::explore::shrink::Wanted;
use everett_session::explore::witness::HitWithEvidence;
use everett_session::finding_file::{self, ImagesTo};
#[cfg(feature = "inside")]
use everett_session::machines::EngineKind;
use everett_session::machines::EngineOptions;
use everett_session::machines::engines::Engine;
use everett_session::output::show;
#[cfg(feature = "inside")]
use everett_session::probes::limits::PROBES_MAX;
#[cfg(feature = "inside")]
use everett_session::probes::probe::Probe;
use everett_session::world::event::{Event, What};
use everett_vmm::wire::log::FrameStep;
use serde::Serialize;

use super::Outcome;
use super::common;
use super::engine_choice::EngineArgs;
use super::exploration::{self, Run};
use super::id::Id;
#[cfg(feature = "inside")]
use super::inside::debug_files::DebugFilesArgs;
use super::instruments::{self, EdgeFile, Instruments};
use super::recording::{Key, Recording};
use crate::ui::progress::RunBar;
use crate::ui::{Ui, printable, style};

/// `everett replay`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 1 if a finding shows, 0 if none shows, 2 if the replay leaves the recorded trail. It is also 2 if the \
                  recorded finding of a run directory or of a finding file does not show."
)]
pub struct Args {
    /// The run directory, a finding file or a regression file
    pub run: PathBuf,
    /// Number of a finding such as 1, or of a branch such as b17
    pub id: Option<Id>,
    /// The world file of a regression file, if one of the two was moved
    #[arg(long, value_name = "PATH")]
    pub world: Option<PathBuf>,
    /// Stop at this vtime, counted from power-on
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    pub until: Option<u64>,
    /// Print only the result
    #[arg(short, long)]
    pub quiet: bool,
    /// Record all lines and messages of a finding's timeline in the run directory, for the report
    #[arg(long)]
    pub record: bool,
    /// Print values at a place of a program among the lines, as everett print does; can be repeated
    #[cfg(feature = "inside")]
    #[arg(long, value_name = "PROBE", value_parser = Probe::parse)]
    pub print: Vec<Probe>,
    /// Debug files
    #[cfg(feature = "inside")]
    #[command(flatten)]
    pub debug: DebugFilesArgs,
    /// Instruments
    #[command(flatten)]
    pub instruments: Instruments,
    /// Engine
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Serialize)]
struct Summary<'a> {
    kind: &'static str,
    path: String,
    vtime_ns: u64,
    trail: Option<String>,
    same: bool,
    found: Vec<&'a str>,
    host_seconds: f64,
}

pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    if args.run.is_file() {
        return match finding_file::is_finding_file(&args.run)? {
            true => exported(ui, args, &interrupt),
            false => regression(ui, args, &interrupt),
        };
    }
    if args.world.is_some() {
        bail!(
            "--world: {} is not a regression file; a run directory names its world file",
            args.run.display()
        );
    }
    let Some(id) = args.id else {
        bail!("{}: give the number of a finding, such as 1, or of a branch, such as b17", args.run.display());
    };
    branch(ui, args, &args.run, id, &interrupt)
}

/// Replays a finding file. The file is unpacked into a temporary folder; only its images stay in the cache.
fn exported(ui: &Ui, args: &Args, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let file = args.run.display();
    if args.world.is_some() {
        bail!("--world: {file} is a finding file, which contains its world");
    }
    if args.record {
        bail!(
            "--record: {file} is a finding file, which replay does not change; unpack it with everett runs import"
        );
    }
    let finding = finding_file::about(&args.run)?.finding;
    if let Some(id) = args.id
        && !matches!(id, Id::Finding(id) if id == finding)
    {
        bail!("{file}: a finding file has one finding; leave out the number");
    }
    let cache = Cache::of_user()?;
    let place = tempfile::tempdir_in(cache.temporary()).or_else(|_| tempfile::tempdir())?;
    finding_file::unpack(&args.run, place.path(), place.path(), ImagesTo::Cache(&cache))?;
    branch(ui, args, place.path(), Id::Finding(finding), interrupt)
        .with_context(|| args.run.display().to_string())
}

/// Adds the probes of `--print`.
#[cfg(feature = "inside")]
fn add_probes(args: &Args, setting: &mut Setting, engine: &Engine) -> anyhow::Result<()> {
    if args.print.is_empty() {
        return Ok(());
    }
    if args.print.len() > PROBES_MAX {
        bail!("--print: at most {PROBES_MAX} probes can be given");
    }
    if engine.kind == EngineKind::Kvm {
        bail!("--print: /dev/kvm has no breakpoints; use --engine soft, which runs the same branches");
    }
    setting.add_probes(args.print.clone(), args.debug.folders()?).context("--print")
}

#[cfg(not(feature = "inside"))]
fn add_probes(_: &Args, _: &mut Setting, _: &Engine) -> anyhow::Result<()> {
    Ok(())
}

/// Replays a branch of a run directory.
fn branch(ui: &Ui, args: &Args, folder: &Path, id: Id, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let run = Run::open(folder)?;
    let record = run.record(id)?;
    let edges = EdgeFile::new(&args.instruments)?;
    let (mut setting, engine) = run.setting(ui, args.engine.asked(), interrupt)?;
    instruments::check(&args.instruments, &setting.launcher.world, &engine)?;
    instruments::attach(&args.instruments, &mut setting.launcher)?;
    add_probes(args, &mut setting, &engine)?;
    let recorded = Recorded::of(&run.reading, &record)?;
    let wanted = match id {
        Id::Finding(id) => Some(Wanted::of(&run.finding(id)?.hit)),
        Id::Branch(_) => None,
    };
    let mut reporter = Reporter::new(ui, &setting, args, edges, interrupt, record.end_ns);
    let finding = match id {
        Id::Finding(id) if args.record => Some(id),
        _ if args.record => {
            bail!(
                "--record: only timelines of findings are recorded; give the number of a finding, such as 1"
            )
        }
        _ => None,
    };
    reporter.recording = finding.is_some().then(|| Recording::new(&run.reading.header().nodes));
    let outcome = again(&mut reporter, &setting, &record, &recorded, wanted.as_ref())?;
    if let (Some(finding), Some(recording), Outcome::Found) = (finding, &reporter.recording, outcome) {
        let file =
            recording.write(&args.run, Key::Finding(finding), &record.path.to_string(), &record.trail)?;
        ui.say(format!(
            "recorded in {}; everett report {} --html shows it",
            file.display(),
            args.run.display()
        ))?;
    }
    common::warn_of_engine(ui, &engine)?;
    Ok(outcome)
}

/// Runs a branch again and prints the result. With `wanted`, the replay must show that finding.
fn again(
    reporter: &mut Reporter<'_>,
    setting: &Setting,
    record: &Record,
    recorded: &Recorded,
    wanted: Option<&Wanted>,
) -> anyhow::Result<Outcome> {
    let clock = Stopwatch::start();
    let (ui, interrupt) = (reporter.ui, reporter.interrupt);
    let replayed = replay(setting, &record.path, recorded, reporter)?;
    reporter.over(setting)?;
    let name = setting.name(&record.path);
    match replayed {
        Replayed::Left { vtime_ns, recorded, came } => {
            let at = Vtime(vtime_ns).to_string();
            bail!(
                "{name} leaves the recorded trail at {} s: the recorded digest is {recorded}…, the replay's {came}…; \
                                 `everett verify` finds the first instruction at which two runs differ",
                at.trim()
            );
        }
        Replayed::Ended(vtime_ns) => {
            if interrupt.wanted() {
                bail!("interrupted at {} s of vtime", Vtime(vtime_ns).to_string().trim());
            }
            summary(ui, &name, vtime_ns, None, true, &[], &clock)?;
            ui.say(format!("{name} is on its recorded trail at {} s", Vtime(vtime_ns).to_string().trim()))?;
            Ok(Outcome::Fine)
        }
        Replayed::Same(branch) => {
            let trail = everett_session::explore::marks::digest(&branch.marks);
            if trail != record.trail {
                bail!("{name} ends with trail {trail}; the recorded trail is {}", record.trail);
            }
            let found = &branch.testimony.found;
            summary(ui, &name, branch.last_ns, Some(trail.clone()), true, found, &clock)?;
            ui.say(format!(
                "{}  {} of vtime, on its recorded trail at all {} places",
                style::paint(style::HEAD, &name),
                show_duration_ns(branch.last_ns),
                recorded.len()
            ))?;
            ui.say(format!("trail {}", style::paint(style::HEAD, &trail)))?;
            match wanted {
                Some(wanted) => match wanted.in_branch(&branch) {
                    Some(_) => {
                        ui.say(style::paint(style::BAD, "the finding shows again"))?;
                        Ok(Outcome::Found)
                    }
                    None => bail!("{name} has its recorded trail, but the finding does not show again"),
                },
                None => tell_found(ui, found),
            }
        }
    }
}

fn tell_found(ui: &Ui, found: &[HitWithEvidence]) -> anyhow::Result<Outcome> {
    for HitWithEvidence { hit, .. } in found {
        let line = format!("{}: {}", printable(&hit.property), printable(&hit.text));
        ui.say(style::paint(style::BAD, line))?;
    }
    if found.is_empty() {
        ui.say(style::paint(style::GOOD, "nothing found"))?;
        return Ok(Outcome::Fine);
    }
    Ok(Outcome::Found)
}

fn summary<'f>(
    ui: &Ui,
    path: &str,
    vtime_ns: u64,
    trail: Option<String>,
    same: bool,
    found: impl IntoIterator<Item = &'f HitWithEvidence>,
    clock: &Stopwatch,
) -> anyhow::Result<()> {
    let found = found.into_iter().map(|found| &*found.hit.property).collect();
    let path = path.to_owned();
    Ok(ui.record(&Summary {
        kind: "replay",
        path,
        vtime_ns,
        trail,
        same,
        found,
        host_seconds: clock.seconds(),
    })?)
}

/// Replays a regression file.
fn regression(ui: &Ui, args: &Args, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let file: &Path = &args.run;
    if args.record {
        bail!("--record: {} is not a run directory", file.display());
    }
    if let Some(id) = args.id {
        let id = match id {
            Id::Finding(id) => id.to_string(),
            Id::Branch(id) => format!("b{id}"),
        };
        bail!("{}: a regression file has one finding; leave out {id}", file.display());
    }
    let regression = Regression::read(file)?;
    let mut world = common::load(&regression.world_file(file, args.world.as_deref())?)?;
    regression.apply(&mut world.explore);
    let plan = regression.plan(&world.names(), file)?;
    let asked = exploration::for_probes(&world, args.engine.asked())?;
    let engine = Engine::choose(asked, world.clock, world.cpu)?;
    instruments::check(&args.instruments, &world, &engine)?;
    let options = engine.options(EngineOptions::default());
    let edges = EdgeFile::new(&args.instruments)?;
    let mut setting = exploration::prepare(ui, world, Some(regression.seed), options, interrupt)?.setting;
    instruments::attach(&args.instruments, &mut setting.launcher)?;
    add_probes(args, &mut setting, &engine)?;
    let exact = setting.name(&regression.path) == regression.timeline;
    let clock = Stopwatch::start();
    let route = regression.route(&setting, plan);
    let end_ns = route.end.map_or(0, |end| end.at_ns);
    let mut reporter = Reporter::new(ui, &setting, args, edges, interrupt, end_ns);
    let branches = PathRunner::new(&setting)?.journey(&route, &mut reporter);
    reporter.over(&setting)?;
    let branches = match branches {
        Ok(branches) => branches,
        Err(error) if error.is::<Interrupted>() && !interrupt.wanted() => {
            ui.say("stopped at the vtime of --until")?;
            return Ok(Outcome::Fine);
        }
        Err(error) => return Err(error),
    };
    let Some(branch) = branches.last() else {
        bail!("{}: the regression file has no timeline", file.display())
    };
    let trail = everett_session::explore::marks::digest(&branch.marks);
    let name = setting.name(&regression.path);
    let same = exact && trail == regression.trail;
    let found = || branches.iter().flat_map(|branch| &branch.testimony.found);
    summary(ui, &name, branch.last_ns, Some(trail.clone()), same, found(), &clock)?;
    if exact && !same {
        bail!("{name} has trail {trail}; the recorded trail is {}", regression.trail);
    }
    ui.say(format!("{}  {} of vtime", style::paint(style::HEAD, &name), show_duration_ns(branch.last_ns)))?;
    ui.say(match exact {
        true => format!("trail {}, equal to the recorded one", style::paint(style::HEAD, &trail)),
        false => "the world or its image has changed, so the same faults run on another timeline".to_owned(),
    })?;
    common::warn_of_engine(ui, &engine)?;
    match regression.wanted().in_journey(&branches) {
        Some(found) => {
            let line = format!("{}: {}", printable(&found.hit.property), printable(&found.hit.text));
            ui.say(style::paint(style::BAD, line))?;
            Ok(Outcome::Found)
        }
        None => {
            if let Some(early) = ended_early(&branches, &regression.path) {
                bail!("{name}: {early}; until then {} was not violated", printable(&regression.property));
            }
            let gone = format!("{} is not violated", printable(&regression.property));
            ui.say(style::paint(style::GOOD, gone))?;
            Ok(Outcome::Fine)
        }
    }
}

/// Reporter of the events of a replay.
struct Reporter<'t> {
    ui: &'t Ui,
    bar: RunBar,
    several: bool,
    quiet: bool,
    until_ns: u64,
    interrupt: &'t Interrupt,
    /// File for edges (executed jumps), if `--edges` is given.
    edges: Option<EdgeFile>,
    /// Recording of the timeline, if it is recorded.
    recording: Option<Recording>,
    failed: Option<std::io::Error>,
}

impl<'t> Reporter<'t> {
    fn new(
        ui: &'t Ui,
        setting: &Setting,
        args: &Args,
        edges: Option<EdgeFile>,
        interrupt: &'t Interrupt,
        end_ns: u64,
    ) -> Reporter<'t> {
        Reporter {
            ui,
            bar: RunBar::new(ui, end_ns),
            several: setting.launcher.world.nodes.len() > 1,
            quiet: args.quiet,
            until_ns: args.until.unwrap_or(u64::MAX),
            interrupt,
            edges,
            recording: None,
            failed: None,
        }
    }

    /// Ends the report and writes the file of edges. Returns an error if writing to the terminal failed.
    fn over(&mut self, setting: &Setting) -> anyhow::Result<()> {
        self.bar.clear();
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        match self.edges.take() {
            Some(edges) => edges.write(self.ui, &setting.launcher),
            None => Ok(()),
        }
    }
}

impl Watch for Reporter<'_> {
    fn message(&mut self, step: &FrameStep) {
        if let Some(recording) = &mut self.recording {
            recording.message(step);
        }
    }

    fn event(&mut self, event: &Event) {
        if let Some(recording) = &mut self.recording {
            recording.event(event);
        }
        let of_console = matches!(&event.what, What::Kernel { text } if everett_explorer::property::trouble(text).is_none());
        // Lines of operation histories are for the checker, and edges (executed jumps) are for coverage. So only
        // `--json` shows them.
        let of_judges = matches!(event.what, What::History { .. } | What::Edge { .. });
        if self.quiet || of_console || !self.ui.json && of_judges {
            return;
        }
        let told = self.bar.suspend(|| {
            self.ui.record(event)?;
            self.ui.say(show::line(event, self.several))
        });
        if let Err(error) = told {
            self.failed.get_or_insert(error);
        }
    }

    fn edges(&mut self, node: usize, edges: &[Edge]) {
        if let Some(file) = &mut self.edges {
            file.add(node, edges);
        }
    }

    fn at(&mut self, vtime_ns: u64) -> bool {
        self.bar.at(vtime_ns, 0);
        vtime_ns < self.until_ns && !self.interrupt.wanted() && self.failed.is_none()
    }
}

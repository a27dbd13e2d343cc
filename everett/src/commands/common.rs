//! First steps of several commands: world, image, start of a run, seed and engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use everett_explorer::plan::limits::PLAN_BYTES_MAX;
use everett_explorer::plan::{Plan, PlanErrors};
use everett_host::interrupt::Interrupt;
use everett_input::units::show_duration_ns;
use everett_session::machines::EngineOptions;
use everett_session::machines::engines::Engine;
use everett_session::run::booted::{self, Attempt, Booted, FailedBoot, Wanted};
use everett_session::run::drive::UNTIL_DONE_NS_MAX;
use everett_session::run::launch::Launcher;
use everett_session::run::prepared;
use everett_session::run::restarts::Nodes;
use everett_session::world::identity::Identity;
use everett_session::world::moments::MomentFolder;
use everett_session::world::timeline::{BootError, Faults, Timeline};
use everett_streams::Seed;
use everett_vmm::engine::kvm::KvmEngine;
use everett_world_file::init::compose_in;
use everett_world_file::{self as world_files, Clock, World};
use serde::Serialize;

use super::timeline::TimelineArgs;
use crate::features;
use crate::ui::{Ui, style};

/// Prints the name of the engine and the reason for its choice.
pub(super) fn announce_engine(ui: &Ui, engine: &Engine) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Record<'a> {
        kind: &'static str,
        #[serde(flatten)]
        engine: &'a Engine,
    }
    ui.say(style::paint(style::FAINT, format!("engine {}: {}", engine.kind.name(), engine.why)))?;
    ui.record(&Record { kind: "engine", engine })?;
    Ok(())
}

/// Prints a warning if the engine's results may be inexact.
pub(super) fn warn_of_engine(ui: &Ui, engine: &Engine) -> anyhow::Result<()> {
    match engine.warning() {
        Some(warning) => Ok(ui.say(style::paint(style::BAD, warning))?),
        None => Ok(()),
    }
}

/// Returns a text with the number of executed instructions, conditional branches or exits (the clock mode decides
/// which), and the host time that they took.
pub(super) fn executed(clock: Clock, count: u64, seconds: f64) -> String {
    match clock {
        Clock::Insn => {
            let mips = count as f64 / 1e6 / seconds.max(1e-9);
            format!("{:.2} billion instructions in {seconds:.1} s ({mips:.0} MIPS)", count as f64 / 1e9)
        }
        Clock::Branch => {
            format!("{:.2} billion conditional branches in {seconds:.1} s", count as f64 / 1e9)
        }
        Clock::Exit => format!("{count} exits in {seconds:.1} s"),
    }
}

/// Prints how often a timeline entered KVM, and how many instructions Everett's own CPU executed because KVM could not.
/// Prints nothing without KVM.
pub(super) fn tell_bridged(ui: &Ui, timeline: &Timeline) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Record {
        kind: &'static str,
        entries: u64,
        bridged: u64,
        msrs: u64,
        delivered: u64,
        stretches: u64,
        disturbed: u64,
    }
    let nodes = timeline.world().nodes().iter();
    let mut engines = nodes.filter_map(|node| node.machine().engine().kvm()).peekable();
    if engines.peek().is_none() {
        return Ok(());
    }
    let disturbed = timeline.world().nodes().iter().map(|node| node.machine().stats().disturbed).sum();
    let mut all =
        Record { kind: "kvm_stats", entries: 0, bridged: 0, msrs: 0, delivered: 0, stretches: 0, disturbed };
    for stats in engines.map(KvmEngine::stats) {
        all.entries += stats.entries;
        all.bridged += stats.bridged;
        all.msrs += stats.msrs;
        all.delivered += stats.delivered;
        all.stretches += stats.stretches;
    }
    let Record { entries, bridged, msrs, delivered, disturbed, .. } = all;
    let mut line = format!(
        "KVM was entered {entries} times; the soft CPU executed {bridged} instructions that KVM could not, and {msrs} accesses \
         to MSRs"
    );
    if delivered > 0 {
        line += &format!(", and delivered {delivered} exceptions and system calls");
    }
    if disturbed > 0 {
        line += &format!(
            "; {disturbed} runs of at most a millisecond were repeated, because the host disturbed them"
        );
    }
    ui.say(style::paint(style::FAINT, line))?;
    Ok(ui.record(&all)?)
}

/// Reads a world file. Errors name the file.
pub(super) fn load(file: &Path) -> anyhow::Result<World> {
    Ok(world_files::load(file)?)
}

/// Name of the world file that commands look for in the current folder.
pub(super) const WORLD_FILE: &str = "world.toml";

/// Returns the world file to use: the argument, else `world.toml` in the current folder, else the compose file there.
/// The variable `COMPOSE_FILE` (environment or `.env`) names the compose files. Without it, they have the usual names.
pub(super) fn world_file(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(file) = named {
        return Ok(file.to_owned());
    }
    let own = Path::new(WORLD_FILE);
    if own.is_file() {
        return Ok(own.to_owned());
    }
    compose_in(Path::new(""))?.ok_or_else(|| {
        anyhow!("no {WORLD_FILE} and no compose file in the current folder; name one, or write one with everett init")
    })
}

/// Reads a timeline's world file and applies the options of the command line.
pub(super) fn world(timeline: &TimelineArgs) -> anyhow::Result<World> {
    let mut world = load(&world_file(timeline.world.as_deref())?)?;
    world.boot_seed = timeline.boot_seed.unwrap_or(world.boot_seed);
    Ok(world)
}

/// Reads the requested fault plan, if any. Commands call this before they build an image, so that errors show at
/// once.
pub(super) fn plan(file: Option<&Path>, world: &World) -> anyhow::Result<Option<Plan>> {
    let Some(file) = file else { return Ok(None) };
    let bad = |errors| BadPlan { file: file.to_owned(), errors };
    Ok(Some(Plan::parse(&plan_text(file)?, &world.names()).map_err(bad)?))
}

/// Error of a fault plan with invalid lines.
#[derive(Debug, thiserror::Error)]
#[error("{}", file.display())]
pub(super) struct BadPlan {
    file: PathBuf,
    #[source]
    errors: PlanErrors,
}

impl BadPlan {
    /// Returns one line for each error.
    pub(super) fn lines(&self) -> Vec<String> {
        let file = self.file.display();
        let mut lines: Vec<String> =
            self.errors.errors.iter().map(|error| format!("{file}: {error}")).collect();
        if self.errors.more {
            lines.push(format!("{file}: and more"));
        }
        lines
    }
}

fn plan_text(file: &Path) -> anyhow::Result<String> {
    Ok(everett_input::file::read_text(file, PLAN_BYTES_MAX as u64)?)
}

/// Returns an error if a run that starts `since_ready_ns` after *ready* (the vtime at which all services are up) has no
/// time left. The run ends `duration_ns` after *ready*, or at most [`UNTIL_DONE_NS_MAX`] after it if `duration_ns` is
/// `None`.
fn check_start(since_ready_ns: u64, duration_ns: Option<u64>) -> anyhow::Result<()> {
    let start = show_duration_ns(since_ready_ns);
    match duration_ns {
        Some(duration_ns) if since_ready_ns >= duration_ns => {
            bail!(
                "--for {}: no time is left to run, because the moment in --from lies {start} after ready",
                show_duration_ns(duration_ns)
            )
        }
        None if since_ready_ns >= UNTIL_DONE_NS_MAX => bail!(
            "--from: the moment lies {start} after ready, and a run without --for ends {} after ready; give it a longer \
             --for",
            show_duration_ns(UNTIL_DONE_NS_MAX)
        ),
        _ => Ok(()),
    }
}

/// World that can run, because its image is in the cache.
pub(super) struct Prepared {
    /// Launcher of the world's timelines. They start at power-on, unless [`Prepared::start_stored`] or
    /// [`Prepared::start_as_asked`] selects a moment.
    pub(super) launcher: Launcher,
    /// Digest of everything that the world's timelines depend on, except the seed and the path.
    pub(super) identity: Identity,
    /// Digest of the world's image.
    pub(super) image: String,
    /// Store of the world's moments.
    pub(super) moment_folder: MomentFolder,
}

/// Builds the image of a world, or finds it in the cache.
pub(super) fn prepare(
    ui: &Ui,
    world: World,
    options: EngineOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Prepared> {
    let prepared::Prepared { launcher, identity, image, moment_folder } =
        prepared::prepare(ui, features::access(), world, options, interrupt)?;
    Ok(Prepared { launcher, identity, image, moment_folder })
}

impl Prepared {
    /// Makes timelines start at the saved moment `from`, or at *ready* if `from` is `None`.
    pub(super) fn start_stored(
        &mut self,
        ui: &Ui,
        from: Option<&str>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Booted> {
        match self.attempt_stored(ui, from, interrupt)? {
            Ok(booted) => Ok(booted),
            Err(failed) => Err(failed.error.into()),
        }
    }

    /// Does the same as [`Prepared::start_stored`], but returns a failed boot as a value, not as an error.
    fn attempt_stored(
        &mut self,
        ui: &Ui,
        from: Option<&str>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Result<Booted, Box<FailedBoot>>> {
        if let Some(name) = from {
            // A wrong name is reported here, before a boot that takes seconds.
            self.moment_folder.header(name)?;
        }
        let booted = booted::attempt(ui, &self.launcher, &self.moment_folder, Wanted::Ready, interrupt)?;
        let booted = match booted {
            Attempt::Booted(booted) => booted,
            Attempt::Failed(failed) => return Ok(Err(failed)),
        };
        let stored = match from {
            None => Arc::clone(&booted.ready),
            Some(name) => {
                let pages_max = self.launcher.pages_max();
                Arc::new(self.moment_folder.saved(name, &booted.pool, pages_max, &booted.ready)?)
            }
        };
        self.launcher.from = Some(stored);
        Ok(Ok(booted))
    }

    /// Applies the options `--cold` and `--from`. The workload lasts `duration_ns` of vtime, if that is known.
    /// Returns the failed boot, or `None` if no boot failed.
    pub(super) fn start_as_asked(
        &mut self,
        ui: &Ui,
        args: &TimelineArgs,
        duration_ns: Option<u64>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<Box<FailedBoot>>> {
        if args.cold {
            return Ok(None);
        }
        if let Err(failed) = self.attempt_stored(ui, args.from.as_deref(), interrupt)? {
            return Ok(Some(failed));
        }
        let Some(stored) = self.launcher.from.as_deref().filter(|_| args.from.is_some()) else {
            return Ok(None);
        };
        let start_ns = stored.moment.vtime();
        let ready_ns = stored.session.ready_ns().unwrap_or(start_ns);
        check_start(start_ns.saturating_sub(ready_ns), duration_ns)?;
        Ok(None)
    }

    /// Makes timelines follow a fault plan, if there is one. Loads the restart points: moments early in the boot, from
    /// which machines start again after a power loss.
    pub(super) fn apply_faults(
        &mut self,
        ui: &Ui,
        plan: Option<Plan>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let Some(plan) = plan else { return Ok(()) };
        let points = match booted::get(ui, &self.launcher, &self.moment_folder, Wanted::Both, interrupt) {
            Ok(booted) => booted.restart.unwrap_or_default(),
            // The boot failed. The timeline starts at power-on, reports that failure, and ends before the first fault
            // of the plan.
            Err(error) if matches!(error.downcast_ref(), Some(BootError::Useless { .. })) => Arc::default(),
            Err(error) => return Err(error),
        };
        let nodes = Nodes::new(Launcher { from: None, ..self.launcher.clone() }, points);
        self.launcher.faults = Some(Faults::new(plan, Arc::new(nodes)));
        Ok(())
    }

    /// Returns the seed: from the command line, else from the moment at which timelines start, else from the world
    /// file, else 0.
    pub(super) fn seed(&self, asked: Option<Seed>) -> Seed {
        let begun = self.launcher.from.as_ref().and_then(|stored| stored.session.seed());
        asked.or(begun).or(self.launcher.world.seed).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_cannot_start_after_its_end() {
        const SECOND: u64 = 1_000_000_000;
        let refused = |since_ready_ns, duration_ns| {
            check_start(since_ready_ns, duration_ns).err().map(|error| error.to_string())
        };
        assert_eq!(refused(20 * SECOND - 1, Some(20 * SECOND)), None);
        let expected =
            "--for 20 s: no time is left to run, because the moment in --from lies 20 s after ready";
        assert_eq!(refused(20 * SECOND, Some(20 * SECOND)).as_deref(), Some(expected));
        assert_eq!(refused(UNTIL_DONE_NS_MAX, Some(UNTIL_DONE_NS_MAX + 1)), None);
        assert_eq!(refused(UNTIL_DONE_NS_MAX - 1, None), None);
        let expected = "--from: the moment lies 600 s after ready, and a run without --for ends 600 s after ready; \
                        give it a longer --for";
        assert_eq!(refused(UNTIL_DONE_NS_MAX, None).as_deref(), Some(expected));
    }
}

//! First steps that commands share: the world, the image, the start of a run, the seed, the engine.

use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use everett_explorer::plan::limits::PLAN_BYTES_MAX;
use everett_explorer::plan::{Plan, PlanErrors};
use everett_guest_image::Cache;
use everett_host::interrupt::Interrupt;
use everett_input::units::show_duration_ns;
use everett_session::images;
use everett_session::machines::EngineOptions;
use everett_session::machines::engines::Engine;
use everett_session::run::booted::{self, Attempt, Booted, FailedBoot, Wanted};
use everett_session::run::drive::UNTIL_DONE_NS_MAX;
use everett_session::run::launch::Launcher;
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

/// Reports the engine and the reason for its choice.
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

/// Prints the engine's warning about results, if it has one.
pub(super) fn warn_of_engine(ui: &Ui, engine: &Engine) -> anyhow::Result<()> {
    match engine.warning() {
        Some(warning) => Ok(ui.say(style::paint(style::BAD, warning))?),
        None => Ok(()),
    }
}

/// Describes an amount of execution, in the unit of the clock, and the host time that it took.
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

/// Reports how often KVM was entered and what it left to the soft CPU, if the timeline's machines run on KVM.
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
            "; {disturbed} runs of a millisecond or less were repeated, because the host disturbed them"
        );
    }
    ui.say(style::paint(style::FAINT, line))?;
    Ok(ui.record(&all)?)
}

/// Reads a world; an error already names the file.
pub(super) fn load(file: &Path) -> anyhow::Result<World> {
    Ok(world_files::load(file)?)
}

/// Name of a world file that commands find by themselves.
pub(super) const WORLD_FILE: &str = "world.toml";

/// Returns the world file of the command line, else the one in the current folder, else the compose files there: those of
/// `COMPOSE_FILE`, or those of the usual names.
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

/// Reads the world of a timeline and applies the options of the command line.
pub(super) fn world(timeline: &TimelineArgs) -> anyhow::Result<World> {
    let mut world = load(&world_file(timeline.world.as_deref())?)?;
    world.boot_seed = timeline.boot_seed.unwrap_or(world.boot_seed);
    Ok(world)
}

/// Reads the requested fault plan, if any. Called before an image is built, so that errors show at once.
pub(super) fn plan(file: Option<&Path>, world: &World) -> anyhow::Result<Option<Plan>> {
    let Some(file) = file else { return Ok(None) };
    let bad = |errors| BadPlan { file: file.to_owned(), errors };
    Ok(Some(Plan::parse(&plan_text(file)?, &world.names()).map_err(bad)?))
}

/// Error of a fault plan with invalid lines.
#[derive(Debug, thiserror::Error)]
#[error("{}: {errors}", file.display())]
pub(super) struct BadPlan {
    file: PathBuf,
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

/// Refuses to start from a moment `since_ready_ns` after *ready* if the run has ended by then. The run lasts
/// `duration_ns`, or at most [`UNTIL_DONE_NS_MAX`] without a duration.
fn check_start(since_ready_ns: u64, duration_ns: Option<u64>) -> anyhow::Result<()> {
    let start = show_duration_ns(since_ready_ns);
    match duration_ns {
        Some(duration_ns) if since_ready_ns >= duration_ns => {
            bail!(
                "--for {}: no time is left to run, because the moment to start from lies {start} after ready",
                show_duration_ns(duration_ns)
            )
        }
        None if since_ready_ns >= UNTIL_DONE_NS_MAX => bail!(
            "--from: the moment to start from lies {start} after ready, and a run without --for ends {} after ready; give it a longer \
             --for",
            show_duration_ns(UNTIL_DONE_NS_MAX)
        ),
        _ => Ok(()),
    }
}

/// A world that can run, because its image is in the cache.
pub(super) struct Prepared {
    /// Launcher of its timelines, from power-on.
    pub(super) launcher: Launcher,
    /// Identity of its timelines, without the seed.
    pub(super) identity: Identity,
    /// Digest of the image.
    pub(super) image: String,
    /// Store of its moments.
    pub(super) moment_folder: MomentFolder,
}

/// Builds the image of a world or finds it in the cache.
pub(super) fn prepare(
    ui: &Ui,
    world: World,
    options: EngineOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Prepared> {
    let image = images::get(ui, &world, features::access(), interrupt)?;
    let identity = image.identity(&world);
    let boot = Identity::of_boot(&world, slice::from_ref(&image.digest));
    let cache = Cache::of_user()?;
    let moment_folder = MomentFolder::new(cache.folder(), &identity, &boot);
    cache.note(&cache.enter()?, &world.file, &[moment_folder.folder()])?;
    let launcher = Launcher {
        world,
        only: None,
        files: image.files,
        cmdline: String::new(),
        options,
        from: None,
        faults: None,
        watching: None,
    };
    Ok(Prepared { launcher, identity, image: image.digest, moment_folder })
}

impl Prepared {
    /// Makes timelines start at a stored moment: the saved moment `from`, or else *ready*.
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

    /// As [`Prepared::start_stored`], but returns the boot that failed.
    fn attempt_stored(
        &mut self,
        ui: &Ui,
        from: Option<&str>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Result<Booted, Box<FailedBoot>>> {
        if let Some(name) = from {
            // Checked first, so that a wrong name is reported before a boot.
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

    /// Applies the start options of the command line to timelines whose workload runs for `duration_ns` of vtime, if
    /// that is known. Returns the boot if it failed.
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

    /// Applies a fault plan to timelines, if there is one, and loads the restart points for it.
    pub(super) fn apply_faults(
        &mut self,
        ui: &Ui,
        plan: Option<Plan>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let Some(plan) = plan else { return Ok(()) };
        let points = match booted::get(ui, &self.launcher, &self.moment_folder, Wanted::Both, interrupt) {
            Ok(booted) => booted.restart.unwrap_or_default(),
            // The timeline starts at power-on: it reports the failed boot and does not reach the beginning of a plan.
            Err(error) if matches!(error.downcast_ref(), Some(BootError::Useless { .. })) => Arc::default(),
            Err(error) => return Err(error),
        };
        let nodes = Nodes::new(Launcher { from: None, ..self.launcher.clone() }, points);
        self.launcher.faults = Some(Faults::new(plan, Arc::new(nodes)));
        Ok(())
    }

    /// Returns the seed of the command line, else that of the moment at which timelines start, else the world's, else
    /// 0.
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
            "--for 20 s: no time is left to run, because the moment to start from lies 20 s after ready";
        assert_eq!(refused(20 * SECOND, Some(20 * SECOND)).as_deref(), Some(expected));
        assert_eq!(refused(UNTIL_DONE_NS_MAX, Some(UNTIL_DONE_NS_MAX + 1)), None);
        assert_eq!(refused(UNTIL_DONE_NS_MAX - 1, None), None);
        let expected = "--from: the moment to start from lies 600 s after ready, and a run without --for ends 600 s after ready; \
                        give it a longer --for";
        assert_eq!(refused(UNTIL_DONE_NS_MAX, None).as_deref(), Some(expected));
    }
}

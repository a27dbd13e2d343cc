//! A booted world: its *ready* moment and its restart points, from a stored boot or from a new one.

use std::sync::Arc;

use anyhow::Context;
use everett_host::interrupt::Interrupt;
use everett_host::time::Stopwatch;
use everett_input::causes::with_causes;
use everett_snapshot::Pool;
use everett_streams::Seed;

use crate::machines::EngineOptions;
use crate::output::progress::{Progress, Task};
use crate::output::style;
use crate::run::launch::Launcher;
use crate::world::conversation::Phase;
use crate::world::event::Event;
use crate::world::moments::{MomentFolder, Recorded, Stored};
use crate::world::timeline::restart_point::RestartPoint;
use crate::world::timeline::{At, BootError, Timeline};

/// Interval between attempts to lock the folder while another process boots the world, in nanoseconds of host time.
const WAIT_NS: u64 = 50_000_000;

/// A booted world.
#[derive(Debug, Clone)]
pub struct Booted {
    /// Restart points of the nodes, from which nodes start again after a power loss. `None` if only
    /// [`Wanted::Ready`] was loaded.
    pub restart: Option<Arc<[RestartPoint]>>,
    /// Moment at *ready*, when all services are up: the root of all timelines.
    pub ready: Arc<Stored>,
    /// Pool in which all later moments share equal pages.
    pub pool: Pool,
}

/// Moments to load from a stored boot. Loading a moment reads its whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The *ready* moment alone.
    Ready,
    /// The *ready* moment and the restart points.
    Both,
}

/// A boot that failed. Its timeline has stopped at the vtime at which the failure became certain.
pub struct FailedBoot {
    /// Node, reason and last lines of output.
    pub error: BootError,
    /// Host time of the boot, in seconds.
    pub seconds: f64,
    timeline: Timeline,
    events: Vec<Event>,
    consoles: Vec<Vec<u8>>,
}

impl FailedBoot {
    /// Returns the timeline under `seed`. The timeline reports the boot's events and console output again.
    #[must_use]
    pub fn into_timeline(self, seed: Seed) -> Timeline {
        let FailedBoot { mut timeline, events, consoles, .. } = self;
        // The timeline has not begun, so this succeeds.
        let _ = timeline.begin(seed);
        timeline.events_again(&events);
        for (node, console) in consoles.iter().enumerate() {
            timeline.machine_mut(node).output().console_again(console);
        }
        timeline
    }
}

/// Result of a boot.
pub enum Attempt {
    /// The world is ready.
    Booted(Booted),
    /// The world cannot become ready.
    Failed(Box<FailedBoot>),
}

/// Returns the booted world from `folder`. Without a usable stored boot, boots the world and stores the boot there.
///
/// # Errors
/// Returns an error if the world cannot become ready, if `interrupt` is raised, or if an operation of the host fails.
pub fn get(
    progress: &dyn Progress,
    launcher: &Launcher,
    folder: &MomentFolder,
    wanted: Wanted,
    interrupt: &Interrupt,
) -> anyhow::Result<Booted> {
    match attempt(progress, launcher, folder, wanted, interrupt)? {
        Attempt::Booted(booted) => Ok(booted),
        Attempt::Failed(failed) => Err(failed.error.into()),
    }
}

/// Like [`get`], but returns a failed boot as a value.
///
/// # Errors
/// Returns an error if `interrupt` is raised, or if an operation of the host fails.
pub fn attempt(
    progress: &dyn Progress,
    launcher: &Launcher,
    folder: &MomentFolder,
    wanted: Wanted,
    interrupt: &Interrupt,
) -> anyhow::Result<Attempt> {
    let pool = Pool::default();
    let at = Place { nodes: launcher.nodes().count(), pages_max: launcher.pages_max() };
    if let Ok(Some(booted)) = stored(folder, &pool, &at, wanted) {
        return Ok(Attempt::Booted(booted));
    }
    let faint = |text: String| progress.note(&style::paint(style::FAINT, text));
    let lock = match folder.lock(&mut waiting(progress, interrupt)) {
        Ok(lock) => Some(lock),
        Err(error) if interrupt.wanted() => return Err(error),
        Err(error) => {
            faint(format!("the boot cannot be stored: {}", with_causes(error.as_ref())))?;
            None
        }
    };
    // Another process may have stored the boot meanwhile.
    match stored(folder, &pool, &at, wanted) {
        Ok(Some(booted)) => return Ok(Attempt::Booted(booted)),
        Ok(None) => {}
        Err(error) => faint(format!(
            "a stored boot cannot be used, so the world is booted again: {}",
            with_causes(error.as_ref())
        ))?,
    }
    let clock = Stopwatch::start();
    let booted = boot(progress, launcher, &pool, interrupt)?;
    let seconds = clock.seconds();
    let (restart, ready) = match booted {
        Ok(booted) => booted,
        Err(failed) => return Ok(Attempt::Failed(Box::new(FailedBoot { seconds, ..failed }))),
    };
    let (ready, restart) = match folder.on_bases(&ready, &restart, &pool) {
        Ok((based, restart)) => {
            match lock.as_ref().map(|_| folder.put_boot(&ready, &restart, launcher.world.boot_seed)) {
                Some(Ok(())) => faint(format!(
                    "booted in {seconds:.1} s and stored; later runs start from the stored boot"
                ))?,
                Some(Err(error)) => {
                    faint(format!("the boot cannot be stored: {}", with_causes(error.as_ref())))?
                }
                None => {}
            }
            (based, restart)
        }
        Err(error) => {
            faint(format!(
                "too little memory to share the boot between machines, so it is not stored: {}",
                with_causes(error.as_ref())
            ))?;
            (ready, restart)
        }
    };
    Ok(Attempt::Booted(Booted { restart: Some(restart.into()), ready: Arc::new(ready), pool }))
}

type Boot = (Vec<RestartPoint>, Stored);

/// Adds the world file's path to the error that a node refused to create a file of the world. Returns other errors
/// unchanged.
pub fn named(error: anyhow::Error, launcher: &Launcher) -> anyhow::Error {
    let is_of_file = matches!(error.downcast_ref(), Some(BootError::File { .. }));
    if is_of_file { error.context(launcher.world.file.display().to_string()) } else { error }
}

/// Returns the callback for [`MomentFolder::lock`]. Each call waits for a short time and returns false once `interrupt`
/// is raised. The first call also tells the operator that Everett waits.
pub fn waiting<'a>(progress: &'a dyn Progress, interrupt: &'a Interrupt) -> impl FnMut() -> bool + 'a {
    let mut is_reported = false;
    move || {
        if !std::mem::replace(&mut is_reported, true) {
            // If the note cannot be shown, Everett waits without it.
            let text = "another process boots or saves this world; waiting for it";
            let _ = progress.note(&style::paint(style::FAINT, text));
        }
        Stopwatch::start().wait_for_ns(WAIT_NS, || interrupt.wanted());
        !interrupt.wanted()
    }
}

/// Bounds against which a stored boot is checked.
struct Place {
    nodes: usize,
    pages_max: u64,
}

/// Loads the wanted moments of a stored boot, or returns `None` if a file is missing.
fn stored(folder: &MomentFolder, pool: &Pool, at: &Place, wanted: Wanted) -> anyhow::Result<Option<Booted>> {
    if !folder.has_boot() {
        return Ok(None);
    }
    let ready = folder.ready(at.nodes, pool, at.pages_max)?;
    let restart = match wanted {
        Wanted::Ready => None,
        Wanted::Both => Some(folder.restart(&ready, pool, at.pages_max)?.into()),
    };
    Ok(Some(Booted { restart, ready: Arc::new(ready), pool: pool.clone() }))
}

fn boot(
    progress: &dyn Progress,
    launcher: &Launcher,
    pool: &Pool,
    interrupt: &Interrupt,
) -> anyhow::Result<Result<Boot, FailedBoot>> {
    // A launcher holds the settings of a timeline. Launchers with different engine options and watchpoints share one
    // stored boot. So this boot must not use this launcher's options, which may contain leaks (deliberate defects for
    // tests), nor its watchpoints.
    let plain = Launcher { options: EngineOptions::default(), watching: None, ..launcher.clone() };
    let mut timeline = plain.boot()?;
    let mut display = progress.begin(Task::Boot);
    let nodes = timeline.world().nodes().len();
    let (mut recorded, mut full) = (Recorded::new(nodes), None);
    let mut restart: Vec<Option<RestartPoint>> = vec![None; nodes];
    let ready = timeline.run_to(Phase::Ready, &mut |timeline, at| {
        if let At::RestartPoint(node) = at {
            restart[node] = Some(timeline.restart_point(node, pool));
        }
        full = recorded.take(timeline).err();
        for note in timeline.take_boot_notes().into_iter().chain(timeline.take_missing_notes()) {
            display.warn(&note);
        }
        display.boot(timeline.vtime(), timeline.icount(), &|| timeline.boot_state());
        full.is_none() && !interrupt.wanted()
    });
    full.map_or(Ok(()), Err).context("the boot")?;
    recorded.take(&mut timeline).context("the boot")?;
    drop(display);
    match ready {
        Ok(()) => {}
        Err(error @ BootError::Useless { .. }) => {
            let (events, consoles) = recorded.into_parts();
            return Ok(Err(FailedBoot { error, seconds: 0.0, timeline, events, consoles }));
        }
        Err(error) => return Err(named(error.into(), launcher)),
    }
    let restart = restart
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .context("a node was ready before its restart point")?;
    let (events, consoles) = recorded.into_parts();
    Ok(Ok((restart, Stored::of(&mut timeline, pool, events, consoles))))
}

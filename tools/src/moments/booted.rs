//! The restart point and *ready* of a world: from the shelf, or by booting.

use std::sync::Arc;

use everett_snapshot::{Base, Pool};

use super::shelf::Shelf;
use super::stored::Stored;
use crate::host_time::Stopwatch;
use crate::interrupt::Interrupt;
use crate::session::agent::Phase;
use crate::session::event::Event;
use crate::session::launch::{EngineOptions, Launcher};
use crate::session::timeline::Timeline;
use crate::ui::progress::RunBar;
use crate::ui::{Ui, style};

const RESTART: &str = "restart";
const READY: &str = "ready";
/// Another process is looked after so often, in nanoseconds of host time.
const WAIT_NS: u64 = 50_000_000;

/// A booted world.
#[derive(Debug, Clone)]
pub struct Booted {
    /// Kernel and agent up, the root mounted, nothing else touched: where a node starts again after a loss of power. There
    /// when it was [`Wanted`].
    pub restart: Option<Arc<Stored>>,
    /// Services up: the root of all timelines.
    pub ready: Arc<Stored>,
    /// Where its pages are; everything that goes on from here shares them.
    pub pool: Pool,
}

impl Booted {
    /// The base of *ready*, on which saved moments are.
    #[must_use]
    pub fn base(&self) -> &Arc<Base> {
        self.ready.moment.memory().base()
    }
}

/// Which moments of a boot are read: each costs a look at all its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// *Ready* alone.
    Ready,
    /// The restart point, too.
    Both,
}

/// What `launcher` starts, booted: from `shelf`, else by booting it and putting it there.
///
/// # Errors
/// It does not get ready, somebody interrupts, or the host refuses.
pub fn get(
    ui: &Ui,
    launcher: &Launcher,
    shelf: &Shelf,
    wanted: Wanted,
    interrupt: &Interrupt,
) -> anyhow::Result<Booted> {
    let pool = Pool::default();
    let pages_max = launcher.pages_max();
    if let Ok(Some(booted)) = stored(shelf, &pool, pages_max, wanted) {
        return Ok(booted);
    }
    let faint = |text: String| ui.say(style::paint(style::FAINT, text));
    let lock = match shelf.lock(&mut waiting(ui, interrupt)) {
        Ok(lock) => Some(lock),
        Err(error) if interrupt.wanted() => return Err(error),
        Err(error) => {
            faint(format!("the boot cannot be stored: {error:#}"))?;
            None
        }
    };
    // Another process may have booted it meanwhile.
    match stored(shelf, &pool, pages_max, wanted) {
        Ok(Some(booted)) => return Ok(booted),
        Ok(None) => {}
        Err(error) => faint(format!("a stored boot cannot be used and is made anew: {error:#}"))?,
    }
    let clock = Stopwatch::start();
    let (restart, ready) = boot(ui, launcher, &pool, interrupt)?;
    let seconds = clock.seconds();
    let (restart, ready) =
        match lock.as_ref().map(|_| store(shelf, &restart, &ready, launcher.world.boot_seed)) {
            Some(Ok(stored)) => {
                faint(format!("booted in {seconds:.1} s, and stored; later runs start there"))?;
                stored
            }
            Some(Err(error)) => {
                faint(format!("the boot cannot be stored: {error:#}"))?;
                (restart, ready)
            }
            None => (restart, ready),
        };
    Ok(Booted { restart: Some(Arc::new(restart)), ready: Arc::new(ready), pool })
}

fn store(shelf: &Shelf, restart: &Stored, ready: &Stored, seed: u64) -> anyhow::Result<(Stored, Stored)> {
    let restart = shelf.put_boot(RESTART, "restart point", restart.clone(), seed)?;
    let ready = shelf.put_boot(READY, "ready", ready.clone(), seed)?;
    Ok((restart, ready))
}

/// Waits for another process that boots or saves, and says so once.
pub fn waiting<'a>(ui: &'a Ui, interrupt: &'a Interrupt) -> impl FnMut() -> bool + 'a {
    let mut told = false;
    move || {
        if !std::mem::replace(&mut told, true) {
            // Somebody whose terminal is gone still waits.
            let _ = ui
                .say(style::paint(style::FAINT, "another process boots or saves this world; waiting for it"));
        }
        Stopwatch::start().wait_for_ns(WAIT_NS, || interrupt.wanted());
        !interrupt.wanted()
    }
}

/// What is wanted of a stored boot; `None` when a part of it is missing.
fn stored(shelf: &Shelf, pool: &Pool, pages_max: u64, wanted: Wanted) -> anyhow::Result<Option<Booted>> {
    if !shelf.has_boot(RESTART) {
        return Ok(None);
    }
    let Some(ready) = shelf.boot(READY, pool, pages_max)? else { return Ok(None) };
    let restart = match wanted {
        Wanted::Ready => None,
        Wanted::Both => match shelf.boot(RESTART, pool, pages_max)? {
            Some(restart) => Some(Arc::new(restart)),
            None => return Ok(None),
        },
    };
    Ok(Some(Booted { restart, ready: Arc::new(ready), pool: pool.clone() }))
}

fn boot(
    ui: &Ui,
    launcher: &Launcher,
    pool: &Pool,
    interrupt: &Interrupt,
) -> anyhow::Result<(Stored, Stored)> {
    // A boot is for all; a leak that somebody plants is for one.
    let plain = Launcher { options: EngineOptions::default(), ..launcher.clone() };
    let mut timeline = plain.boot()?;
    let bar = RunBar::endless(ui, "booting");
    let (mut events, mut console) = (Vec::new(), Vec::new());
    let reach = |timeline: &mut Timeline, phase, events: &mut Vec<Event>, console: &mut Vec<u8>| {
        let reached = timeline.run_to(phase, &mut |timeline| {
            bar.at(timeline.machine().vtime(), timeline.machine().icount());
            events.append(&mut timeline.take_events());
            !interrupt.wanted()
        });
        events.append(&mut timeline.take_events());
        console.append(&mut timeline.machine_mut().output().take_console());
        reached
    };
    reach(&mut timeline, Phase::Mounted, &mut events, &mut console)?;
    let restart = Stored::of(&mut timeline, pool, events.clone(), console.clone());
    reach(&mut timeline, Phase::Ready, &mut events, &mut console)?;
    let ready = Stored::of(&mut timeline, pool, events, console);
    bar.clear();
    Ok((restart, ready))
}

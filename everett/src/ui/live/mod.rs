//! Live view of an exploration: a screen of figures and lists on the operator's terminal.
//!
//! This file has the thread that draws and reads keys.
//!
//! - `disk`: size of the run directory
//! - `draw/`: drawing of the model
//! - `feed`: updates of the model from the exploration
//! - `keys`: keys, focus and scrolling
//! - `model`: state of the view, as plain data
//! - `screen`: control of the terminal
//! - `series`: totals over time
//!
//! **Invariants.** The view only observes, except that it ends the exploration when the operator asks for it. It
//! draws at most [`FRAMES_PER_S`] times a second, and the feed takes a bounded share of a core.

mod disk;
mod draw;
mod feed;
mod keys;
mod model;
mod screen;
mod series;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use everett_explorer::coverage::Dictionary;
use everett_explorer::run::{Hit, MergeInput, Record};
use everett_host::interrupt::{Held, Interrupt, end_at_once};
use everett_host::signals::{Listener, Request, stop_self};
use everett_host::time::Stopwatch;
use everett_session::explore::expedition::{ExplorationProgress, Sight};
use ratatui::crossterm::event::{self, Event};

use draw::Look;
use feed::Feed;
use keys::{Asked, Stance};
use model::{About, Model};

use super::exploration_facts::ExplorationFacts;

/// Maximum number of frames per second. Frames after a key do not count.
const FRAMES_PER_S: u64 = 4;
/// Maximum wait for a key. After it, the thread checks for signals.
const WAIT: Duration = Duration::from_millis(100);

/// Live view. Dropping it restores the terminal.
pub(crate) struct Live {
    feed: Feed,
    shared: Arc<Shared>,
    drawer: Option<JoinHandle<()>>,
    _listener: Listener,
    _held: Held,
}

/// State that three threads share: the exploration, the thread that draws, and the thread that handles signals.
struct Shared {
    model: Mutex<Model>,
    interrupt: Interrupt,
    over: AtomicBool,
    suspended: AtomicBool,
    /// First error of the terminal. It also ends the exploration.
    failed: Mutex<Option<io::Error>>,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the exploration to end. The second call ends the process.
    fn end(&self) {
        if self.interrupt.wanted() {
            screen::leave();
            end_at_once();
        }
        self.interrupt.raise();
        self.model().ending = true;
    }
}

/// True if the terminal can show the view.
#[must_use]
pub(crate) fn is_possible() -> bool {
    screen::is_free()
}

impl Live {
    /// Takes over the terminal and begins to draw.
    ///
    /// # Errors
    /// Returns an error if the terminal or the system refuses. The terminal is then as before.
    pub(crate) fn begin(
        subject: &ExplorationFacts<'_>,
        interrupt: &Interrupt,
        clock: Stopwatch,
    ) -> io::Result<Live> {
        let shared = Arc::new(Shared {
            model: Mutex::new(Model::new(About::of(subject))),
            interrupt: interrupt.clone(),
            over: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
            failed: Mutex::default(),
        });
        let held = interrupt.hold();
        let of_signals = Arc::clone(&shared);
        let listener = Listener::start(move |request| match request {
            Request::End => of_signals.end(),
            Request::Suspend => of_signals.suspended.store(true, Ordering::SeqCst),
        })?;
        let mut terminal = screen::enter()?;
        let of_drawer = Arc::clone(&shared);
        let drawer = thread::Builder::new().name("view".to_owned()).spawn(move || {
            if let Err(error) = work(&of_drawer, &mut terminal) {
                of_drawer.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                // The terminal is gone, so the exploration ends.
                of_drawer.interrupt.raise();
            }
        });
        let drawer = drawer.inspect_err(|_| screen::leave())?;
        let feed = Feed::new(subject, clock);
        Ok(Live { feed, shared, drawer: Some(drawer), _listener: listener, _held: held })
    }

    /// Adds a finding to the view.
    pub(crate) fn found(&mut self, record: &Record, hit: &Hit) {
        self.feed.found(&mut self.shared.model(), record, hit);
    }

    /// Counts a branch.
    pub(crate) fn branch(&mut self, input: &MergeInput, dictionary: &Dictionary) {
        self.feed.branch(&mut self.shared.model(), input, dictionary);
    }

    /// Updates the figures from `sight`, the data of the running exploration, if enough time has passed since the last
    /// update.
    pub(crate) fn look(&mut self, sight: &Sight<'_>) {
        if self.feed.is_due() {
            self.feed.look(&self.shared.model, sight);
        }
    }

    /// Shows the new progress of the exploration.
    pub(crate) fn at(&mut self, progress: &ExplorationProgress) {
        self.feed.at(&mut self.shared.model(), progress);
    }

    /// Ends the view and restores the terminal.
    ///
    /// # Errors
    /// Returns the first error of the terminal during the view.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.stop();
        match self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn stop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        if let Some(drawer) = self.drawer.take() {
            drawer.thread().unpark();
            // An error means that the drawing thread panicked. The panic hook has already reported this.
            let _ = drawer.join();
        }
        screen::leave();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop();
    }
}

type Terminal = ratatui::Terminal<ratatui::backend::CrosstermBackend<io::Stdout>>;

/// Draws and reads keys until the view ends, or until the panic hook has restored the terminal.
fn work(shared: &Shared, terminal: &mut Terminal) -> io::Result<()> {
    let look = Look { colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) };
    let frame = Duration::from_millis(1_000 / FRAMES_PER_S);
    let mut stance = Stance::default();
    let mut drawn = Stopwatch::start();
    let mut wanted = true;
    while !shared.over.load(Ordering::SeqCst) && screen::is_on() {
        if shared.suspended.swap(false, Ordering::SeqCst) && !suspend(shared, terminal)? {
            return Ok(());
        }
        if wanted || drawn.elapsed() >= frame {
            screen::write(|| {
                terminal.draw(|frame| draw::draw(frame, &shared.model(), &mut stance, look)).map(drop)
            })
            .transpose()?;
            drawn = Stopwatch::start();
        }
        wanted = false;
        if !event::poll(WAIT.min(frame.saturating_sub(drawn.elapsed())))? {
            continue;
        }
        match event::read()? {
            Event::Key(key) => match stance.key(key) {
                Asked::Draw => wanted = true,
                Asked::Clear => {
                    screen::write(|| screen::clear(terminal)).transpose()?;
                    wanted = true;
                }
                Asked::End => {
                    shared.end();
                    wanted = true;
                }
                Asked::Suspend => shared.suspended.store(true, Ordering::SeqCst),
                Asked::Nothing => {}
            },
            Event::Resize(..) => wanted = true,
            _ => {}
        }
    }
    Ok(())
}

/// Restores the terminal and stops the process until the shell continues it. If the shell continues it in the
/// background, the exploration goes on without the view. Takes over the terminal again when the process is in the
/// foreground. Returns false if the exploration ended before that.
fn suspend(shared: &Shared, terminal: &mut Terminal) -> io::Result<bool> {
    screen::leave();
    stop_self()?;
    while !screen::is_foreground() {
        if shared.over.load(Ordering::SeqCst) {
            return Ok(false);
        }
        thread::park_timeout(WAIT);
    }
    *terminal = screen::enter()?;
    Ok(true)
}

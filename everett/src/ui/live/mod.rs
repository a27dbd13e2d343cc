//! The live view of an exploration: a screen of figures and lists on the operator's terminal.
//!
//! - `model`: the state, as plain data; `series`: totals over time
//! - `draw/`: how the state looks; `keys`: what keys do
//! - `feed`: what the exploration tells the model; `disk`: the size of the run directory
//! - `screen`: the terminal; this file: the thread that draws and reads keys
//!
//! **Invariants.** The view observes: it ends the exploration when the operator asks for it, and changes nothing else.
//! It draws at most [`FRAMES_PER_S`] times a second, and the feed's costs are bounded shares of a core.

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

/// Highest number of drawings a second, keys left aside.
const FRAMES_PER_S: u64 = 4;
/// Longest wait for a key, after which signals are looked at.
const WAIT: Duration = Duration::from_millis(100);

/// The live view. The drop gives the terminal back.
pub struct Live {
    feed: Feed,
    shared: Arc<Shared>,
    drawer: Option<JoinHandle<()>>,
    _listener: Listener,
    _held: Held,
}

/// State that the exploration, the thread that draws and the thread of signals share.
struct Shared {
    model: Mutex<Model>,
    interrupt: Interrupt,
    over: AtomicBool,
    suspended: AtomicBool,
    /// Error of the terminal. It also ends the exploration.
    failed: Mutex<Option<io::Error>>,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the end; at the second time, ends the process.
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
pub fn is_possible() -> bool {
    screen::is_free()
}

impl Live {
    /// Takes the terminal and begins to draw.
    ///
    /// # Errors
    /// Returns an error if the terminal or the system refuses; then the terminal is as before.
    pub fn begin(
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
                // Nobody would see the rest, because the terminal has gone.
                of_drawer.interrupt.raise();
            }
        });
        let drawer = drawer.inspect_err(|_| screen::leave())?;
        let feed = Feed::new(subject, clock);
        Ok(Live { feed, shared, drawer: Some(drawer), _listener: listener, _held: held })
    }

    /// Shows a finding.
    pub fn found(&mut self, record: &Record, hit: &Hit) {
        self.feed.found(&mut self.shared.model(), record, hit);
    }

    /// Counts a branch.
    pub fn branch(&mut self, input: &MergeInput, dictionary: &Dictionary) {
        self.feed.branch(&mut self.shared.model(), input, dictionary);
    }

    /// Looks at the exploration, if it is time for that.
    pub fn look(&mut self, sight: &Sight<'_>) {
        if self.feed.is_due() {
            self.feed.look(&self.shared.model, sight);
        }
    }

    /// Shows the progress.
    pub fn at(&mut self, progress: &ExplorationProgress) {
        self.feed.at(&mut self.shared.model(), progress);
    }

    /// Gives the terminal back.
    ///
    /// # Errors
    /// Returns the error of the terminal, if it failed meanwhile.
    pub fn finish(mut self) -> io::Result<()> {
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
            // A panic of the thread has been reported by its hook, and the exploration is not affected.
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

/// Draws and reads keys until the view is over, or until a panic took the terminal away.
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

/// Gives the terminal back, stops the process, and takes the terminal again when the process is in the foreground.
/// Until then the exploration goes on without the view. Returns false if it ended meanwhile.
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

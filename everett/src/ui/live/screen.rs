//! Control of the terminal for the live view (the display of a running exploration): the alternate screen in raw mode,
//! and the way back.
//!
//! **Invariant.** [`leave`] restores the terminal when the view ends, in the panic hook, before the process suspends
//! itself, and before it ends at once because the operator asked a second time. Only signals without a handler, such
//! as SIGKILL, can end the process without a call of `leave`.

use std::io::{self, IsTerminal, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, TryLockError};
use std::time::Duration;

use everett_host::time::Stopwatch;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// True while the terminal shows the view.
static ON: AtomicBool = AtomicBool::new(false);
/// Locked during a write to the view.
static WRITING: Mutex<()> = Mutex::new(());
/// Maximum wait for a write in progress. The write may hang because the terminal accepts no output.
const WRITE_MAX: Duration = Duration::from_millis(300);

/// True if the view can use the terminal: standard input and output are terminals with cursor control, and the
/// process is in the foreground.
pub(super) fn is_free() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    stdout().is_terminal() && io::stdin().is_terminal() && !dumb && is_foreground()
}

/// True if the process is in the foreground of its terminal.
pub(super) fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Takes over the terminal.
///
/// # Errors
/// Returns an error if the terminal refuses.
pub(super) fn enter() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            leave();
            before(info);
        }));
    });
    ON.store(true, Ordering::SeqCst);
    let entered = enable_raw_mode().and_then(|()| {
        execute!(stdout(), EnterAlternateScreen)?;
        let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        clear(&mut terminal)?;
        Ok(terminal)
    });
    if entered.is_err() {
        leave();
    }
    entered
}

/// Clears the screen, so that the next frame draws all cells.
///
/// `Terminal::clear` is not used: it asks the terminal for the cursor position, and waits seconds if there is no
/// answer.
pub(super) fn clear(terminal: &mut Terminal<CrosstermBackend<Stdout>>) -> io::Result<()> {
    let size = terminal.size()?;
    terminal.resize(size.into())
}

/// Restores the terminal. Does nothing if the view does not use it.
pub(super) fn leave() {
    let clock = Stopwatch::start();
    let _writing = loop {
        match WRITING.try_lock() {
            Ok(guard) => break Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
            // The panicking thread may hold the lock.
            Err(TryLockError::WouldBlock) if clock.elapsed() > WRITE_MAX => break None,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    };
    if ON.swap(false, Ordering::SeqCst) {
        // An error means that the terminal is gone.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// True while the terminal shows the view.
pub(super) fn is_on() -> bool {
    ON.load(Ordering::SeqCst)
}

/// Runs a function that writes to the view. Returns `None` if the view no longer uses the terminal.
pub(super) fn write<R>(f: impl FnOnce() -> R) -> Option<R> {
    let _writing = WRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    is_on().then(f)
}

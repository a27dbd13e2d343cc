//! Handling of Ctrl-C: the first signal requests a clean end, the second ends the process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;

/// Flag that is set when the operator asks the process to end. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    wanted: Arc<AtomicBool>,
    /// Actions of the signals; empty if none are installed.
    actions: Mutex<Vec<SigId>>,
}

/// Signals that ask for an end.
pub const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];
/// Exit status of a process that SIGINT ended, by the convention of shells.
const STATUS_INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Installs handlers for SIGINT and SIGTERM.
    ///
    /// # Errors
    /// Returns an error if the system refuses a handler.
    pub fn install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        interrupt.arm()?;
        Ok(interrupt)
    }

    fn arm(&self) -> io::Result<()> {
        let mut actions = self.0.actions.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in SIGNALS {
            // The order matters: the handler registered first ends the process if the flag is already set, so only a
            // second signal does.
            let wanted = &self.0.wanted;
            actions.push(signal_hook::flag::register_conditional_shutdown(
                signal,
                STATUS_INTERRUPTED,
                wanted.clone(),
            )?);
            actions.push(signal_hook::flag::register(signal, wanted.clone())?);
        }
        Ok(())
    }

    /// Takes the signals away from the handlers until the result is dropped. Meanwhile they do nothing by themselves:
    /// the caller handles [`SIGNALS`], calls [`Interrupt::raise`] at the first one and [`end_at_once`] at the second.
    /// Has no effect if no handlers are installed.
    #[must_use]
    pub fn hold(&self) -> Held {
        let mut actions = self.0.actions.lock().unwrap_or_else(PoisonError::into_inner);
        let installed = !actions.is_empty();
        for action in actions.drain(..) {
            low_level::unregister(action);
        }
        Held { interrupt: self.clone(), installed }
    }

    /// Sets the flag as a signal would.
    pub fn raise(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }

    /// True if the flag is set.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed)
    }
}

/// Signals that are held back from their handlers. The drop gives them back.
#[derive(Debug)]
pub struct Held {
    interrupt: Interrupt,
    installed: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.installed {
            // The system accepted the same handlers before.
            let _ = self.interrupt.arm();
        }
    }
}

/// Ends the process as the second signal does.
pub fn end_at_once() -> ! {
    low_level::exit(STATUS_INTERRUPTED)
}

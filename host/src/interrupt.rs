//! Handling of Ctrl-C: the first signal asks for a clean end, and the second signal ends the process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;

/// A flag that is set when the operator asks the process to end. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    wanted: Arc<AtomicBool>,
    /// Registrations of the installed handlers. Empty if none are installed.
    actions: Mutex<Vec<SigId>>,
}

/// Signals that ask the process to end.
pub const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];
/// Exit status that shells give to a process that SIGINT has ended.
const STATUS_INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Installs handlers for SIGINT and SIGTERM.
    ///
    /// # Errors
    /// Returns an error if the system refuses to install a handler.
    pub fn install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        interrupt.arm()?;
        Ok(interrupt)
    }

    fn arm(&self) -> io::Result<()> {
        let mut actions = self.0.actions.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in SIGNALS {
            // The order of registration matters. The first handler ends the process if the flag is already set, so only
            // a second signal ends it.
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

    /// Removes the handlers until the result is dropped. In the meantime the caller must handle [`SIGNALS`]: it calls
    /// [`Interrupt::raise`] at the first signal and [`end_at_once`] at the second. Has no effect if no handlers are
    /// installed.
    #[must_use]
    pub fn hold(&self) -> Held {
        let mut actions = self.0.actions.lock().unwrap_or_else(PoisonError::into_inner);
        let installed = !actions.is_empty();
        for action in actions.drain(..) {
            low_level::unregister(action);
        }
        Held { interrupt: self.clone(), installed }
    }

    /// Sets the flag, as the first signal does.
    pub fn raise(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }

    /// Clears the flag, after a command that reads further requests has ended what the operator interrupted. Returns true
    /// if it was set.
    pub fn take(&self) -> bool {
        self.0.wanted.swap(false, Ordering::Relaxed)
    }

    /// True if the operator has asked the process to end.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed)
    }
}

/// Handlers that are removed for the life of this value. The drop installs them again.
#[derive(Debug)]
pub struct Held {
    interrupt: Interrupt,
    installed: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.installed {
            // The system has accepted the same handlers before, so an error is not expected.
            let _ = self.interrupt.arm();
        }
    }
}

/// Ends the process at once, as the second signal does.
pub fn end_at_once() -> ! {
    low_level::exit(STATUS_INTERRUPTED)
}

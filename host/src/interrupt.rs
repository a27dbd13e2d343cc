//! Handling of Ctrl-C: the first signal requests a clean end, the second ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Flag that is set when the operator asks the process to end. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// Exit status of a process that SIGINT ended, by the convention of shells.
const STATUS_INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Installs handlers for SIGINT and SIGTERM.
    ///
    /// # Errors
    /// Returns an error if the system refuses a handler.
    pub fn install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the handler registered first ends the process if the flag is already set, so only a
            // second signal does.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                STATUS_INTERRUPTED,
                interrupt.0.clone(),
            )?;
            signal_hook::flag::register(signal, interrupt.0.clone())?;
        }
        Ok(interrupt)
    }

    /// Sets the flag as a signal would.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if the flag is set.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

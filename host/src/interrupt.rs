//! Ctrl-C: the first asks for a clean end, the second ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Whether somebody wants us to end. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The exit status of a process that SIGINT ended, as shells have it.
const STATUS_INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Take over SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The system refuses.
    pub fn install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the flag set.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                STATUS_INTERRUPTED,
                interrupt.0.clone(),
            )?;
            signal_hook::flag::register(signal, interrupt.0.clone())?;
        }
        Ok(interrupt)
    }

    /// As if a signal had come.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a signal came.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

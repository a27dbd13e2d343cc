//! Signals of a terminal for a display that takes over the whole screen.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGSTOP, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level;

use crate::interrupt::SIGNALS;

/// Request of the operator that arrived as a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// SIGINT or SIGTERM: end.
    End,
    /// SIGTSTP: stop until the shell continues the process.
    Suspend,
}

/// Thread that waits for signals. The drop ends it.
#[derive(Debug)]
pub struct Listener {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    /// True once SIGTSTP stops the process again.
    released: Arc<AtomicBool>,
}

impl Listener {
    /// Starts the thread, which calls `on` for each signal.
    ///
    /// # Errors
    /// Returns an error if the system refuses a handler or the thread.
    pub fn start(mut on: impl FnMut(Request) + Send + 'static) -> io::Result<Listener> {
        // The system's own action is not restored with the last handler, so a handler does the same from the drop on.
        let released = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_default(SIGTSTP, Arc::clone(&released))?;
        let [interrupt, terminate] = SIGNALS;
        let mut signals = Signals::new([interrupt, terminate, SIGTSTP])?;
        let handle = signals.handle();
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                on(if signal == SIGTSTP { Request::Suspend } else { Request::End });
            }
        })?;
        Ok(Listener { handle, thread: Some(thread), released })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.released.store(true, Ordering::Relaxed);
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by its hook.
            let _ = thread.join();
        }
    }
}

/// Stops the process as SIGTSTP does by default. Returns when the shell continues it.
///
/// # Errors
/// Returns an error if the system refuses.
pub fn stop_self() -> io::Result<()> {
    low_level::raise(SIGSTOP)
}

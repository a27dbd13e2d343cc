//! Handling of a terminal's signals for a display that takes over the whole screen.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGSTOP, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level;

use crate::interrupt::SIGNALS;

/// A request from the operator that arrived as a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The operator asks the process to end (SIGINT or SIGTERM).
    End,
    /// The operator asks the process to stop until the shell continues it (SIGTSTP).
    Suspend,
}

/// A thread that waits for signals. It ends when this value is dropped.
#[derive(Debug)]
pub struct Listener {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    /// True once this value has been dropped. From then on, SIGTSTP stops the process as usual.
    released: Arc<AtomicBool>,
}

impl Listener {
    /// Starts the thread. It calls `on` for each signal.
    ///
    /// # Errors
    /// Returns an error if the system refuses to install a handler or to start the thread.
    pub fn start(mut on: impl FnMut(Request) + Send + 'static) -> io::Result<Listener> {
        // Removing the last handler does not restore the default action of SIGTSTP. This handler stops the process once
        // `released` is true.
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
            // If the thread has panicked, the panic hook has already reported it.
            let _ = thread.join();
        }
    }
}

/// Stops the process, which is the default action of SIGTSTP. Returns when the shell continues the process.
///
/// # Errors
/// Returns an error if the system refuses to send the signal.
pub fn stop_self() -> io::Result<()> {
    low_level::raise(SIGSTOP)
}

//! Power-off of the machine.

use crate::console;
use rustix::system::{RebootCommand, reboot};

/// Flushes all filesystems and powers the machine off.
pub(crate) fn off() -> ! {
    rustix::fs::sync();
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        console::say(&format!("cannot power off: {error}"));
    }
    // The kernel has failed to power off. PID 1 must not exit, so it sleeps forever.
    loop {
        let _ = rustix::event::poll(&mut [], None);
    }
}

//! Power-off.

use crate::console;
use rustix::system::{RebootCommand, reboot};

/// Flushes all filesystems and powers off. Does not return.
pub(crate) fn off() -> ! {
    rustix::fs::sync();
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        console::say(&format!("cannot power off: {error}"));
    }
    // Reached only if the kernel cannot power off. PID 1 must not exit, so it sleeps forever.
    loop {
        let _ = rustix::event::poll(&mut [], None);
    }
}

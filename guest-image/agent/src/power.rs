//! The end of the machine.

use crate::console;
use rustix::system::{RebootCommand, reboot};

/// Flushes every filesystem and powers off. Does not return while the kernel can power off.
pub(crate) fn off() -> ! {
    rustix::fs::sync();
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        console::say(&format!("cannot power off: {error}"));
    }
    // Only a kernel without any way to power off comes here. PID 1 must not exit, so it sleeps for good.
    loop {
        let _ = rustix::event::poll(&mut [], None);
    }
}

//! Access of calls to the host: registries, progress, interrupts.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use everett_host::interrupt::Interrupt;
use everett_remote::Access;
use everett_session::output::progress::Progress;

use super::error::Error;

/// Access of a call to the host.
pub struct Host<'h> {
    /// Access to registries and mirrors, from which images are built.
    pub access: &'h dyn Access,
    /// Receiver of reports about image builds and boots.
    pub progress: &'h dyn Progress,
    /// Flag that ends a call with [`Error::Interrupted`].
    pub interrupt: Interrupt,
}

/// Host time between two attempts to lock what another call uses.
const LOOK: Duration = Duration::from_millis(5);

impl<'h> Host<'h> {
    /// Returns a host.
    #[must_use]
    pub fn new(access: &'h dyn Access, progress: &'h dyn Progress, interrupt: Interrupt) -> Host<'h> {
        Host { access, progress, interrupt }
    }

    /// Returns an error if the interrupt was raised. A hostile guest can have many things to read.
    pub(crate) fn goes_on(&self) -> Result<(), Error> {
        if self.interrupt.wanted() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Locks what another call can use for long.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the call was interrupted meanwhile.
    pub fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>, Error> {
        loop {
            match mutex.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => self.goes_on()?,
            }
            thread::park_timeout(LOOK);
        }
    }
}

//! What calls need of the host: registries, progress, interrupts.

use everett_host::interrupt::Interrupt;
use everett_remote::Access;
use everett_session::output::progress::Progress;

use super::error::Error;

/// What calls need of the host.
pub struct Host<'h> {
    /// Access to registries and mirrors, from which images are built.
    pub access: &'h dyn Access,
    /// Receiver of reports about image builds and boots.
    pub progress: &'h dyn Progress,
    /// Flag that ends a call with [`Error::Interrupted`].
    pub interrupt: Interrupt,
}

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
}

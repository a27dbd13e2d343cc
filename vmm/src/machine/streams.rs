//! The machine's streams of random numbers.

use chacha20::ChaCha20Rng;
use everett_streams::{Lineage, Owner, Purpose, Streams};

use super::Machine;

impl Machine {
    /// Returns the machine's random streams.
    pub fn streams(&self) -> &Streams {
        &self.state.streams
    }

    /// Returns the machine's random stream for `purpose`. Faults draw from these streams.
    pub fn stream(&mut self, purpose: Purpose) -> &mut ChaCha20Rng {
        self.state.streams.get(purpose)
    }

    /// Restarts all random streams of this machine with keys derived from `lineage`. Every later draw then depends on
    /// `lineage`. For a timeline, `lineage` is a function of the seed and the forks; for a boot, of the boot seed.
    pub fn restart_streams(&mut self, lineage: &Lineage) {
        self.state.streams = Streams::new(lineage, Owner::Node(self.name()));
    }
}

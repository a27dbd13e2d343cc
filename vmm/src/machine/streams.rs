//! The machine's random streams.

use everett_streams::{Lineage, Owner, Purpose, Streams};
use rand_chacha::ChaCha20Rng;

use super::Machine;
use crate::engine::Engine;

impl<E: Engine> Machine<E> {
    /// The machine's streams, to look at.
    pub fn streams(&self) -> &Streams {
        &self.state.streams
    }

    /// The machine's stream for a purpose, for what is done to it.
    pub fn stream(&mut self, purpose: Purpose) -> &mut ChaCha20Rng {
        self.state.streams.get(purpose)
    }

    /// From here on everything that is drawn for this machine follows `lineage`, from the beginning.
    pub fn restart_streams(&mut self, lineage: &Lineage) {
        self.state.streams = Streams::new(lineage, Owner::Node(self.name()));
    }
}

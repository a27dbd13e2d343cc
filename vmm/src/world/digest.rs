//! All of a world in one hash.

use super::World;
use crate::digest::{Breakdown, Digest, serialized};
use crate::engine::Engine;

impl<E: Engine> World<E> {
    /// The digest of everything that decides what happens next.
    pub fn digest(&mut self) -> Digest {
        self.breakdown().total()
    }

    /// The digests of the parts: each node's machine, then what is between them.
    pub fn breakdown(&mut self) -> Breakdown {
        let mut parts = Vec::new();
        for node in &mut self.nodes {
            parts.push((node.machine.name().to_owned(), node.machine.digest()));
            parts.push((format!("{}: clock and power", node.machine.name()), serialized(&node.state)));
        }
        parts.push(("the wire".to_owned(), serialized(&self.wire)));
        parts.push(("the round".to_owned(), serialized(&self.round)));
        Breakdown { parts }
    }
}

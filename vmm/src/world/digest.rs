//! Digest of a world.

use super::{Node, World};
use crate::digest::{Breakdown, Digest, serialized};

impl World {
    /// Returns the digest of everything that decides the world's further behaviour.
    pub fn digest(&mut self) -> Digest {
        self.breakdown().total()
    }

    /// Returns two digests per node (its machine; its clock and power), then the digests of the wire, of the round (the
    /// world's vtime, and the frames that are not on the wire yet) and of Everett's own endpoint on the wire.
    pub fn breakdown(&mut self) -> Breakdown {
        let mut between = self.between().into_iter();
        let mut parts = Vec::new();
        for (node, of_node) in self.nodes.iter_mut().zip(between.by_ref()) {
            parts.extend([(node.machine.name().to_owned(), node.machine.digest()), of_node]);
        }
        parts.extend(between);
        Breakdown { parts }
    }

    /// Returns the digests of everything except the machines: each node's clock and power, in node order, then the
    /// wire, the round, and Everett's own endpoint on the wire, if it is plugged in.
    pub fn between(&self) -> Vec<(String, Digest)> {
        let nodes = self.nodes.iter();
        let of_node =
            |node: &Node| (format!("{}: clock and power", node.machine.name()), serialized(&node.state));
        let mut parts: Vec<_> = nodes.map(of_node).collect();
        parts.push(("the wire".to_owned(), serialized(&self.wire)));
        parts.push(("the round".to_owned(), serialized(&self.round)));
        if let Some(host) = &self.host {
            parts.push(("the host".to_owned(), host.digest()));
        }
        parts
    }
}

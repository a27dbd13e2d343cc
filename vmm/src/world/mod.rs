//! A world: machines on a wire, interleaved exactly.
//!
//! - `node`: a machine with its clock and its power; `clock`: the world's vtime against a node's
//! - `rounds`: conservative discrete-event simulation: who runs how far, and when frames change hands
//! - `done`: what is done to nodes from outside: power, pauses, speed, drift, stalls
//! - `moment`: all of it taken at a stop and brought back; `digest`: all of it in one hash
//!
//! **Rounds.** Nodes run one after the other in the order of their numbers, each up to the round's *horizon*. The horizon is
//! so near that nothing that a node sends in the round can reach another one in it: the first vtime at which any node does
//! something or a frame arrives, and the wire's least latency after that. Then the frames that were sent are put on the wire
//! in the order of (vtime, node, order of sending), and those that arrive before the next horizon are handed to their cards.
//! Timers and devices of a node end no round; what the owner of the world has planned ([`WorldUntil::event`]) does.
//!
//! **Invariants.**
//! - The horizon is state, and a function of state: where a run is cut, and what looks at a world, changes nothing.
//! - At a stop at a vtime every node that runs has come to it, and to no later boundary than it must.
//! - What is done to a world between two runs is done at [`World::vtime`], or to one node at its own place.

mod clock;
mod digest;
mod done;
mod moment;
mod node;
mod rounds;

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::machine::{Machine, Stop};
use crate::wire::{ConfigError, Delivery, PortConfig, Wire, WireConfig};

pub use clock::NodeClock;
pub use moment::{WORLD_VERSION, WorldMoment};
pub use node::{Node, NodeState};

/// Nodes of a world: the ports of a wire.
pub const NODES_MAX: usize = crate::wire::PORTS_MAX;

/// What of a world is neither node nor wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Round {
    /// Every node that runs has come to here.
    now: u64,
    /// No node runs further in this round.
    horizon: u64,
    /// Sent in this round, with the world's vtime and the node's number.
    sent: Vec<(u64, u8, Vec<u8>)>,
}

/// Machines on a wire.
pub struct World<E: Engine> {
    nodes: Vec<Node<E>>,
    wire: Wire,
    round: Round,
    /// Frames for an observer, if there is one.
    capture: Option<Vec<Captured>>,
}

/// A frame at a node's card, with its number on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captured {
    /// It was sent.
    Sent {
        /// By which port.
        port: u8,
        /// When, in nanoseconds of vtime.
        at: u64,
        /// Its number.
        frame: u64,
        /// From the destination address on.
        bytes: Vec<u8>,
    },
    /// It arrived.
    Delivered(Delivery),
}

/// When a run of a world ends.
#[derive(Debug, Clone, Copy)]
pub struct WorldUntil<'a> {
    /// At this vtime, in nanoseconds.
    pub vtime: u64,
    /// Bit i: after the instruction with which a guest ended a line on console port i.
    pub port_lines: u8,
    /// When the owner will do something by itself next, whoever watches: a function of what has happened. No round goes
    /// beyond it, so that it is done before anything later.
    pub event: u64,
    /// The node that the rest is about.
    pub node: usize,
    /// When exactly so many instructions of that node have retired.
    pub icount: u64,
    /// Before an instruction of that node at one of these linear addresses. Sorted.
    pub breakpoints: &'a [u64],
}

/// Why a run of a world ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldStop {
    /// The vtime was reached.
    Time,
    /// A node stopped before it. Others may have run further or less far, within the round.
    Node {
        /// Which.
        node: usize,
        /// Why.
        stop: Stop,
    },
}

impl<E: Engine> World<E> {
    /// A world of machines that have just been switched on, at vtime 0, with a card each in the wire's ports, in this order.
    /// `seed` is the wire's.
    ///
    /// # Errors
    /// The wire cannot be.
    pub fn new(machines: Vec<Machine<E>>, mut wire: WireConfig, seed: u64) -> Result<World<E>, ConfigError> {
        wire.ports = machines.iter().map(port_of).collect();
        let wire = Wire::new(wire, seed)?;
        let nodes = machines.into_iter().map(|machine| Node::new(machine, 0)).collect();
        let round = Round { now: 0, horizon: 0, sent: Vec::new() };
        Ok(World { nodes, wire, round, capture: None })
    }

    /// Nanoseconds of vtime: every node that runs has come to here.
    pub fn vtime(&self) -> u64 {
        self.round.now
    }
    /// The nodes, by number.
    pub fn nodes(&self) -> &[Node<E>] {
        &self.nodes
    }
    /// A node.
    ///
    /// # Panics
    /// There is none of that number.
    pub fn node_mut(&mut self, node: usize) -> &mut Node<E> {
        &mut self.nodes[node]
    }
    /// The wire, for its log and its faults.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }
    /// Keep frames for [`World::take_captured`] from here on, or do not.
    pub fn capture(&mut self, on: bool) {
        self.capture = on.then(Vec::new);
    }
    /// Frames since the last call, if they are kept: take them often.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        self.capture.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// Instructions retired by all nodes.
    pub fn icount(&self) -> u64 {
        self.nodes.iter().map(Node::retired).fold(0, u64::saturating_add)
    }
}

/// A machine's place on the wire.
fn port_of<E: Engine>(machine: &Machine<E>) -> PortConfig {
    PortConfig { name: machine.name().to_owned(), mac: machine.mac().unwrap_or([2, 0, 0, 0, 0, 0]) }
}

//! A world: machines on a wire, interleaved exactly.
//!
//! - `node`: a machine with its clock and its power; `clock`: the world's vtime against a node's
//! - `rounds`: conservative discrete-event simulation: who runs how far, and when frames change hands
//! - `done`: what is done to nodes from outside: power, pauses, speed, drift, stalls; `host`: who talks to them from outside
//! - `moment`: all of it taken at a stop and brought back; `digest`: all of it in one hash
//!
//! **Rounds.** Nodes run one after the other in the order of their numbers, each up to the round's *horizon*. The horizon is
//! so near that nothing that a node sends in the round can reach another one in it: the first vtime at which any node does
//! something or a frame arrives, and the wire's least latency after that. What arrives before it is given to the nodes first,
//! each of which takes a frame when it has come to where that arrives. At the end the frames that were sent before it are put
//! on the wire in the order of (vtime, node, order of sending). What the owner does comes in between rounds.
//!
//! **Invariants.**
//! - Rounds leave no trace. A run may be cut anywhere, and so many rounds become more: every frame is sent, and every one is
//!   taken, at the same place in the same order. At a stop at a vtime the state of a world is the same however it came there.
//! - At a stop at a vtime every node that runs has come to it, and to no later boundary than it must; what was sent before it
//!   is on the wire, and what arrived before it is at its node.
//! - What is done to a world between two runs is done at [`World::vtime`], or to one node at its own place. Whoever acts on
//!   more than one node in answer to what a node did acts a lookahead after that or later.

mod clock;
mod digest;
mod done;
mod host;
mod moment;
mod node;
mod rounds;

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::machine::{Machine, Stop};
use crate::wire::endpoint::Endpoint;
use crate::wire::{ConfigError, Delivery, PortConfig, Wire, WireConfig};

pub use clock::NodeClock;
pub use host::PlugError;
pub use moment::{WORLD_VERSION, WorldMoment};
pub use node::{Node, NodeState};

/// Nodes of a world: the ports of a wire.
pub const NODES_MAX: usize = crate::wire::PORTS_MAX;

/// What of a world is neither node nor wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Round {
    /// Every node that runs has come to here.
    now: u64,
    /// Sent and not yet on the wire, with the world's vtime and the node's number: in the order of these two. A card's own
    /// rate ([`FRAMES_PER_MS_MAX`](crate::virtio::net::FRAMES_PER_MS_MAX)) bounds it.
    sent: Vec<(u64, u8, Vec<u8>)>,
}

/// Machines on a wire.
pub struct World<E: Engine> {
    nodes: Vec<Node<E>>,
    wire: Wire,
    round: Round,
    /// The host's own machine, while it is there.
    host: Option<Endpoint>,
    /// Frames for an observer, if there is one.
    capture: Option<Capture>,
}

/// Bytes of frames that are kept until an observer takes them. More are lost to it.
pub const CAPTURE_BYTES_MAX: usize = 256 << 20;

/// Frames that an observer has not taken.
#[derive(Debug, Default)]
struct Capture {
    frames: Vec<Captured>,
    bytes: usize,
    lost: u64,
}

impl Capture {
    fn keep(&mut self, frame: Captured) {
        let (Captured::Sent { bytes, .. } | Captured::Delivered(Delivery { bytes, .. })) = &frame;
        if self.bytes.saturating_add(bytes.len()) > CAPTURE_BYTES_MAX {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        self.bytes += bytes.len();
        self.frames.push(frame);
    }
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

impl Captured {
    /// When it was sent, or arrived, in nanoseconds of vtime.
    #[must_use]
    pub fn at(&self) -> u64 {
        match self {
            Captured::Sent { at, .. } => *at,
            Captured::Delivered(delivery) => delivery.at,
        }
    }
}

/// When a run of a world ends.
#[derive(Debug, Clone, Copy)]
pub struct WorldUntil<'a> {
    /// At this vtime, in nanoseconds.
    pub vtime: u64,
    /// Bit i: after the instruction with which a guest ended a line on console port i.
    pub port_lines: u8,
    /// The node that the rest is about.
    pub node: usize,
    /// When exactly so many instructions of that node have retired, whatever machine it was.
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
    /// A world of machines that have just been switched on, at vtime 0, with a card each in the wire's first ports, in this
    /// order. Ports that `wire` has already come after them, for [`World::plug`]. `seed` is the boot seed.
    ///
    /// # Errors
    /// The wire cannot be.
    pub fn new(machines: Vec<Machine<E>>, mut wire: WireConfig, seed: u64) -> Result<World<E>, ConfigError> {
        wire.ports.splice(..0, machines.iter().map(port_of));
        let mut wire = Wire::new(wire, seed)?;
        for port in machines.len()..wire.ports().len() {
            wire.detach(port as u8, 0);
        }
        let nodes = machines.into_iter().map(|machine| Node::new(machine, 0)).collect();
        let round = Round { now: 0, sent: Vec::new() };
        Ok(World { nodes, wire, round, host: None, capture: None })
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
    /// All nodes, by number.
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node<E>> {
        self.nodes.iter_mut()
    }
    /// The wire, for its log and its faults.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }
    /// Keep frames for [`World::take_captured`] from here on, or do not.
    pub fn capture(&mut self, on: bool) {
        self.capture = on.then(Capture::default);
    }
    /// Frames since the last call, if they are kept, in the order of their vtimes: at most [`CAPTURE_BYTES_MAX`] bytes of
    /// them. After a stop at a vtime none is missing that lies before it.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        let Some(capture) = &mut self.capture else { return Vec::new() };
        capture.bytes = 0;
        let mut frames = std::mem::take(&mut capture.frames);
        // Within a round those that arrive are known before those that are sent.
        frames.sort_by_key(Captured::at);
        frames
    }
    /// Frames that were lost to the observer because nobody took earlier ones.
    pub fn captured_lost(&self) -> u64 {
        self.capture.as_ref().map_or(0, |capture| capture.lost)
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

//! A world: machines on a wire, executed in an exact order.
//!
//! - `node`: a machine with its clock and its power; `clock`: converts between the world's vtime and a node's vtime
//! - `rounds`: conservative discrete-event simulation: how far each node runs, and when frames are exchanged
//! - `actions`: changes a node's power, speed and clock, pauses it, and makes it stall at random instructions; `host`:
//!   the endpoint through which Everett talks to nodes
//! - `moment`: takes and restores moments of the whole world; `digest`: digest of the whole world
//!
//! **Rounds.** In each round, the nodes run one after the other in the order of their numbers, up to the round's
//! *horizon*. The horizon is the first vtime at which any node acts or a frame arrives, plus the wire's minimum
//! latency. A frame that a node sends in the round therefore cannot reach another node before the horizon.
//!
//! At the start of a round, the world gives each node the frames that arrive before the horizon. A node takes a frame
//! when the node's time reaches the frame's arrival. At the end of the round, the frames that were sent before the
//! horizon go onto the wire. They are sorted by vtime, then node, then order of sending. The owner of the world (a
//! session or a test) acts between rounds.
//!
//! **Invariants.**
//! - Rounds are invisible to guests. A stop adds a round, but every frame is still sent and taken at the same vtime in
//!   the same order. The state of a world at a stop does not depend on earlier stops.
//! - At a stop at a vtime, every running node is at its first boundary (a point at which its machine can stop) at or
//!   after that vtime. Frames that were sent before that vtime are on the wire, and frames that arrived before it are
//!   at their nodes.
//! - Between two runs, the owner acts on the whole world at [`World::vtime`], or on one node at that node's own vtime.
//!   If the owner reacts to one node by acting on several nodes, it does so at least a lookahead (the wire's minimum
//!   latency) later.

mod actions;
mod clock;
mod digest;
mod host;
mod moment;
mod node;
mod rounds;

use everett_streams::BootSeed;
use serde::{Deserialize, Serialize};

use crate::machine::{Machine, Stop};
use crate::wire::endpoint::Endpoint;
use crate::wire::{ConfigError, Delivery, PortConfig, Wire, WireConfig};

pub use clock::NodeClock;
pub use host::PlugError;
pub use moment::{WORLD_VERSION, WorldMoment};
pub use node::{Node, NodeState};

/// State of a world except its nodes and its wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Round {
    /// World's vtime that every running node has reached.
    now: u64,
    /// Frames that are sent and not on the wire yet, sorted by vtime and node. Each has the world's vtime of sending,
    /// the node's number and the bytes. The maximum sending rate of a card
    /// ([`FRAMES_PER_MS_MAX`](crate::virtio::net::FRAMES_PER_MS_MAX)) bounds them.
    sent: Vec<(u64, u8, Vec<u8>)>,
}

/// Machines that a wire connects.
pub struct World {
    nodes: Vec<Node>,
    wire: Wire,
    round: Round,
    /// Everett's own endpoint, while it is plugged in.
    host: Option<Endpoint>,
    /// Captured frames, if capture is switched on.
    capture: Option<Capture>,
}

/// Maximum bytes of captured frames that wait for an observer. Later frames are lost to the observer.
pub const CAPTURE_BYTES_MAX: usize = 256 << 20;

/// Captured frames that no observer has taken.
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

/// Frame that was captured at a node's card, with its number on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captured {
    /// A card sent the frame.
    Sent {
        /// Port that sent it.
        port: u8,
        /// Time of sending, in nanoseconds of vtime.
        at: u64,
        /// Number of the frame.
        frame: u64,
        /// Content from the destination address on.
        bytes: Vec<u8>,
    },
    /// The frame arrived at a card.
    Delivered(Delivery),
}

impl Captured {
    /// Returns the time of sending or arrival, in nanoseconds of vtime.
    #[must_use]
    pub fn at(&self) -> u64 {
        match self {
            Captured::Sent { at, .. } => *at,
            Captured::Delivered(delivery) => delivery.at,
        }
    }
}

/// Conditions that stop a run of a world.
#[derive(Debug, Clone, Copy)]
pub struct WorldUntil {
    /// Vtime at which the run stops, in nanoseconds.
    pub vtime: u64,
    /// If bit i is set, the run stops after the instruction with which any guest ends a line on console port i.
    pub port_lines: u8,
    /// Node to which `icount` applies.
    pub node: usize,
    /// Count of that node ([`Node::retired`]) at which the run stops, exactly. A node that restarts gets a new machine;
    /// the count continues.
    pub icount: u64,
}

/// Reason why a run of a world stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldStop {
    /// The vtime was reached.
    Time,
    /// A node stopped before the vtime. Other nodes may be anywhere within the round.
    Node {
        /// Number of the node.
        node: usize,
        /// Reason of its stop.
        stop: Stop,
    },
}

impl World {
    /// Creates a world of machines that have just been switched on. The world's vtime is 0. The cards of `machines` get
    /// the wire's first ports, in the order of `machines`. The ports that `wire` lists get the next numbers and stay
    /// unplugged until [`World::plug`] uses them.
    ///
    /// # Errors
    /// Returns an error if the wire's configuration is invalid.
    pub fn new(
        machines: Vec<Machine>,
        mut wire: WireConfig,
        boot_seed: BootSeed,
    ) -> Result<World, ConfigError> {
        wire.ports.splice(..0, machines.iter().map(port_of));
        let mut wire = Wire::new(wire, boot_seed)?;
        for port in machines.len()..wire.ports().len() {
            wire.detach(port as u8, 0);
        }
        let nodes = machines.into_iter().map(|machine| Node::new(machine, 0)).collect();
        let round = Round { now: 0, sent: Vec::new() };
        Ok(World { nodes, wire, round, host: None, capture: None })
    }

    /// Returns the world's vtime, in nanoseconds. Every running node has reached it.
    pub fn vtime(&self) -> u64 {
        self.round.now
    }
    /// Returns the nodes, indexed by number.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// Returns a node.
    ///
    /// # Panics
    /// Panics if no node has this number.
    pub fn node_mut(&mut self, node: usize) -> &mut Node {
        &mut self.nodes[node]
    }
    /// Iterates over all nodes in the order of their numbers.
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut()
    }
    /// Returns the wire, for access to its log and its faults.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }
    /// Switches the capture of frames for [`World::take_captured`] on or off.
    pub fn capture(&mut self, on: bool) {
        self.capture = on.then(Capture::default);
    }
    /// Takes the frames captured since the last call, in the order of their vtimes: at most [`CAPTURE_BYTES_MAX`]
    /// bytes. After a stop at a vtime, these include all frames before that vtime.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        let Some(capture) = &mut self.capture else { return Vec::new() };
        capture.bytes = 0;
        let mut frames = std::mem::take(&mut capture.frames);
        // Within a round, all arrivals are captured before any sending, so the frames must be sorted.
        frames.sort_by_key(Captured::at);
        frames
    }
    /// Returns the number of frames that were not captured because the observer had not taken earlier ones.
    pub fn captured_lost(&self) -> u64 {
        self.capture.as_ref().map_or(0, |capture| capture.lost)
    }
    /// Returns the sum of the nodes' counts ([`Node::retired`]).
    pub fn icount(&self) -> u64 {
        self.nodes.iter().map(Node::retired).fold(0, u64::saturating_add)
    }
}

/// Returns the configuration of a machine's port.
fn port_of(machine: &Machine) -> PortConfig {
    PortConfig { name: machine.name().to_owned(), mac: machine.mac().unwrap_or([2, 0, 0, 0, 0, 0]) }
}

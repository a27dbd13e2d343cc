//! A world: machines on a wire, interleaved exactly.
//!
//! - `node`: a machine with its clock and its power; `clock`: conversion between the world's vtime and a node's
//! - `rounds`: conservative discrete-event simulation: how far each node runs, and when frames change hands
//! - `actions`: the owner's actions on nodes: power, pauses, speed, drift, stalls; `host`: the endpoint that talks to
//!   nodes
//! - `moment`: the whole world stored at a stop and restored; `digest`: the whole world in one hash
//!
//! **Rounds.** Nodes run one after the other in the order of their numbers, each up to the round's *horizon*. The
//! horizon is so near that no frame that a node sends in the round can reach another node within it: it is the first
//! vtime at which any node acts or a frame arrives, plus the wire's least latency. Frames that arrive before it are
//! given to the nodes first; each node takes a frame when its time reaches the frame's arrival. At the end of the
//! round, the frames that were sent before the horizon are put on the wire, in the order of (vtime, node, order of
//! sending). The owner acts between rounds.
//!
//! **Invariants.**
//! - Rounds are invisible. A run may be cut anywhere, which adds rounds: every frame is still sent and taken at the
//!   same place in the same order. At a stop at a vtime, the state of a world does not depend on how it got there.
//! - At a stop at a vtime, every running node is at the first boundary at or after that vtime. Frames that were sent
//!   before it are on the wire, and frames that arrived before it are at their nodes.
//! - Between two runs, the owner acts on a world at [`World::vtime`], or on one node at that node's own place. An
//!   owner that reacts to one node by acting on several nodes does so at least a lookahead later.

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

/// State of a world besides its nodes and its wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Round {
    /// Vtime that every running node has reached.
    now: u64,
    /// Frames that were sent and are not on the wire yet: the world's vtime, the node's number and the bytes, in the
    /// order of the first two.
    /// The sending rate of a card ([`FRAMES_PER_MS_MAX`](crate::virtio::net::FRAMES_PER_MS_MAX)) bounds them.
    sent: Vec<(u64, u8, Vec<u8>)>,
}

/// Machines on a wire.
pub struct World {
    nodes: Vec<Node>,
    wire: Wire,
    round: Round,
    /// The host's own machine, while it is plugged in.
    host: Option<Endpoint>,
    /// Frames for an observer, if frames are captured.
    capture: Option<Capture>,
}

/// Maximum bytes of frames that are kept until an observer takes them. Later frames are lost to it.
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

/// Frame at a node's card, with its number on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captured {
    /// A card sent it.
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
    /// It arrived at a card.
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

/// Conditions at which a run of a world ends.
#[derive(Debug, Clone, Copy)]
pub struct WorldUntil<'a> {
    /// Vtime at which it ends, in nanoseconds.
    pub vtime: u64,
    /// Ports whose lines end the run: bit i stops it after the instruction with which a guest ended a line on console
    /// port i.
    pub port_lines: u8,
    /// Node to which the remaining conditions apply.
    pub node: usize,
    /// Count of that node's retired instructions at which the run ends, exactly; restarts of its machine do not reset
    /// this count.
    pub icount: u64,
    /// Linear addresses, sorted: the run ends before an instruction of that node at one of them.
    pub breakpoints: &'a [u64],
}

/// Reason for which a run of a world ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldStop {
    /// The vtime was reached.
    Time,
    /// A node stopped before the vtime. Other nodes are at other places within the round.
    Node {
        /// Number of the node.
        node: usize,
        /// Reason of its stop.
        stop: Stop,
    },
}

impl World {
    /// Creates a world at vtime 0 of machines that have just been switched on.
    /// Their cards are in the wire's first ports, in this order. The ports that `wire` already has come after them, for
    /// [`World::plug`].
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

    /// Returns the vtime, in nanoseconds, that every running node has reached.
    pub fn vtime(&self) -> u64 {
        self.round.now
    }
    /// Returns the nodes, by number.
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
    /// Iterates over all nodes, by number.
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut()
    }
    /// Returns the wire, for its log and its faults.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }
    /// Switches the capture of frames for [`World::take_captured`] on or off.
    pub fn capture(&mut self, on: bool) {
        self.capture = on.then(Capture::default);
    }
    /// Takes the frames captured since the last call, in the order of their vtimes: at most [`CAPTURE_BYTES_MAX`]
    /// bytes. After a stop at a vtime, all frames before it are captured.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        let Some(capture) = &mut self.capture else { return Vec::new() };
        capture.bytes = 0;
        let mut frames = std::mem::take(&mut capture.frames);
        // Within a round, arrivals are captured before frames that are sent.
        frames.sort_by_key(Captured::at);
        frames
    }
    /// Returns the number of frames that the observer lost because earlier ones were not taken.
    pub fn captured_lost(&self) -> u64 {
        self.capture.as_ref().map_or(0, |capture| capture.lost)
    }
    /// Returns the number of instructions retired by all nodes.
    pub fn icount(&self) -> u64 {
        self.nodes.iter().map(Node::retired).fold(0, u64::saturating_add)
    }
}

/// Returns the configuration of a machine's port.
fn port_of(machine: &Machine) -> PortConfig {
    PortConfig { name: machine.name().to_owned(), mac: machine.mac().unwrap_or([2, 0, 0, 0, 0, 0]) }
}

//! The wire: an Ethernet switch and the links between nodes.
//!
//! The wire does not know machines: frames and deliveries have a port number and a vtime.
//!
//! A link leads from one node through the switch to another. The frames from one of the two nodes to the other form a
//! *direction*, by which faults select frames ([`Links`](everett_fault::Links)). The switch decides at once which
//! directions a frame takes. Each direction has a queue with a bandwidth, a latency, and active faults.
//!
//! Map:
//! - `config`: ports and links; `switch`: chooses the ports to which a frame goes
//! - `link`: one direction, its queue and its order; `in_flight`: all frames on their way, and their bounds
//! - `active`: active faults, with port numbers in place of node names (`pairs`: sets of directions); `frame_fate`: the
//!   random draws for a frame
//! - `send`: puts a card's frames into the queues; `arrive`: passes frames from links to cards; `change`: begins and
//!   ends faults, and switches the power of nodes
//! - [`log`]: outcomes of frames; [`summary`]: the content of a frame in one line; [`pcapng`]: captures
//! - [`endpoint`]: Everett's own TCP/IP stack at a port of the switch
//! - `stored`: encodes a wire, and validates one that comes from a file
//!
//! Elsewhere: cards ([`crate::virtio::net`]), the order in which nodes execute, and when faults begin and end.
//!
//! **Calls** must come in the order of their vtimes, with one exception: the vtime of a call to [`Wire::pop_due`] may
//! exceed the vtimes of later calls to [`Wire::send`] by up to [`Wire::lookahead_ns`], but not the vtime of the next
//! change of faults or power. The call decides all arrivals up to its vtime. Between two changes, frames of the same
//! vtime must come in the order of their ports.
//!
//! **Invariants.**
//! - A frame arrives [`Wire::lookahead_ns`] after it was sent, or later, because faults only add latency. A frame that
//!   a fault held arrives at least [`Wire::lookahead_ns`] after the fault's end.
//! - Frames of one direction arrive in the order in which they were sent, unless a fault reorders, duplicates or delays
//!   some of them.
//! - Arrivals and their vtimes are a function of configuration, seed, and the calls with their vtimes. They do not
//!   depend on when the owner takes deliveries, or on the log.
//! - Faults on one direction do not change the draws of another direction (`frame_fate`).
//! - Everything is bounded. A frame beyond a bound is dropped and logged.

mod active;
mod arrive;
mod change;
mod config;
pub mod endpoint;
mod frame_fate;
mod in_flight;
mod link;
pub mod log;
mod pairs;
pub mod pcapng;
mod send;
mod stored;
pub mod summary;
mod switch;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use active::FaultError;
use active::Faults;
use config::Topology;
pub use config::{
    BITS_PER_S_MAX, BITS_PER_S_MIN, ConfigError, LATENCY_NS_MIN, LinkConfig, LinkOverride, NAME_BYTES_MAX,
    NO_LINK, PORTS_MAX, PortConfig, QUEUE_BYTES_MAX, QUEUE_BYTES_MIN, WireConfig,
};
use everett_streams::{BootSeed, Lineage, Owner, Streams};
use in_flight::InFlight;
pub use in_flight::{BYTES_MAX, FRAMES_MAX, READY_FRAMES_MAX};
use link::Item;
use log::{DropReason, FrameStep, FrameStepKind, Log};
use summary::Summary;
use switch::Table;
pub use switch::{HEADER_BYTES, MACS_PER_PORT_MAX};

/// A frame that arrives at a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Time of arrival, in nanoseconds of vtime.
    pub at: u64,
    /// Port at which the frame arrives.
    pub port: u8,
    /// Number of the frame.
    pub frame: u64,
    /// Bytes of the frame from the destination address on, without the checksum.
    pub bytes: Vec<u8>,
}

/// All state that decides a wire's behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    topology: Topology,
    streams: Streams,
    /// Vtime and port of the last frame that was sent. After a change of faults or power: the vtime of the change, and
    /// port 0.
    last: (u64, u8),
    /// Vtime up to which arrivals are decided.
    now: u64,
    next_frame: u64,
    next_seq: u64,
    /// Ports with power: bit i is set if the node at port i has power.
    attached: u64,
    table: Table,
    faults: Faults,
    flight: InFlight,
}

/// A switch with its links. Its stored form is its state without the log. Two wires are equal if they will behave in
/// the same way.
#[derive(Debug, Clone)]
pub struct Wire {
    state: State,
    log: Log,
}

impl PartialEq for Wire {
    fn eq(&self, other: &Wire) -> bool {
        self.state == other.state
    }
}

impl Eq for Wire {}

impl Wire {
    /// Creates a wire without frames and faults. All ports have power.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid.
    pub fn new(config: WireConfig, boot_seed: BootSeed) -> Result<Wire, ConfigError> {
        let topology = Topology::try_from(config)?;
        let flight = InFlight::new(topology.directions());
        let state = State {
            topology,
            streams: Streams::new(&Lineage::boot(boot_seed), Owner::Wire),
            last: (0, 0),
            now: 0,
            next_frame: 0,
            next_seq: 0,
            attached: u64::MAX,
            table: Table::default(),
            faults: Faults::default(),
            flight,
        };
        Ok(Wire { state, log: Log::default() })
    }

    /// Returns the configuration of the ports.
    #[must_use]
    pub fn ports(&self) -> &[PortConfig] {
        self.state.topology.ports()
    }

    /// Returns the port of the node with this name.
    #[must_use]
    pub fn port(&self, node: &str) -> Option<u8> {
        self.state.topology.port(node)
    }

    /// Returns the minimum time from a frame's sending to its arrival, in nanoseconds, i.e. the minimum latency of all
    /// links.
    #[must_use]
    pub fn lookahead_ns(&self) -> u64 {
        self.state.topology.lookahead()
    }

    /// Returns the latest vtime of the wire, in nanoseconds. A world that restores a wire must not be at an earlier
    /// vtime.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        self.state.now.max(self.state.last.0)
    }

    /// Restarts the wire's random streams, with keys derived from `lineage`, the key of a timeline or of a boot.
    pub fn restart_streams(&mut self, lineage: &Lineage) {
        self.state.streams = Streams::new(lineage, Owner::Wire);
    }

    /// Returns the wire's random streams.
    #[must_use]
    pub fn streams(&self) -> &Streams {
        &self.state.streams
    }

    /// Takes the steps (outcomes of frames) logged since the last call, in the order of vtime.
    pub fn take_steps(&mut self) -> Vec<FrameStep> {
        self.log.take()
    }

    /// Returns the number of steps that were not logged because the observer had not taken earlier ones.
    #[must_use]
    pub fn steps_lost(&self) -> u64 {
        self.log.lost()
    }

    /// Closes the log at vtime `at`. The outcome TIMEOUT goes to frames that a fault holds, and to frames on their way
    /// that were sent at least [`log::TIMEOUT_NS`] before `at`.
    pub fn close_log(&mut self, at: u64) {
        let flight = &self.state.flight;
        let late = flight.way().map(|(_, item)| item).filter(|item| is_late(item.sent_at, at));
        let open = flight.held_back.iter().chain(flight.held_up.iter()).chain(late).filter(|item| !item.copy);
        for item in open {
            self.log.push(step(item, at, FrameStepKind::Timeout));
        }
    }

    /// Returns the number of frames on their way, including frames that faults hold and frames that the owner has not
    /// taken.
    #[must_use]
    pub fn frames_on_way(&self) -> usize {
        let flight = &self.state.flight;
        flight.way().count()
            + flight.held_back.iter().count()
            + flight.held_up.iter().count()
            + flight.ready.len()
    }

    /// True if the node at `port` has power.
    #[must_use]
    pub fn is_attached(&self, port: u8) -> bool {
        self.state.attached >> (port % PORTS_MAX as u8) & 1 != 0
    }

    /// Logs that a frame in a link never arrives. If `item` is an extra copy of a frame, logs nothing.
    fn lose(&mut self, item: &Item, at: u64, why: DropReason) {
        if !item.copy {
            self.log.push(step(item, at, FrameStepKind::Drop { why }));
        }
    }
}

fn is_late(sent_at: u64, at: u64) -> bool {
    at.saturating_sub(sent_at) >= log::TIMEOUT_NS
}

fn step(item: &Item, vtime: u64, kind: FrameStepKind) -> FrameStep {
    FrameStep {
        kind,
        vtime,
        sent_at: item.sent_at,
        from: item.from,
        to: Some(item.to),
        frame: item.frame,
        len: item.bytes.len() as u32,
        flipped: item.flipped,
        summary: Summary::of(&item.bytes),
    }
}

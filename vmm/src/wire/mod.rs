//! The wire: an Ethernet switch and the links between it and each node's card. It knows no machines: frames go in with port
//! and vtime, deliveries come out with port and vtime.
//!
//! A link joins two nodes, through the switch: what a [`Links`](crate::fault::Links) means by the frames from one to the
//! other is one *direction*. The switch decides at once which directions a frame takes; each then has a queue with a
//! bandwidth, a latency, and the faults that are active on it.
//!
//! Map:
//! - `config`: ports and links; `switch`: which port a frame goes to
//! - `link`: one direction: its queue, its order; `flight`: everything that is on its way, and bounds
//! - `active`: faults with ports for names (`pairs`: sets of directions); `fate`: what is drawn for a frame
//! - `send`: from a card into the queues; `arrive`: out of a link; `change`: faults and power begin and end
//! - [`log`]: what became of frames; [`summary`]: what they say; [`pcapng`]: captures
//! - [`endpoint`]: a host's own TCP/IP stack at a port
//! - `stored`: what is checked of a wire that comes from a file
//!
//! Not here: cards ([`crate::virtio::net`]), the order in which nodes run, when faults begin and end.
//!
//! **Calls** come in the order of their vtimes: frames by (vtime, port), and changes at a vtime after the frames of that
//! vtime that come before it. [`Wire::pop_due`] may be ahead of frames by [`Wire::lookahead_ns`], up to the next change: what
//! arrives until then is decided.
//!
//! **Invariants.**
//! - A delivery is never earlier than its frame's sending plus [`Wire::lookahead_ns`]. Faults only ever add. What faults
//!   held arrives no earlier than their end plus as much.
//! - Frames of one direction arrive in the order in which they were sent, unless a fault reorders them.
//! - What arrives, and when, is a function of configuration, seed, and what was done to the wire at which vtime: not of
//!   when deliveries are fetched, and not of the log.
//! - What faults do to one direction moves no draw of another (`fate`).
//! - Everything is bounded. What is beyond a bound is dropped, and the log says so.

mod active;
mod arrive;
mod change;
mod config;
pub mod endpoint;
mod fate;
mod flight;
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

use crate::streams::{Lineage, Owner, Streams};
use active::Faults;
pub use active::{FAULTS_MAX, FaultError, SLOW_NS};
use config::Topology;
pub use config::{
    BITS_PER_S_MAX, BITS_PER_S_MIN, ConfigError, LATENCY_NS_MIN, LinkConfig, LinkOverride, NAME_BYTES_MAX,
    PORTS_MAX, PortConfig, QUEUE_BYTES_MAX, QUEUE_BYTES_MIN, WireConfig,
};
use flight::Flight;
pub use flight::{BYTES_MAX, FRAMES_MAX, READY_FRAMES_MAX};
use link::Item;
use log::{Log, Step, StepKind, Why};
use summary::Summary;
use switch::Table;
pub use switch::{HEADER_BYTES, MACS_PER_PORT_MAX};

/// A frame arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// When, in nanoseconds of vtime.
    pub at: u64,
    /// At which port.
    pub port: u8,
    /// The frame's number.
    pub frame: u64,
    /// From the destination address on, without checksum.
    pub bytes: Vec<u8>,
}

/// Everything that decides what a wire does next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    topology: Topology,
    streams: Streams,
    /// The last frame's vtime and port.
    last: (u64, u8),
    /// Up to where deliveries are decided.
    now: u64,
    next_frame: u64,
    next_seq: u64,
    /// Bit i: a node that has power is at port i.
    attached: u64,
    table: Table,
    faults: Faults,
    flight: Flight,
}

/// A switch and its links. Stored, it is its state, without the log; two are equal if they will do the same.
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
    /// A wire on which nothing has happened. All ports have power. `seed` is the boot seed.
    ///
    /// # Errors
    /// When the configuration is none: why.
    pub fn new(config: WireConfig, seed: u64) -> Result<Wire, ConfigError> {
        let topology = Topology::try_from(config)?;
        let flight = Flight::new(topology.directions());
        let state = State {
            topology,
            streams: Streams::new(&Lineage::boot(seed), Owner::Wire),
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

    /// What is plugged in where.
    #[must_use]
    pub fn ports(&self) -> &[PortConfig] {
        self.state.topology.ports()
    }

    /// The port of a node.
    #[must_use]
    pub fn port(&self, node: &str) -> Option<u8> {
        self.state.topology.port(node)
    }

    /// The least time from a frame's sending to its arrival, in nanoseconds: the least latency of all links.
    #[must_use]
    pub fn lookahead_ns(&self) -> u64 {
        self.state.topology.lookahead()
    }

    /// Up to which vtime, in nanoseconds, something was done to it or fetched. A world that brings a wire back is not behind.
    #[must_use]
    pub fn vtime(&self) -> u64 {
        self.state.now.max(self.state.last.0)
    }

    /// From here on everything that is drawn for the wire follows `lineage`, from the beginning.
    pub fn restart_streams(&mut self, lineage: &Lineage) {
        self.state.streams = Streams::new(lineage, Owner::Wire);
    }

    /// The wire's streams, to look at.
    #[must_use]
    pub fn streams(&self) -> &Streams {
        &self.state.streams
    }

    /// What became of frames since the last call, in the order of vtime.
    pub fn take_steps(&mut self) -> Vec<Step> {
        self.log.take()
    }

    /// Steps that were lost because nobody took earlier ones.
    #[must_use]
    pub fn steps_lost(&self) -> u64 {
        self.log.lost()
    }

    /// The log is closed at `at`: whatever is still on its way and late, or held by a fault, makes its move: TIMEOUT.
    pub fn close_log(&mut self, at: u64) {
        let flight = &self.state.flight;
        let late = flight.way().map(|(_, item)| item).filter(|item| is_late(item.sent_at, at));
        let open = flight.held_back.iter().chain(flight.held_up.iter()).chain(late).filter(|item| !item.copy);
        for item in open {
            self.log.push(step(item, at, StepKind::Timeout));
        }
    }

    /// Frames on their way, those that faults hold among them.
    #[must_use]
    pub fn frames_on_way(&self) -> usize {
        let flight = &self.state.flight;
        flight.way().count()
            + flight.held_back.iter().count()
            + flight.held_up.iter().count()
            + flight.ready.len()
    }

    /// Whether the node at `port` has power.
    #[must_use]
    pub fn is_attached(&self, port: u8) -> bool {
        self.state.attached >> (port % PORTS_MAX as u8) & 1 != 0
    }

    /// An item never arrives. An extra copy that does not never was.
    fn lose(&mut self, item: &Item, at: u64, why: Why) {
        if !item.copy {
            self.log.push(step(item, at, StepKind::Drop { why }));
        }
    }
}

fn is_late(sent_at: u64, at: u64) -> bool {
    at.saturating_sub(sent_at) >= log::TIMEOUT_NS
}

fn step(item: &Item, vtime: u64, kind: StepKind) -> Step {
    Step {
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

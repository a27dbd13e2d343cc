//! Everett's own endpoint on the wire: a TCP/IP stack (smoltcp) at a port of the switch. Tests and checks talk to nodes
//! through it.
//!
//! Map: this file: the endpoint, its addresses and its time; `card`: frames in and out; `neighbors`: MAC addresses of
//! nodes; `sockets`: functions that all sockets share; `tcp`, `udp`, `ping`: the kinds of sockets; `heard`: record of
//! received frames, from which an endpoint is rebuilt.
//!
//! The endpoint's time is the world's vtime. Its behaviour is a function of its addresses, its random draws, the frames
//! that it received, and the calls to it, each at its vtime. It acts only in [`Endpoint::poll`]. The caller polls it at
//! each vtime that [`Endpoint::next_poll`] returns. A call takes effect one nanosecond of vtime after the last poll
//! that precedes the call. The world polls up to the nanosecond before its present vtime, so a call takes effect at the
//! present vtime. Additional polls change when a call takes effect, and nothing else.
//!
//! A world has an endpoint only while one is needed ([`World::plug`](crate::world::World::plug)). A new endpoint knows
//! no node's MAC address and asks for it. The TCP/IP stack's state cannot be stored, but the received frames
//! ([`Heard`]) can. With these frames and the same calls, a new endpoint reaches the state of the old one.
//!
//! The endpoint has no router: it talks only to nodes of its own network.

mod card;
mod heard;
mod neighbors;
mod ping;
mod sockets;
mod tcp;
mod udp;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use everett_streams::{Purpose, Streams};
use serde::{Deserialize, Serialize};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr};

use super::{FRAMES_MAX, PortConfig};
use crate::digest::Digest;
use card::Card;
use neighbors::Neighbors;
use sockets::Open;

pub use heard::{HEARD_BYTES_MAX, Heard};
pub use neighbors::NEIGHBORS_MAX;
pub use ping::Pong;
pub use sockets::{BUFFER_BYTES, PACKETS_MAX, PAYLOAD_BYTES_MAX, SOCKETS_MAX, SocketError, SocketId};
pub use tcp::TcpState;

/// Maximum number of frames that have arrived and that the endpoint has not processed. Further frames are lost. The
/// bound equals the maximum number of frames on their way on a wire, including all frames that faults hold.
pub const INBOX_FRAMES_MAX: usize = 2 * FRAMES_MAX;
/// Resolution of the stack's clock, which counts microseconds.
const NS_PER_US: u64 = 1_000;
/// First local port for outgoing connections (RFC 6335, section 6).
const EPHEMERAL_PORT_MIN: u16 = 49_152;

/// Addresses of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Port number on the switch.
    pub port: u8,
    /// Name and MAC address, as in the configuration of the switch's port.
    pub node: PortConfig,
    /// IPv4 address, and length of its network prefix in bits.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    /// IPv6 address, and length of its network prefix in bits.
    pub ipv6: Option<(Ipv6Addr, u8)>,
}

/// Random values of an endpoint. A rebuilt endpoint must get the same values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointDraws {
    /// Seed of the TCP/IP stack, from which it derives initial sequence numbers and identifiers.
    pub stack: u64,
    /// First local port, as an offset in the range of ephemeral ports (taken modulo its length).
    pub port: u64,
}

impl EndpointDraws {
    /// Draws the values for the next endpoint from the random streams `streams`.
    pub fn draw(streams: &mut Streams) -> EndpointDraws {
        EndpointDraws {
            stack: streams.next_u64(Purpose::EndpointStack),
            port: streams.next_u64(Purpose::EndpointPort),
        }
    }
}

/// Defect of an endpoint's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The MAC address is a group address or zero.
    #[error("its MAC address is a group address or zero")]
    Mac,
    /// The IP address is a group, broadcast or unspecified address, or the prefix is too long.
    #[error("{0}/{1} is not the address of a single machine")]
    Address(IpAddr, u8),
}

/// An endpoint of Everett on the wire.
pub struct Endpoint {
    port: u8,
    now: u64,
    stack: Interface,
    card: Card,
    neighbors: Neighbors,
    sockets: SocketSet<'static>,
    open: BTreeMap<SocketId, Open>,
    next_socket: u64,
    next_port: u16,
    /// All frames that have arrived, processed or not.
    heard: Heard,
    /// Number of frames that the endpoint has processed.
    read: usize,
    /// Vtime at which calls since the last poll take effect; `None` if there were none.
    asked: Option<u64>,
    /// Vtime at which the endpoint last acted.
    acted: u64,
    /// Hash of the frames that the endpoint received and sent, with their vtimes.
    history: blake3::Hasher,
}

impl Endpoint {
    /// Creates an endpoint with the random values `draws`.
    ///
    /// # Errors
    /// Returns an error if the MAC address or an IP address cannot belong to a single machine.
    pub fn new(config: &EndpointConfig, draws: EndpointDraws) -> Result<Endpoint, EndpointError> {
        let mac = EthernetAddress(config.node.mac);
        if !mac.is_unicast() || config.node.mac == [0; 6] {
            return Err(EndpointError::Mac);
        }
        let mut card = Card::default();
        let mut stack_config = Config::new(HardwareAddress::Ethernet(mac));
        stack_config.random_seed = draws.stack;
        let mut stack = Interface::new(stack_config, &mut card, Instant::ZERO);
        let ipv4 = config.ipv4.map(|(address, bits)| (IpAddr::from(address), bits, 32));
        let ipv6 = config.ipv6.map(|(address, bits)| (IpAddr::from(address), bits, 128));
        for (address, bits, bits_max) in ipv4.into_iter().chain(ipv6) {
            let is_broadcast = address == IpAddr::from(Ipv4Addr::BROADCAST);
            if bits > bits_max || address.is_multicast() || address.is_unspecified() || is_broadcast {
                return Err(EndpointError::Address(address, bits));
            }
            // The stack has room for these two addresses.
            stack.update_ip_addrs(|addresses| _ = addresses.push(IpCidr::new(address.into(), bits)));
        }
        let ports = u64::from(u16::MAX - EPHEMERAL_PORT_MIN) + 1;
        Ok(Endpoint {
            port: config.port,
            now: 0,
            stack,
            card,
            neighbors: Neighbors::default(),
            sockets: SocketSet::new(vec![]),
            open: BTreeMap::new(),
            next_socket: 0,
            next_port: EPHEMERAL_PORT_MIN + (draws.port % ports) as u16,
            heard: Heard::default(),
            read: 0,
            asked: None,
            acted: 0,
            history: blake3::Hasher::new(),
        })
    }

    /// Returns the endpoint's port number on the switch.
    #[must_use]
    pub fn port(&self) -> u8 {
        self.port
    }

    /// Returns the digest of the frames that the endpoint processed and sent, with their vtimes. Two endpoints with the
    /// same digest, configuration, random values and calls behave in the same way if they get the same frames.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(*self.history.finalize().as_bytes())
    }

    /// True if the endpoint has no socket and has processed all frames that have arrived.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.unread() == 0
    }

    /// Queues a frame that arrives at vtime `at`. Frames must come in the order of vtime. Returns false if the frame is
    /// lost, because [`INBOX_FRAMES_MAX`] or [`HEARD_BYTES_MAX`] is reached.
    pub fn frame_input(&mut self, at: u64, bytes: Vec<u8>) -> bool {
        self.unread() < INBOX_FRAMES_MAX && self.heard.keep(at, &bytes)
    }

    fn unread(&self) -> usize {
        self.heard.frames.len().saturating_sub(self.read)
    }

    /// Returns the vtime at which the caller must poll next, in nanoseconds. Returns `None` if nothing is due.
    pub fn next_poll(&mut self) -> Option<u64> {
        let frame = self.heard.frames.get(self.read).map(|(at, _)| (*at).max(self.now));
        let asked = self.asked.map(|at| at.max(self.now));
        let question = self.neighbors.next().map(|at| at.max(self.now));
        [frame, asked, question, self.timer()].into_iter().flatten().min()
    }

    /// Returns the vtime at which the stack's next timer expires.
    fn timer(&mut self) -> Option<u64> {
        let now = instant(self.now);
        let at = self.stack.poll_at(now, &self.sockets)?;
        if at > now {
            return Some(u64::try_from(at.total_micros()).unwrap_or(0).saturating_mul(NS_PER_US));
        }
        // The stack has something to do now. If a call is the reason, the stack acts at the vtime `asked`, and needs no
        // timer. Otherwise the last poll left this work undone. The stack tries again in the next microsecond, because
        // a try at the same vtime would repeat for ever.
        let again = (self.acted / NS_PER_US + 1).saturating_mul(NS_PER_US);
        if self.asked.is_some() { None } else { Some(again.max(self.now)) }
    }

    /// Advances the endpoint to vtime `now`. Processes the frames that have arrived by then. Passes each frame that the
    /// endpoint sends to `send`, with its vtime.
    pub fn poll(&mut self, now: u64, send: &mut impl FnMut(u64, Vec<u8>)) {
        // Each due action happens at its own vtime, not at `now`.
        while let Some(due) = self.next_poll().filter(|&due| due <= now) {
            self.act(due, send);
        }
        self.now = self.now.max(now);
    }

    /// Schedules the vtime at which a call takes effect.
    fn ask(&mut self) {
        self.asked.get_or_insert(self.now.saturating_add(1));
    }

    /// Acts at vtime `now`, because a frame, a call, an address query or a timer is due.
    fn act(&mut self, now: u64, send: &mut impl FnMut(u64, Vec<u8>)) {
        self.now = now;
        self.acted = now;
        self.asked = None;
        while let Some((_, frame)) = self.heard.frames.get(self.read).filter(|(at, _)| *at <= now) {
            remember(&mut self.history, b"in", now, frame);
            self.neighbors.hear(frame, now);
            self.card.received.push_back(frame.clone());
            self.read += 1;
        }
        let HardwareAddress::Ethernet(mac) = self.stack.hardware_addr();
        let own = (self.stack.ipv4_addr(), self.stack.ipv6_addr());
        self.card.sent.extend(self.neighbors.ask(now, mac, own.0, own.1));
        self.stack.poll(instant(now), &mut self.card, &mut self.sockets);
        for frame in self.card.sent.drain(..) {
            remember(&mut self.history, b"out", now, &frame);
            send(now, frame);
        }
        self.reap();
    }
}

fn remember(history: &mut blake3::Hasher, which: &[u8], at: u64, frame: &[u8]) {
    history.update(which).update(&at.to_le_bytes()).update(&(frame.len() as u64).to_le_bytes()).update(frame);
}

fn instant(vtime: u64) -> Instant {
    Instant::from_micros(i64::try_from(vtime / NS_PER_US).unwrap_or(i64::MAX))
}

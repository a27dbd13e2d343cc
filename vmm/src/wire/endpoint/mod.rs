//! A host's own machine on the wire: a TCP/IP stack (smoltcp) at a port, for tests and checks that talk to nodes.
//!
//! Map: here: the endpoint, its addresses and its time; `card`: frames in and out; `neighbors`: where
//! nodes are; `sockets`: what sockets have in common; `tcp`, `udp`, `ping`: what they do; `heard`: how one is made again.
//!
//! Its time is the world's: what it does is a function of its addresses, its draws, the frames it got and what was asked of
//! it, each at its vtime. It acts when it is polled. Poll it at each vtime that [`Endpoint::next_poll`] names; when else it is
//! polled does not matter, but for this: what is asked of it happens a nanosecond after it was last polled.
//!
//! A world has one for as long as it is needed ([`World::plug`](crate::world::World::plug)). A new one knows no node's MAC
//! address, and asks. The stack's state cannot be stored; what it has [`Heard`] can, and with that and the same questions a new
//! endpoint comes to where another one was.
//!
//! Not here: routers. It talks to nodes of its own network.

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

/// Frames that have come and were not polled: as many as a wire can hold. More are lost.
pub const INBOX_FRAMES_MAX: usize = 2 * FRAMES_MAX;
/// The stack counts microseconds.
const NS_PER_US: u64 = 1_000;
/// The first of the ports for connections from here (RFC 6335, section 6).
const EPHEMERAL_PORT_MIN: u16 = 49_152;

/// Who an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Its port of the switch.
    pub port: u8,
    /// Its name and its card's address, as the port has them.
    pub node: PortConfig,
    /// Its IPv4 address and the bits of its network.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    /// Its IPv6 address and the bits of its network.
    pub ipv6: Option<(Ipv6Addr, u8)>,
}

/// The random values of an endpoint. With them an endpoint is made again as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointDraws {
    /// The seed of the TCP/IP stack, which makes initial sequence numbers and identifiers of it.
    pub stack: u64,
    /// The first local port, as a place in the range of ephemeral ports (taken modulo its length).
    pub port: u64,
}

impl EndpointDraws {
    /// Draws the values for the next endpoint from the host's streams.
    pub fn draw(streams: &mut Streams) -> EndpointDraws {
        EndpointDraws {
            stack: streams.next_u64(Purpose::HostStack),
            port: streams.next_u64(Purpose::HostPort),
        }
    }
}

/// Why there can be no such endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// An address that is for groups, or nobody's.
    #[error("its MAC address is not one card's")]
    Mac,
    /// An address that is for groups, or nobody's, or more bits than it has.
    #[error("{0}/{1} is not one machine's address")]
    Address(IpAddr, u8),
}

/// A machine of the host's on the wire.
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
    /// All frames that have come.
    heard: Heard,
    /// How many of them it has read.
    read: usize,
    /// When what was asked of it happens.
    asked: Option<u64>,
    /// When it last acted.
    acted: u64,
    /// What it has heard and said, and when.
    history: blake3::Hasher,
}

impl Endpoint {
    /// An endpoint whose random values are `draws`.
    ///
    /// # Errors
    /// When an address is none.
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
            // There is room for two addresses and more.
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

    /// Its port of the switch.
    #[must_use]
    pub fn port(&self) -> u8 {
        self.port
    }

    /// The digest of what it has heard and said, and when: what it does next is a function of that and of what is asked of it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(*self.history.finalize().as_bytes())
    }

    /// Whether it has no socket and has read all that came.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.unread() == 0
    }

    /// A frame arrives at `at`, no earlier than the last. Returns false when it is lost, since too many were not polled or it
    /// has heard more than is kept.
    pub fn frame_input(&mut self, at: u64, bytes: Vec<u8>) -> bool {
        self.unread() < INBOX_FRAMES_MAX && self.heard.keep(at, &bytes)
    }

    fn unread(&self) -> usize {
        self.heard.frames.len().saturating_sub(self.read)
    }

    /// When to poll it next, in nanoseconds of vtime.
    pub fn next_poll(&mut self) -> Option<u64> {
        let frame = self.heard.frames.get(self.read).map(|(at, _)| (*at).max(self.now));
        let asked = self.asked.map(|at| at.max(self.now));
        let question = self.neighbors.next().map(|at| at.max(self.now));
        [frame, asked, question, self.timer()].into_iter().flatten().min()
    }

    /// When the stack's next timer ends.
    fn timer(&mut self) -> Option<u64> {
        let now = instant(self.now);
        let at = self.stack.poll_at(now, &self.sockets)?;
        if at > now {
            return Some(u64::try_from(at.total_micros()).unwrap_or(0).saturating_mul(NS_PER_US));
        }
        // It wants to act at once: because something was asked of it, which has its time, or because it could not do what it
        // wanted to. It tries again, but time must go on.
        let again = (self.acted / NS_PER_US + 1).saturating_mul(NS_PER_US);
        if self.asked.is_some() { None } else { Some(again.max(self.now)) }
    }

    /// It is `now`: it reads what came until then, and sends what it has to say, each frame with when it does.
    pub fn poll(&mut self, now: u64, send: &mut impl FnMut(u64, Vec<u8>)) {
        // Each thing that is due is done at its own time.
        while let Some(due) = self.next_poll().filter(|&due| due <= now) {
            self.act(due, send);
        }
        self.now = self.now.max(now);
    }

    /// Something is asked of it.
    fn ask(&mut self) {
        self.asked.get_or_insert(self.now.saturating_add(1));
    }

    /// It is `now`, and something is due.
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

//! An endpoint's sockets, whatever they are for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::{AnySocket, tcp};
use smoltcp::wire::{IpCidr, IpEndpoint};

use super::card::MTU;
use super::{EPHEMERAL_PORT_MIN, Endpoint};

/// Sockets of an endpoint.
pub const SOCKETS_MAX: usize = 64;
/// Bytes of a socket that wait to be sent, and as many to be read.
pub const BUFFER_BYTES: usize = 64 << 10;
/// UDP datagrams or pings of a socket that wait to be sent, and as many to be read.
pub const PACKETS_MAX: usize = 256;
/// Bytes of a datagram or a ping: what an IPv6 packet holds that is not fragmented.
pub const PAYLOAD_BYTES_MAX: usize = MTU - 40 - 8;

/// A socket of an endpoint. Numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketId(pub(super) u64);

/// Why a socket cannot do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// Released, another endpoint's, or of another kind.
    #[error("there is no such socket of this kind")]
    NoSocket,
    /// Too many.
    #[error("at most {SOCKETS_MAX} sockets")]
    TooMany,
    /// An address or a port that nobody can have, or nobody of this network.
    #[error("{0} cannot be talked to")]
    Address(SocketAddr),
    /// Port 0.
    #[error("port 0 is no port")]
    Port,
    /// The connection does not take or give bytes any more.
    #[error("the connection is closed")]
    Closed,
    /// More waits to be sent than there is room for.
    #[error("no room: at most {BUFFER_BYTES} bytes and {PACKETS_MAX} packets wait")]
    Full,
    /// Too long for a packet.
    #[error("{0} bytes: at most {PAYLOAD_BYTES_MAX}")]
    TooLong(usize),
}

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tcp,
    Udp,
    /// Its echo requests have this identifier.
    Ping {
        ident: u16,
    },
}

/// A socket of the stack's.
#[derive(Debug)]
pub(super) struct Open {
    handle: SocketHandle,
    kind: Kind,
    /// Its user has given it up: it goes when what it has to say was said.
    released: bool,
}

impl Endpoint {
    /// Give a socket up. A connection that is not over is reset, once it is polled.
    ///
    /// # Errors
    /// When there is no such socket.
    pub fn release(&mut self, id: SocketId) -> Result<(), SocketError> {
        let (handle, kind) = self.socket(id)?;
        if kind == Kind::Tcp {
            self.sockets.get_mut::<tcp::Socket<'_>>(handle).abort();
        }
        if let Some(open) = self.open.get_mut(&id) {
            open.released = true;
        }
        self.ask();
        Ok(())
    }

    /// What was released has said what it had to say.
    pub(super) fn reap(&mut self) {
        for (_, gone) in self.open.extract_if(.., |_, open| open.released) {
            self.sockets.remove(gone.handle);
        }
        if self.open.is_empty() {
            self.neighbors.forget();
        }
    }

    /// A socket that its user has not given up.
    pub(super) fn socket(&self, id: SocketId) -> Result<(SocketHandle, Kind), SocketError> {
        let open = self.open.get(&id).filter(|open| !open.released).ok_or(SocketError::NoSocket)?;
        Ok((open.handle, open.kind))
    }

    pub(super) fn add(
        &mut self,
        kind: Kind,
        socket: impl AnySocket<'static>,
    ) -> Result<SocketId, SocketError> {
        if self.open.len() >= SOCKETS_MAX {
            return Err(SocketError::TooMany);
        }
        let id = SocketId(self.next_socket);
        self.next_socket += 1;
        let handle = self.sockets.add(socket);
        self.open.insert(id, Open { handle, kind, released: false });
        self.ask();
        Ok(id)
    }

    /// A node is to be talked to: it must be of one's own network.
    pub(super) fn reach(&mut self, to: SocketAddr) -> Result<(), SocketError> {
        let network = |own: &IpCidr| own.contains_addr(&to.ip().into());
        let one = !to.ip().is_unspecified() && !to.ip().is_multicast() && !self.is_broadcast(to.ip());
        if !one || !self.stack.ip_addrs().iter().any(network) {
            return Err(SocketError::Address(to));
        }
        self.neighbors.want(to.ip(), self.now.saturating_add(1));
        Ok(())
    }

    /// Whether all nodes of the network are meant.
    pub(super) fn is_broadcast(&self, to: IpAddr) -> bool {
        let directed = |own: &IpCidr| match own {
            IpCidr::Ipv4(own) => own.broadcast().map(IpAddr::from) == Some(to),
            IpCidr::Ipv6(_) => false,
        };
        to == IpAddr::from(Ipv4Addr::BROADCAST) || self.stack.ip_addrs().iter().any(directed)
    }

    /// A port for a connection from here; none that was used for a long time.
    pub(super) fn ephemeral_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(EPHEMERAL_PORT_MIN);
        port
    }
}

pub(super) fn address(endpoint: IpEndpoint) -> SocketAddr {
    SocketAddr::from(endpoint)
}

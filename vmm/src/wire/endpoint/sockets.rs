//! Functions that all sockets of an endpoint share.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::{AnySocket, tcp};
use smoltcp::wire::{IpCidr, IpEndpoint};

use super::card::MTU;
use super::{EPHEMERAL_PORT_MIN, Endpoint};

/// Maximum number of sockets of an endpoint.
pub const SOCKETS_MAX: usize = 64;
/// Maximum bytes that wait in a socket to be sent. Also the maximum that wait to be read.
pub const BUFFER_BYTES: usize = 64 << 10;
/// Maximum number of UDP datagrams or pings that wait in a socket to be sent. Also the maximum that wait to be read.
pub const PACKETS_MAX: usize = 256;
/// Maximum length of a datagram or ping in bytes: the payload of an unfragmented IPv6 packet.
pub const PAYLOAD_BYTES_MAX: usize = MTU - 40 - 8;

/// Number of a socket of an endpoint. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketId(pub(super) u64);

/// Error of a call to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// The socket was released, belongs to another endpoint, or has another kind.
    #[error("there is no such socket of this kind")]
    NoSocket,
    /// The endpoint already has [`SOCKETS_MAX`] sockets.
    #[error("at most {SOCKETS_MAX} sockets")]
    TooMany,
    /// The address is not that of a node in the endpoint's network, or its port is 0.
    #[error("{0} is not an address of a node in the endpoint's network")]
    Address(SocketAddr),
    /// The local port is 0.
    #[error("port 0 cannot be used")]
    Port,
    /// The connection can no longer send or receive.
    #[error("the connection is closed")]
    Closed,
    /// The socket's queue is full.
    #[error("the socket's queue is full: at most {BUFFER_BYTES} bytes and {PACKETS_MAX} packets")]
    Full,
    /// The payload is too long for a packet.
    #[error("{0} bytes: at most {PAYLOAD_BYTES_MAX}")]
    TooLong(usize),
}

/// Kind of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tcp,
    Udp,
    /// ICMP echo. The socket's requests have this identifier.
    Ping {
        ident: u16,
    },
}

/// A socket of an endpoint.
#[derive(Debug)]
pub(super) struct Open {
    handle: SocketHandle,
    kind: Kind,
    /// True if the caller has released the socket. The endpoint removes it when its last frames are sent.
    released: bool,
}

impl Endpoint {
    /// Releases a socket. If it is a connection that is not closed, the next poll resets the connection.
    ///
    /// # Errors
    /// Returns an error if the endpoint has no such socket.
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

    /// Removes released sockets. The caller must have sent their last frames before this call.
    pub(super) fn reap(&mut self) {
        for (_, gone) in self.open.extract_if(.., |_, open| open.released) {
            self.sockets.remove(gone.handle);
        }
        if self.open.is_empty() {
            self.neighbors.forget();
        }
    }

    /// Returns a socket that the caller has not released.
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

    /// Makes the endpoint query the MAC address of a node in its network, if the address is unknown or old.
    pub(super) fn reach(&mut self, to: SocketAddr) -> Result<(), SocketError> {
        let network = |own: &IpCidr| own.contains_addr(&to.ip().into());
        let one = !to.ip().is_unspecified() && !to.ip().is_multicast() && !self.is_broadcast(to.ip());
        if !one || !self.stack.ip_addrs().iter().any(network) {
            return Err(SocketError::Address(to));
        }
        self.neighbors.want(to.ip(), self.now.saturating_add(1));
        Ok(())
    }

    /// True if the address is a broadcast address.
    pub(super) fn is_broadcast(&self, to: IpAddr) -> bool {
        let directed = |own: &IpCidr| match own {
            IpCidr::Ipv4(own) => own.broadcast().map(IpAddr::from) == Some(to),
            IpCidr::Ipv6(_) => false,
        };
        to == IpAddr::from(Ipv4Addr::BROADCAST) || self.stack.ip_addrs().iter().any(directed)
    }

    /// Returns the local port for the next outgoing connection. Ports are used in turn, so the returned port is
    /// the one that was not used for the longest time.
    pub(super) fn ephemeral_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(EPHEMERAL_PORT_MIN);
        port
    }
}

pub(super) fn address(endpoint: IpEndpoint) -> SocketAddr {
    SocketAddr::from(endpoint)
}

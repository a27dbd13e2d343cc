//! Pings by an endpoint: ICMP and ICMPv6 echo requests and their replies. The TCP/IP stack answers pings by nodes.

use std::net::{IpAddr, SocketAddr};

use smoltcp::iface::SocketHandle;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr};

use super::Endpoint;
use super::sockets::{BUFFER_BYTES, Kind, PACKETS_MAX, PAYLOAD_BYTES_MAX, SocketError, SocketId};

/// Reply to a ping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pong {
    /// Address of the node that replied.
    pub from: IpAddr,
    /// Sequence number of the request.
    pub sequence: u16,
    /// Data of the request.
    pub payload: Vec<u8>,
}

impl Endpoint {
    /// Opens a socket that sends pings and receives their replies.
    ///
    /// # Errors
    /// Returns an error if the endpoint has too many sockets.
    pub fn ping_open(&mut self) -> Result<SocketId, SocketError> {
        let buffer =
            || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; PACKETS_MAX], vec![0; BUFFER_BYTES]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        let ident = self.ephemeral_port();
        socket.bind(icmp::Endpoint::Ident(ident)).map_err(|_| SocketError::Port)?;
        self.add(Kind::Ping { ident }, socket)
    }

    /// Sends an echo request with these data bytes.
    ///
    /// # Errors
    /// Returns an error if the data is too long, the socket's queue is full, the endpoint cannot reach the address, or
    /// the socket is not a ping socket.
    pub fn ping(&mut self, id: SocketId, to: IpAddr, sequence: u16, data: &[u8]) -> Result<(), SocketError> {
        let (handle, ident) = self.ping_socket(id)?;
        if data.len() > PAYLOAD_BYTES_MAX {
            return Err(SocketError::TooLong(data.len()));
        }
        self.reach(SocketAddr::new(to, 0))?;
        // The stack computes the checksum when it sends the packet.
        let unsummed = ChecksumCapabilities::ignored();
        let socket: &mut icmp::Socket<'_> = self.sockets.get_mut(handle);
        let failed = |error| match error {
            icmp::SendError::BufferFull => SocketError::Full,
            icmp::SendError::Unaddressable => SocketError::Address(SocketAddr::new(to, 0)),
        };
        match to {
            IpAddr::V4(_) => {
                let request = Icmpv4Repr::EchoRequest { ident, seq_no: sequence, data };
                let buffer = socket.send(request.buffer_len(), to.into()).map_err(failed)?;
                request.emit(&mut Icmpv4Packet::new_unchecked(buffer), &unsummed);
            }
            IpAddr::V6(address) => {
                let request = Icmpv6Repr::EchoRequest { ident, seq_no: sequence, data };
                let buffer = socket.send(request.buffer_len(), to.into()).map_err(failed)?;
                request.emit(&address, &address, &mut Icmpv6Packet::new_unchecked(buffer), &unsummed);
            }
        }
        self.ask();
        Ok(())
    }

    /// Takes the next reply that has arrived, if any.
    ///
    /// # Errors
    /// Returns an error if the socket is not a ping socket of this endpoint.
    pub fn pong(&mut self, id: SocketId) -> Result<Option<Pong>, SocketError> {
        let (handle, _) = self.ping_socket(id)?;
        let socket: &mut icmp::Socket<'_> = self.sockets.get_mut(handle);
        while let Ok((packet, from)) = socket.recv() {
            let unsummed = ChecksumCapabilities::ignored();
            let from = IpAddr::from(from);
            let answer = match from {
                IpAddr::V4(_) => {
                    let packet = Icmpv4Packet::new_checked(packet).ok();
                    match packet.as_ref().and_then(|packet| Icmpv4Repr::parse(packet, &unsummed).ok()) {
                        Some(Icmpv4Repr::EchoReply { seq_no, data, .. }) => Some((seq_no, data.to_vec())),
                        _ => None,
                    }
                }
                IpAddr::V6(address) => {
                    let packet = Icmpv6Packet::new_checked(packet).ok();
                    let parse = |packet| Icmpv6Repr::parse(&address, &address, packet, &unsummed).ok();
                    match packet.as_ref().and_then(parse) {
                        Some(Icmpv6Repr::EchoReply { seq_no, data, .. }) => Some((seq_no, data.to_vec())),
                        _ => None,
                    }
                }
            };
            if let Some((sequence, payload)) = answer {
                return Ok(Some(Pong { from, sequence, payload }));
            }
        }
        Ok(None)
    }

    fn ping_socket(&self, id: SocketId) -> Result<(SocketHandle, u16), SocketError> {
        match self.socket(id)? {
            (handle, Kind::Ping { ident }) => Ok((handle, ident)),
            _ => Err(SocketError::NoSocket),
        }
    }
}

//! UDP datagrams of an endpoint.

use std::net::SocketAddr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::IpEndpoint;

use super::Endpoint;
use super::sockets::{BUFFER_BYTES, Kind, PACKETS_MAX, PAYLOAD_BYTES_MAX, SocketError, SocketId, address};

impl Endpoint {
    /// Opens a socket that sends and receives datagrams at a local port.
    ///
    /// # Errors
    /// Returns an error if the endpoint has too many sockets, or the port is 0.
    pub fn udp_bind(&mut self, port: u16) -> Result<SocketId, SocketError> {
        let buffer =
            || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; PACKETS_MAX], vec![0; BUFFER_BYTES]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(port).map_err(|_| SocketError::Port)?;
        self.add(Kind::Udp, socket)
    }

    /// Sends a datagram to a node or a multicast group.
    ///
    /// # Errors
    /// Returns an error if the datagram is too long, the socket's queue is full, the endpoint cannot reach the address,
    /// or the socket is not a UDP socket.
    pub fn udp_send(&mut self, id: SocketId, to: SocketAddr, payload: &[u8]) -> Result<(), SocketError> {
        let handle = self.udp_socket(id)?;
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(SocketError::TooLong(payload.len()));
        }
        if !to.ip().is_multicast() && !self.is_broadcast(to.ip()) {
            self.reach(to)?;
        }
        let socket: &mut udp::Socket<'_> = self.sockets.get_mut(handle);
        socket.send_slice(payload, IpEndpoint::from(to)).map_err(|error| match error {
            udp::SendError::BufferFull => SocketError::Full,
            udp::SendError::Unaddressable => SocketError::Address(to),
        })?;
        self.ask();
        Ok(())
    }

    /// Takes the next datagram that has arrived, with the address of its sender.
    ///
    /// # Errors
    /// Returns an error if the socket is not a UDP socket of this endpoint.
    pub fn udp_receive(&mut self, id: SocketId) -> Result<Option<(SocketAddr, Vec<u8>)>, SocketError> {
        let handle = self.udp_socket(id)?;
        let socket: &mut udp::Socket<'_> = self.sockets.get_mut(handle);
        Ok(socket.recv().ok().map(|(payload, from)| (address(from.endpoint), payload.to_vec())))
    }

    fn udp_socket(&self, id: SocketId) -> Result<SocketHandle, SocketError> {
        match self.socket(id)? {
            (handle, Kind::Udp) => Ok(handle),
            _ => Err(SocketError::NoSocket),
        }
    }
}

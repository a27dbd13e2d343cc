//! TCP connections of an endpoint, i.e. of Everett's own TCP/IP stack on the simulated wire.

use std::net::SocketAddr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;

use super::Endpoint;
use super::sockets::{BUFFER_BYTES, Kind, SocketError, SocketId, address};

/// State of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpState {
    /// No node has connected yet.
    Listening,
    /// The connection is being established.
    Connecting,
    /// The connection is established. The node may have finished sending.
    Open,
    /// The endpoint has finished sending. The node has not finished, or has not acknowledged the end.
    Finishing,
    /// The connection is closed, or was never established. The caller can still read received bytes.
    Closed,
}

impl Endpoint {
    /// Begins a connection to a node. [`Endpoint::tcp_state`] tells whether it succeeds.
    ///
    /// # Errors
    /// Returns an error if the endpoint has too many sockets or cannot reach the address.
    pub fn tcp_connect(&mut self, to: SocketAddr) -> Result<SocketId, SocketError> {
        self.reach(to)?;
        let from = self.ephemeral_port();
        let mut socket = socket();
        socket.connect(self.stack.context(), to, from).map_err(|_| SocketError::Address(to))?;
        self.add(Kind::Tcp, socket)
    }

    /// Listens for a connection to a port. The socket becomes the first connection. To accept another connection,
    /// listen again.
    ///
    /// # Errors
    /// Returns an error if the endpoint has too many sockets, or the port is 0.
    pub fn tcp_listen(&mut self, port: u16) -> Result<SocketId, SocketError> {
        let mut socket = socket();
        socket.listen(port).map_err(|_| SocketError::Port)?;
        self.add(Kind::Tcp, socket)
    }

    /// Returns the state of a connection.
    ///
    /// # Errors
    /// Returns an error if the socket is not a TCP socket of this endpoint.
    pub fn tcp_state(&self, id: SocketId) -> Result<TcpState, SocketError> {
        let socket: &tcp::Socket<'_> = self.sockets.get(self.tcp_socket(id)?);
        Ok(match socket.state() {
            tcp::State::Listen => TcpState::Listening,
            tcp::State::SynSent | tcp::State::SynReceived => TcpState::Connecting,
            tcp::State::Established | tcp::State::CloseWait => TcpState::Open,
            tcp::State::FinWait1 | tcp::State::FinWait2 | tcp::State::Closing | tcp::State::LastAck => {
                TcpState::Finishing
            }
            tcp::State::TimeWait | tcp::State::Closed => TcpState::Closed,
        })
    }

    /// Returns the address of the node at the other end of a connection, or `None` if the connection has no other end
    /// (yet or any more).
    ///
    /// # Errors
    /// Returns an error if the socket is not a TCP socket of this endpoint.
    pub fn tcp_peer(&self, id: SocketId) -> Result<Option<SocketAddr>, SocketError> {
        let socket: &tcp::Socket<'_> = self.sockets.get(self.tcp_socket(id)?);
        Ok(socket.remote_endpoint().map(address))
    }

    /// Queues bytes for sending. Returns the number of bytes accepted, which is 0 while the connection is being
    /// established.
    ///
    /// # Errors
    /// Returns an error if the connection can no longer send, the endpoint cannot reach the node, or the socket is not
    /// a TCP socket.
    pub fn tcp_send(&mut self, id: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        let connecting = matches!(self.tcp_state(id)?, TcpState::Listening | TcpState::Connecting);
        if let Some(peer) = self.tcp_peer(id)? {
            self.reach(peer)?;
        }
        let handle = self.tcp_socket(id)?;
        let socket: &mut tcp::Socket<'_> = self.sockets.get_mut(handle);
        match socket.send_slice(bytes) {
            Ok(taken) => {
                if taken > 0 {
                    self.ask();
                }
                Ok(taken)
            }
            Err(tcp::SendError::InvalidState) if connecting => Ok(0),
            Err(tcp::SendError::InvalidState) => Err(SocketError::Closed),
        }
    }

    /// Takes the received bytes. Returns an empty list if none have arrived.
    ///
    /// # Errors
    /// Returns an error if no more bytes can arrive, or if the socket is not a TCP socket of this endpoint.
    pub fn tcp_receive(&mut self, id: SocketId) -> Result<Vec<u8>, SocketError> {
        let connecting = matches!(self.tcp_state(id)?, TcpState::Listening | TcpState::Connecting);
        let handle = self.tcp_socket(id)?;
        let socket: &mut tcp::Socket<'_> = self.sockets.get_mut(handle);
        let mut bytes = Vec::new();
        // The receive buffer is a ring, so the bytes may be in two pieces.
        while socket.can_recv() {
            let read = socket.recv(|piece| {
                bytes.extend_from_slice(piece);
                (piece.len(), piece.len())
            });
            if read.is_err() {
                break;
            }
        }
        if bytes.is_empty() && !socket.may_recv() && !connecting {
            return Err(SocketError::Closed);
        }
        // The stack may have to tell the node that the buffer has room again.
        if !bytes.is_empty() {
            self.ask();
        }
        Ok(bytes)
    }

    /// Finishes sending. The node may still send bytes.
    ///
    /// # Errors
    /// Returns an error if the socket is not a TCP socket of this endpoint.
    pub fn tcp_finish(&mut self, id: SocketId) -> Result<(), SocketError> {
        let handle = self.tcp_socket(id)?;
        self.sockets.get_mut::<tcp::Socket<'_>>(handle).close();
        self.ask();
        Ok(())
    }

    fn tcp_socket(&self, id: SocketId) -> Result<SocketHandle, SocketError> {
        match self.socket(id)? {
            (handle, Kind::Tcp) => Ok(handle),
            _ => Err(SocketError::NoSocket),
        }
    }
}

fn socket() -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
    tcp::Socket::new(buffer(), buffer())
}

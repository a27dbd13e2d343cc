//! An endpoint's TCP connections.

use std::net::SocketAddr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;

use super::Endpoint;
use super::sockets::{BUFFER_BYTES, Kind, SocketError, SocketId, address};

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpState {
    /// Nobody has connected.
    Listening,
    /// Being made.
    Connecting,
    /// Both sides may send, or the other side may not any more.
    Open,
    /// This side has finished. The other has not, or does not know.
    Finishing,
    /// Over, or never made. What came may still be read.
    Closed,
}

impl Endpoint {
    /// Connect to a node. See [`Endpoint::tcp_state`] for whether it worked.
    ///
    /// # Errors
    /// When there are too many sockets, or the address is none.
    pub fn tcp_connect(&mut self, to: SocketAddr) -> Result<SocketId, SocketError> {
        self.reach(to)?;
        let from = self.ephemeral_port();
        let mut socket = socket();
        socket.connect(self.stack.context(), to, from).map_err(|_| SocketError::Address(to))?;
        self.add(Kind::Tcp, socket)
    }

    /// Wait for a connection to a port. The socket becomes that connection; for more of them, listen again.
    ///
    /// # Errors
    /// When there are too many sockets, or the port is none.
    pub fn tcp_listen(&mut self, port: u16) -> Result<SocketId, SocketError> {
        let mut socket = socket();
        socket.listen(port).map_err(|_| SocketError::Port)?;
        self.add(Kind::Tcp, socket)
    }

    /// How far a connection is.
    ///
    /// # Errors
    /// When it is none.
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

    /// Who is at the other end of a connection.
    ///
    /// # Errors
    /// When it is none.
    pub fn tcp_peer(&self, id: SocketId) -> Result<Option<SocketAddr>, SocketError> {
        let socket: &tcp::Socket<'_> = self.sockets.get(self.tcp_socket(id)?);
        Ok(socket.remote_endpoint().map(address))
    }

    /// Send bytes. Returns how many there was room for; 0 while the connection is being made.
    ///
    /// # Errors
    /// When the connection takes no more.
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

    /// Read what came. Nothing: nothing has come yet.
    ///
    /// # Errors
    /// When nothing more will come.
    pub fn tcp_receive(&mut self, id: SocketId) -> Result<Vec<u8>, SocketError> {
        let connecting = matches!(self.tcp_state(id)?, TcpState::Listening | TcpState::Connecting);
        let handle = self.tcp_socket(id)?;
        let socket: &mut tcp::Socket<'_> = self.sockets.get_mut(handle);
        let mut bytes = Vec::new();
        // The buffer is a ring: what came may be in two pieces.
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
        // There is room again, which the other side may want to know.
        if !bytes.is_empty() {
            self.ask();
        }
        Ok(bytes)
    }

    /// This side has nothing more to send. What the other side sends can still be read.
    ///
    /// # Errors
    /// When it is no connection.
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

//! Reads one socket.

use super::Socket;
use super::address::Address;
use super::clock::Ticks;
use super::state::{self, Kind, NEW_SYN_RECEIVED, State, TIME_WAIT, number};
use super::tcp::{Timer, TimerKind};
use crate::limits::PACKETS_MAX;
use crate::{Error, Guest};

/// Reads sockets of a guest.
pub(super) struct Reader<'g> {
    guest: Guest<'g>,
    ticks: Option<Ticks>,
    /// Number of packets of Unix sockets that may still be read.
    packets_left: usize,
}

impl<'g> Reader<'g> {
    pub(super) fn new(guest: Guest<'g>) -> Reader<'g> {
        Reader { guest, ticks: guest.ticks().ok(), packets_left: PACKETS_MAX }
    }

    /// Reads a socket that is in a table of TCP. It can have a smaller structure than a `sock`.
    pub(super) fn tcp(&mut self, sock: u64) -> Result<Socket, Error> {
        let places = &self.guest.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        match self.guest.number(sock, places.state)? {
            TIME_WAIT => self.time_wait(sock),
            NEW_SYN_RECEIVED => self.request(sock),
            _ => self.full(sock),
        }
    }

    /// Reads a `sock`.
    pub(super) fn full(&mut self, sock: u64) -> Result<Socket, Error> {
        let guest = self.guest;
        let places = &guest.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let read = |field| guest.number(sock, field);
        let kind = state::kind(read(places.family)?, read(places.kind)?, read(places.protocol)?)?;
        let state = State::of(read(places.state)?)?;
        let mut socket = Socket { kind, state, ..self.common(sock)? };
        if let Some((inode, user)) = guest.socket_inode(sock)? {
            (socket.inode, socket.user) = (inode, Some(user));
        }
        // A socket holds one byte of send memory for itself.
        let sent = read(places.send_memory)?.saturating_sub(1);
        match kind {
            Kind::Tcp => {
                let port = u16::from_be_bytes(guest.bytes(sock, places.local_port)?);
                (socket.local, socket.remote) = guest.addresses(sock, port)?;
                let between = |from, to| {
                    let bytes = (read(to)? as u32).wrapping_sub(read(from)? as u32);
                    Ok::<_, Error>(bytes)
                };
                if state == State::Listen {
                    socket.receive_queue = read(places.accept_queue_length)?;
                    socket.send_queue = read(places.accept_queue_max)?;
                } else {
                    // The end of a connection counts as a byte, as it does for `ss`.
                    let unread = between(places.read_sequence, places.receive_next)? as i32;
                    socket.receive_queue = unread.max(0) as u64;
                    socket.send_queue = u64::from(between(places.unacknowledged, places.write_sequence)?);
                    socket.details = Some(guest.tcp_details(sock, self.ticks)?);
                }
                socket.timer = guest.tcp_timer(sock, self.ticks)?;
                socket.retransmits = read(places.retransmits)?;
            }
            Kind::Udp | Kind::UdpLite | Kind::Raw => {
                let port = u16::from_be_bytes(guest.bytes(sock, places.local_port)?);
                (socket.local, socket.remote) = guest.addresses(sock, port)?;
                // Memory of packets that the program has read, and that is not yet given back.
                let read_before = match places.udp_deficit {
                    Some(deficit) if kind != Kind::Raw => read(deficit)?,
                    _ => 0,
                };
                socket.receive_queue = read(places.receive_memory)?.saturating_sub(read_before);
                socket.send_queue = sent;
            }
            Kind::UnixStream | Kind::UnixDatagram | Kind::UnixPacket => {
                (socket.local, socket.remote) = (guest.unix_address(sock)?, guest.unix_peer(sock)?);
                if state == State::Listen {
                    socket.receive_queue = read(places.receive_queue_length)?;
                    socket.send_queue = read(places.accept_queue_max)?;
                } else {
                    socket.receive_queue = guest.unix_received(sock, kind, &mut self.packets_left)?;
                    socket.send_queue = sent;
                }
            }
            Kind::Packet => {
                let field = |field: Option<_>| field.ok_or(Error::Field("packet_sock.num"));
                let protocol = u16::from_be_bytes(guest.bytes(sock, field(places.packet_protocol)?)?);
                let index = read(field(places.packet_interface)?)? as u32;
                socket.local = Address::Card { protocol, index };
                socket.receive_queue = read(places.receive_memory)?;
                socket.send_queue = sent;
            }
            Kind::Netlink | Kind::Other(_) => {
                socket.receive_queue = read(places.receive_memory)?;
                socket.send_queue = sent;
            }
        }
        Ok(socket)
    }

    /// Reads a connection that is closed on this side and that no program has open (`inet_timewait_sock`).
    fn time_wait(&self, sock: u64) -> Result<Socket, Error> {
        let places = &self.guest.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let read = |field| self.guest.number(sock, field);
        let (local, remote) = self.guest.addresses(sock, read(places.number)? as u16)?;
        let state = State::of(read(places.time_wait_state)?)?;
        let timer = Some(Timer::new(TimerKind::TimeWait, read(places.time_wait_expires)?, self.ticks));
        Ok(Socket { state, local, remote, timer, ..self.common(sock)? })
    }

    /// Reads a connection request (`request_sock`).
    fn request(&self, sock: u64) -> Result<Socket, Error> {
        let places = &self.guest.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let read = |field| self.guest.number(sock, field);
        let (local, remote) = self.guest.addresses(sock, read(places.number)? as u16)?;
        let user = self.guest.socket_inode(read(places.listener)?)?.map(|(_, user)| user);
        let timer = Some(Timer::new(TimerKind::Retransmit, read(places.request_expires)?, self.ticks));
        let retransmits = read(places.request_timeouts)?;
        Ok(Socket {
            state: State::SynReceived,
            local,
            remote,
            timer,
            retransmits,
            user,
            ..self.common(sock)?
        })
    }

    /// Reads the parts that all structures of sockets have.
    fn common(&self, sock: u64) -> Result<Socket, Error> {
        let places = &self.guest.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let read = |field| self.guest.number(sock, field);
        let family = read(places.family)?;
        Ok(Socket {
            sock,
            namespace: self.guest.number(read(places.net)?, places.net_number)? as u32,
            kind: Kind::Tcp,
            is_version_6: family == number::IP_6,
            state: State::Unconnected,
            receive_queue: 0,
            send_queue: 0,
            local: Address::None,
            remote: Address::None,
            interface: read(places.interface)? as u32,
            inode: 0,
            user: None,
            timer: None,
            retransmits: 0,
            details: None,
            waits_for_accept: false,
            owners: Vec::new(),
        })
    }
}

impl Guest<'_> {
    /// Returns the number and the owner (user ID) of a socket's inode. `None` if the socket belongs to no file.
    pub(super) fn socket_inode(&self, sock: u64) -> Result<Option<(u64, u32)>, Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let socket = self.number(sock, places.socket)?;
        if socket == 0 {
            return Ok(None);
        }
        let allocated = socket.wrapping_sub(places.socket_within.offset());
        let inode = allocated.wrapping_add(places.socket_inode.offset());
        let number = self.number(inode, self.kernel.layout.inode_number)?;
        Ok(Some((number, self.number(inode, places.inode_user)? as u32)))
    }
}

//! States and kinds of sockets.

use crate::Error;

/// State of a socket. The kernel uses the states of TCP for sockets of all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Waits for connections.
    Listen,
    /// Has received a connection request, and waits for the peer's confirmation.
    SynReceived,
    /// Has sent a connection request.
    SynSent,
    /// Connected.
    Established,
    /// Closed on this side. The peer has not confirmed all data.
    FinWait1,
    /// Closed on this side, and the peer has confirmed all data.
    FinWait2,
    /// Closed on both sides at the same time.
    Closing,
    /// Closed on the peer's side.
    CloseWait,
    /// Closed on both sides, the peer's side first. The peer has not confirmed all data.
    LastAck,
    /// Closed on both sides. Remains for a while, because old segments can still arrive.
    TimeWait,
    /// Not connected.
    Unconnected,
}

/// States of the kernel with a structure of their own (`include/net/tcp_states.h`).
pub(super) const TIME_WAIT: u64 = 6;
pub(super) const NEW_SYN_RECEIVED: u64 = 12;

impl State {
    /// Returns the state with the kernel's number.
    pub(super) fn of(number: u64) -> Result<State, Error> {
        Ok(match number {
            1 => State::Established,
            2 => State::SynSent,
            3 | NEW_SYN_RECEIVED => State::SynReceived,
            4 => State::FinWait1,
            5 => State::FinWait2,
            TIME_WAIT => State::TimeWait,
            7 => State::Unconnected,
            8 => State::CloseWait,
            9 => State::LastAck,
            10 => State::Listen,
            11 => State::Closing,
            _ => return Err(Error::SocketState(number)),
        })
    }

    /// Returns the name that `ss` prints.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Listen => "LISTEN",
            State::SynReceived => "SYN-RECV",
            State::SynSent => "SYN-SENT",
            State::Established => "ESTAB",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::Closing => "CLOSING",
            State::CloseWait => "CLOSE-WAIT",
            State::LastAck => "LAST-ACK",
            State::TimeWait => "TIME-WAIT",
            State::Unconnected => "UNCONN",
        }
    }
}

/// Kind of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// UDP-Lite.
    UdpLite,
    /// Packets of a protocol above IP.
    Raw,
    /// Unix socket with a stream of bytes.
    UnixStream,
    /// Unix socket with datagrams.
    UnixDatagram,
    /// Unix socket with a sequence of packets.
    UnixPacket,
    /// Packets of a network card.
    Packet,
    /// Messages to and from the kernel.
    Netlink,
    /// Another kind, with the number of its address family.
    Other(u16),
}

impl Kind {
    /// Returns the name that `ss` prints.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tcp => "tcp",
            Kind::Udp => "udp",
            Kind::UdpLite => "udplite",
            Kind::Raw => "raw",
            Kind::UnixStream => "u_str",
            Kind::UnixDatagram => "u_dgr",
            Kind::UnixPacket => "u_seq",
            Kind::Packet => "p_raw",
            Kind::Netlink => "nl",
            Kind::Other(_) => "other",
        }
    }

    /// Returns true for Unix sockets.
    #[must_use]
    pub fn is_unix(self) -> bool {
        matches!(self, Kind::UnixStream | Kind::UnixDatagram | Kind::UnixPacket)
    }
}

/// Kernel's numbers of address families and of types of sockets.
pub(super) mod number {
    pub(crate) const UNIX: u64 = 1;
    pub(crate) const IP_4: u64 = 2;
    pub(crate) const IP_6: u64 = 10;
    pub(crate) const NETLINK: u64 = 16;
    pub(crate) const PACKET: u64 = 17;
    /// Number after the largest one of a family that this version accepts. Linux 6.12 has 46 families.
    pub(crate) const FAMILIES: u64 = 64;

    pub(crate) const STREAM: u64 = 1;
    pub(crate) const DATAGRAM: u64 = 2;
    pub(crate) const RAW: u64 = 3;
    pub(crate) const SEQUENCE: u64 = 5;

    pub(crate) const TCP: u64 = 6;
    pub(crate) const UDP: u64 = 17;
    pub(crate) const UDP_LITE: u64 = 136;
}

/// Returns the kind of a socket. Errors name an address family that does not exist.
pub(super) fn kind(family: u64, kind: u64, protocol: u64) -> Result<Kind, Error> {
    Ok(match (family, kind, protocol) {
        (number::IP_4 | number::IP_6, number::STREAM, number::TCP) => Kind::Tcp,
        (number::IP_4 | number::IP_6, number::DATAGRAM, number::UDP) => Kind::Udp,
        (number::IP_4 | number::IP_6, number::DATAGRAM, number::UDP_LITE) => Kind::UdpLite,
        (number::IP_4 | number::IP_6, number::RAW, _) => Kind::Raw,
        (number::UNIX, number::STREAM, _) => Kind::UnixStream,
        (number::UNIX, number::DATAGRAM, _) => Kind::UnixDatagram,
        (number::UNIX, number::SEQUENCE, _) => Kind::UnixPacket,
        (number::PACKET, ..) => Kind::Packet,
        (number::NETLINK, ..) => Kind::Netlink,
        (1..number::FAMILIES, ..) => Kind::Other(family as u16),
        _ => return Err(Error::SocketFamily(family)),
    })
}

//! Addresses of sockets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::state::number;
use crate::{Error, Guest};

/// Address of one end of a socket. Its `Display` is what `ss` prints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// IP address and port. Port 0 stands for none. A raw socket has the number of its protocol in place of the port.
    Ip(SocketAddr),
    /// Unix socket.
    Unix {
        /// Path of its file. An abstract name begins with `@`, and each zero byte in it is a `@`. `None` if it has no
        /// name.
        name: Option<String>,
        /// Number of its inode. 0 if it belongs to no file.
        inode: u64,
    },
    /// Network card: the protocol in its packets (Ethernet's number), and the card's index. Index 0 stands for all cards.
    Card {
        /// Protocol.
        protocol: u16,
        /// Index.
        index: u32,
    },
    /// No address.
    None,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) if address.port() == 0 => match address.ip() {
                IpAddr::V4(ip) => write!(f, "{ip}:*"),
                IpAddr::V6(ip) => write!(f, "[{ip}]:*"),
            },
            Address::Ip(address) => write!(f, "{address}"),
            Address::Unix { name, inode } => write!(f, "{} {inode}", name.as_deref().unwrap_or("*")),
            Address::Card { protocol, index: 0 } => write!(f, "{protocol:#06x}:*"),
            Address::Card { protocol, index } => write!(f, "{protocol:#06x}:{index}"),
            Address::None => f.write_str("*"),
        }
    }
}

impl Guest<'_> {
    /// Returns the local and the remote address in a `sock_common`.
    pub(crate) fn addresses(&self, sock: u64, local_port: u16) -> Result<(Address, Address), Error> {
        let places = &self.kernel.socket_layout.as_ref().map_err(Clone::clone)?.places;
        let (local, remote) = match self.number(sock, places.family)? {
            number::IP_4 => {
                let read = |field| Ok::<_, Error>(IpAddr::V4(Ipv4Addr::from(self.bytes::<4>(sock, field)?)));
                (read(places.local_4)?, read(places.remote_4)?)
            }
            number::IP_6 => {
                let read = |field| Ok::<_, Error>(IpAddr::V6(Ipv6Addr::from(self.bytes::<16>(sock, field)?)));
                (read(places.local_6)?, read(places.remote_6)?)
            }
            family => return Err(Error::SocketFamily(family)),
        };
        let remote_port = u16::from_be_bytes(self.bytes(sock, places.remote_port)?);
        let address = |ip, port| Address::Ip(SocketAddr::new(ip, port));
        Ok((address(local, local_port), address(remote, remote_port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_look_as_in_ss() {
        let ip = |text: &str| Address::Ip(text.parse().unwrap()).to_string();
        assert_eq!(ip("127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!((ip("0.0.0.0:0"), ip("[::]:0")), ("0.0.0.0:*".to_owned(), "[::]:*".to_owned()));
        assert_eq!(ip("[::ffff:10.0.0.1]:7"), "[::ffff:10.0.0.1]:7");
        let unix = |name: Option<&str>| Address::Unix { name: name.map(str::to_owned), inode: 7 }.to_string();
        assert_eq!((unix(Some("@a")), unix(None)), ("@a 7".to_owned(), "* 7".to_owned()));
        assert_eq!(Address::Card { protocol: 0x806, index: 2 }.to_string(), "0x0806:2");
        assert_eq!(Address::Card { protocol: 3, index: 0 }.to_string(), "0x0003:*");
        assert_eq!(Address::None.to_string(), "*");
    }
}

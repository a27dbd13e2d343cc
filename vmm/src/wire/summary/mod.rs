//! Summary of a frame in one line. Any bytes are accepted, because guests may send anything and faults flip bits.
//!
//! - this file: the summary, and its text
//! - [`read`]: parses a frame

mod read;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use serde::Serialize;

/// Summary of a frame's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// ARP for IPv4 over Ethernet (RFC 826).
    Arp {
        /// Operation: 1 for a request, 2 for a reply.
        operation: u16,
        /// MAC address of the sender.
        sender_mac: [u8; 6],
        /// IPv4 address of the sender.
        sender: Ipv4Addr,
        /// IPv4 address for which a request asks, or to which a reply goes.
        target: Ipv4Addr,
    },
    /// IPv4 or IPv6 packet.
    Ip {
        /// Source address.
        from: IpAddr,
        /// Destination address.
        to: IpAddr,
        /// Content of the packet.
        payload: Payload,
    },
    /// Another protocol, or a truncated frame.
    Other {
        /// EtherType after VLAN tags. 0 if the bytes are too short for a frame.
        ether_type: u16,
    },
}

/// Summary of an IP packet's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// TCP segment.
    Tcp {
        /// Source port.
        from_port: u16,
        /// Destination port.
        to_port: u16,
        /// Flags, from bit 0 on: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR (RFC 9293, section 3.1).
        flags: u8,
        /// Sequence number.
        seq: u32,
        /// Acknowledgment number.
        ack: u32,
        /// Length of the data in bytes.
        len: u16,
    },
    /// UDP datagram.
    Udp {
        /// Source port.
        from_port: u16,
        /// Destination port.
        to_port: u16,
        /// Length of the data in bytes.
        len: u16,
    },
    /// ICMP or ICMPv6 message.
    Icmp {
        /// True for ICMPv6.
        v6: bool,
        /// Type of the message.
        kind: u8,
        /// Code of the message.
        code: u8,
    },
    /// Fragment of a packet. Its transport header is not read, even if it has one.
    Fragment,
    /// Another protocol, or a truncated packet.
    Other {
        /// Protocol number.
        protocol: u8,
    },
}

const ARP_REQUEST: u16 = 1;
const ARP_REPLY: u16 = 2;
/// Names of the TCP flags, from bit 0 on.
const FLAGS: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

impl Summary {
    /// Summarizes a frame. Accepts any bytes.
    #[must_use]
    pub fn of(frame: &[u8]) -> Summary {
        read::frame(frame)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Summary::Arp { operation, sender, target, .. } if operation == ARP_REQUEST => {
                write!(f, "ARP who-has {target} tell {sender}")
            }
            Summary::Arp { operation, sender_mac: [a, b, c, d, e, g], sender, .. }
                if operation == ARP_REPLY =>
            {
                write!(f, "ARP {sender} is-at {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            Summary::Arp { operation, sender, target, .. } => {
                write!(f, "ARP operation {operation} from {sender} about {target}")
            }
            Summary::Ip { from, to, payload } => match payload {
                Payload::Tcp { from_port, to_port, flags, seq, ack, len } => {
                    write!(f, "TCP {from}.{from_port} > {to}.{to_port} ")?;
                    let names = FLAGS.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 != 0);
                    let names: Vec<_> = names.map(|(_, &name)| name).collect();
                    write!(f, "[{}] seq {seq} ack {ack} len {len}", names.join(","))
                }
                Payload::Udp { from_port, to_port, len } => {
                    write!(f, "UDP {from}.{from_port} > {to}.{to_port} len {len}")
                }
                Payload::Icmp { v6, kind, code } => {
                    let version = if v6 { "ICMPv6" } else { "ICMP" };
                    write!(f, "{version} {from} > {to} ")?;
                    match icmp_name(v6, kind) {
                        Some(name) => write!(f, "{name}")?,
                        None => write!(f, "type {kind}")?,
                    }
                    if code == 0 { Ok(()) } else { write!(f, " code {code}") }
                }
                Payload::Fragment => write!(f, "IP {from} > {to} fragment"),
                Payload::Other { protocol } => write!(f, "IP {from} > {to} protocol {protocol}"),
            },
            Summary::Other { ether_type } => write!(f, "EtherType {ether_type:#06x}"),
        }
    }
}

/// Returns the name of an ICMP type (RFC 792) or ICMPv6 type (RFC 4443 and 4861), if it has one.
fn icmp_name(v6: bool, kind: u8) -> Option<&'static str> {
    Some(match (v6, kind) {
        (false, 8) | (true, 128) => "echo-request",
        (false, 0) | (true, 129) => "echo-reply",
        (false, 3) | (true, 1) => "unreachable",
        (false, 11) | (true, 3) => "time-exceeded",
        (true, 2) => "packet-too-big",
        (true, 133) => "router-solicitation",
        (true, 134) => "router-advertisement",
        (true, 135) => "neighbor-solicitation",
        (true, 136) => "neighbor-advertisement",
        _ => return None,
    })
}

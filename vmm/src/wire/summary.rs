//! Summary of a frame in one line. Accepts any bytes: guests send anything, and faults flip bits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use etherparse::{
    ArpOperation, ArpPacketSlice, EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TransportSlice,
};
use etherparse::{icmpv4, icmpv6};
use serde::Serialize;

/// Content of a frame.
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
        /// IPv4 address that a request asks for, or to which a reply goes.
        target: Ipv4Addr,
    },
    /// IPv4 or IPv6.
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
        /// EtherType, after VLAN tags; 0 if the bytes are not a frame.
        ether_type: u16,
    },
}

/// Content of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// TCP.
    Tcp {
        /// Source port.
        from_port: u16,
        /// Destination port.
        to_port: u16,
        /// Flags, from bit 0: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR (RFC 9293, section 3.1).
        flags: u8,
        /// Sequence number.
        seq: u32,
        /// Acknowledgment number.
        ack: u32,
        /// Bytes of data.
        len: u16,
    },
    /// UDP.
    Udp {
        /// Source port.
        from_port: u16,
        /// Destination port.
        to_port: u16,
        /// Bytes of data.
        len: u16,
    },
    /// ICMP or ICMPv6.
    Icmp {
        /// True for ICMPv6.
        v6: bool,
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// A fragment without a transport header.
    Fragment,
    /// Another protocol, or a truncated packet.
    Other {
        /// Protocol number.
        protocol: u8,
    },
}

/// Names of the flags, from bit 0.
const FLAGS: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
/// Offset of the flags in a TCP header.
const FLAGS_OFFSET: usize = 13;

impl Summary {
    /// Summarizes a frame.
    #[must_use]
    pub fn of(frame: &[u8]) -> Summary {
        let Ok(packet) = LaxSlicedPacket::from_ethernet(frame) else {
            return Summary::Other { ether_type: 0 };
        };
        match &packet.net {
            Some(LaxNetSlice::Arp(packet)) => arp(packet),
            Some(LaxNetSlice::Ipv4(ip)) => Summary::Ip {
                from: ip.header().source_addr().into(),
                to: ip.header().destination_addr().into(),
                payload: payload(&packet),
            },
            Some(LaxNetSlice::Ipv6(ip)) => Summary::Ip {
                from: ip.header().source_addr().into(),
                to: ip.header().destination_addr().into(),
                payload: payload(&packet),
            },
            None => Summary::Other { ether_type: packet.ether_payload().map_or(0, |rest| rest.ether_type.0) },
        }
    }
}

fn arp(packet: &ArpPacketSlice<'_>) -> Summary {
    let parts = (|| {
        Some(Summary::Arp {
            operation: packet.operation().0,
            sender_mac: packet.sender_hw_addr().try_into().ok()?,
            sender: <[u8; 4]>::try_from(packet.sender_protocol_addr()).ok()?.into(),
            target: <[u8; 4]>::try_from(packet.target_protocol_addr()).ok()?.into(),
        })
    })();
    parts.unwrap_or(Summary::Other { ether_type: EtherType::ARP.0 })
}

fn payload(packet: &LaxSlicedPacket<'_>) -> Payload {
    let short = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => Payload::Tcp {
            from_port: tcp.source_port(),
            to_port: tcp.destination_port(),
            flags: tcp.slice().get(FLAGS_OFFSET).copied().unwrap_or(0),
            seq: tcp.sequence_number(),
            ack: tcp.acknowledgment_number(),
            len: short(tcp.payload()),
        },
        Some(TransportSlice::Udp(udp)) => Payload::Udp {
            from_port: udp.source_port(),
            to_port: udp.destination_port(),
            len: short(udp.payload()),
        },
        Some(TransportSlice::Icmpv4(icmp)) => {
            Payload::Icmp { v6: false, kind: icmp.type_u8(), code: icmp.code_u8() }
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            Payload::Icmp { v6: true, kind: icmp.type_u8(), code: icmp.code_u8() }
        }
        Some(TransportSlice::Igmp(_)) => Payload::Other { protocol: IpNumber::IGMP.0 },
        None => match packet.net.as_ref().and_then(LaxNetSlice::ip_payload_ref) {
            Some(rest) if rest.fragmented => Payload::Fragment,
            Some(rest) => Payload::Other { protocol: rest.ip_number.0 },
            None => Payload::Other { protocol: 0 },
        },
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Summary::Arp { operation, sender, target, .. } if operation == ArpOperation::REQUEST.0 => {
                write!(f, "ARP who-has {target} tell {sender}")
            }
            Summary::Arp { operation, sender_mac: [a, b, c, d, e, g], sender, .. }
                if operation == ArpOperation::REPLY.0 =>
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

fn icmp_name(v6: bool, kind: u8) -> Option<&'static str> {
    Some(match (v6, kind) {
        (false, icmpv4::TYPE_ECHO_REQUEST) | (true, icmpv6::TYPE_ECHO_REQUEST) => "echo-request",
        (false, icmpv4::TYPE_ECHO_REPLY) | (true, icmpv6::TYPE_ECHO_REPLY) => "echo-reply",
        (false, icmpv4::TYPE_DEST_UNREACH) | (true, icmpv6::TYPE_DST_UNREACH) => "unreachable",
        (false, icmpv4::TYPE_TIME_EXCEEDED) | (true, icmpv6::TYPE_TIME_EXCEEDED) => "time-exceeded",
        (true, icmpv6::TYPE_PACKET_TOO_BIG) => "packet-too-big",
        (true, icmpv6::TYPE_ROUTER_SOLICITATION) => "router-solicitation",
        (true, icmpv6::TYPE_ROUTER_ADVERTISEMENT) => "router-advertisement",
        (true, icmpv6::TYPE_NEIGHBOR_SOLICITATION) => "neighbor-solicitation",
        (true, icmpv6::TYPE_NEIGHBOR_ADVERTISEMENT) => "neighbor-advertisement",
        _ => return None,
    })
}

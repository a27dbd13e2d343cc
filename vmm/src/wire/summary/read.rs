//! Reads a frame: Ethernet, VLAN tags, ARP, IP with its extension headers, and transport headers.
//!
//! Reading is lax, because frames may be cut or damaged. If a length is smaller than the header that states it, or
//! exceeds the frame, the content extends to the end of the frame. Content that is too short for its header is reported
//! as another protocol.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Payload, Summary};

/// EtherTypes (IEEE 802).
mod ether_type {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const ARP: u16 = 0x0806;
    pub(super) const IPV6: u16 = 0x86dd;
    /// EtherTypes of VLAN tags: IEEE 802.1Q, provider bridging, and its predecessor.
    pub(super) const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
}

/// IP protocol numbers (RFC 5237).
mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ICMP: u8 = 1;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const AUTHENTICATION: u8 = 51;
    pub(super) const ICMPV6: u8 = 58;
    pub(super) const DESTINATION_OPTIONS: u8 = 60;
}

/// Maximum number of VLAN tags that are skipped.
const TAGS_MAX: usize = 3;

const ETHERNET_BYTES: usize = 14;
const VLAN_BYTES: usize = 4;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const ICMP_BYTES: usize = 8;
/// Length of an ICMP timestamp message in bytes (RFC 792).
const ICMP_TIMESTAMP_BYTES: usize = 20;

pub(super) fn frame(frame: &[u8]) -> Summary {
    let Some(mut rest) = frame.get(ETHERNET_BYTES..) else { return Summary::Other { ether_type: 0 } };
    let mut ether_type = be16(frame, ETHERNET_BYTES - 2);
    for _ in 0..TAGS_MAX {
        if !ether_type::VLAN.contains(&ether_type) || rest.len() < VLAN_BYTES {
            break;
        }
        ether_type = be16(rest, VLAN_BYTES - 2);
        rest = &rest[VLAN_BYTES..];
    }
    let read = match ether_type {
        ether_type::ARP => arp(rest),
        ether_type::IPV4 | ether_type::IPV6 => ip(rest),
        _ => None,
    };
    read.unwrap_or(Summary::Other { ether_type })
}

/// Reads ARP for IPv4 over Ethernet (RFC 826).
fn arp(packet: &[u8]) -> Option<Summary> {
    let &[_, _, _, _, 6, 4, operation_high, operation_low, ref addresses @ ..] = packet else { return None };
    let (sender_mac, rest) = addresses.split_first_chunk::<6>()?;
    let (sender, rest) = rest.split_first_chunk::<4>()?;
    let (_target_mac, rest) = rest.split_first_chunk::<6>()?;
    let target = rest.first_chunk::<4>()?;
    Some(Summary::Arp {
        operation: u16::from_be_bytes([operation_high, operation_low]),
        sender_mac: *sender_mac,
        sender: Ipv4Addr::from(*sender),
        target: Ipv4Addr::from(*target),
    })
}

/// Reads an IP packet. The version comes from the packet and not from the EtherType.
fn ip(packet: &[u8]) -> Option<Summary> {
    match packet.first()? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => None,
    }
}

/// Reads IPv4 (RFC 791).
fn ipv4(packet: &[u8]) -> Option<Summary> {
    const PROTOCOL: usize = 9;
    let header_bytes = usize::from(packet[0] & 0xf) * 4;
    if header_bytes < IPV4_BYTES {
        return None;
    }
    let rest = packet.get(header_bytes..)?;
    let bytes = usize::from(be16(packet, 2)).checked_sub(header_bytes).unwrap_or(rest.len());
    // Bits of the flag "more fragments" and of the fragment offset.
    let is_fragment = be16(packet, 6) & 0x3fff != 0;
    let content = Content { protocol: packet[PROTOCOL], bytes: &rest[..bytes.min(rest.len())], is_fragment };
    let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
    let payload = match content.protocol {
        protocol::AUTHENTICATION => {
            content.after_authentication().map_or_else(Content::unread, Content::payload)
        }
        _ => content.payload(),
    };
    Some(Summary::Ip { from: address(12)?.into(), to: address(16)?.into(), payload })
}

/// Reads IPv6 (RFC 8200).
fn ipv6(packet: &[u8]) -> Option<Summary> {
    const NEXT_HEADER: usize = 6;
    let rest = packet.get(IPV6_BYTES..)?;
    // Length 0 means that an option (jumbo payload) has the length.
    let bytes = match be16(packet, 4) {
        0 => rest.len(),
        bytes => rest.len().min(bytes.into()),
    };
    let content = Content { protocol: packet[NEXT_HEADER], bytes: &rest[..bytes], is_fragment: false };
    let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
    let payload = content.after_extensions().map_or_else(Content::unread, Content::payload);
    Some(Summary::Ip { from: address(8)?.into(), to: address(24)?.into(), payload })
}

/// Content of an IP packet, from some header on.
struct Content<'a> {
    /// Protocol number of the first header.
    protocol: u8,
    bytes: &'a [u8],
    is_fragment: bool,
}

impl<'a> Content<'a> {
    /// Skips IPv6 extension headers. If a header cannot be skipped, returns the content from that header on as an
    /// error.
    fn after_extensions(mut self) -> Result<Content<'a>, Content<'a>> {
        // Hop-by-hop options come directly after the IPv6 header.
        if self.protocol == protocol::HOP_BY_HOP {
            self = self.after_options()?;
        }
        loop {
            self = match self.protocol {
                protocol::HOP_BY_HOP => return Err(self),
                protocol::DESTINATION_OPTIONS | protocol::ROUTING => self.after_options()?,
                protocol::FRAGMENT => self.after_fragment()?,
                protocol::AUTHENTICATION => self.after_authentication()?,
                _ => return Ok(self),
            };
        }
    }

    /// Skips options or a routing header. Its length field counts units of 8 bytes after the first 8.
    fn after_options(self) -> Result<Content<'a>, Content<'a>> {
        match *self.bytes {
            [next, units, ..] => self.after(next, (usize::from(units) + 1) * 8),
            _ => Err(self),
        }
    }

    /// Skips an authentication header (RFC 4302). Its length field counts units of 4 bytes after the first 8.
    fn after_authentication(self) -> Result<Content<'a>, Content<'a>> {
        match *self.bytes {
            [next, units @ 1..=u8::MAX, ..] => self.after(next, (usize::from(units) + 2) * 4),
            _ => Err(self),
        }
    }

    /// Skips a fragment header.
    fn after_fragment(mut self) -> Result<Content<'a>, Content<'a>> {
        match *self.bytes {
            [next, _, offset, flags, ..] if self.bytes.len() >= 8 => {
                // The lowest three bits are two reserved bits and "more fragments".
                self.is_fragment |= offset != 0 || flags & 0b1111_1001 != 0;
                self.after(next, 8)
            }
            _ => Err(self),
        }
    }

    /// Skips a header of `bytes` bytes. `next` is the protocol number of the next header.
    fn after(self, next: u8, bytes: usize) -> Result<Content<'a>, Content<'a>> {
        match self.bytes.get(bytes..) {
            Some(rest) => Ok(Content { protocol: next, bytes: rest, ..self }),
            None => Err(self),
        }
    }

    /// Reads the transport header.
    fn payload(self) -> Payload {
        let transport = match self.protocol {
            _ if self.is_fragment => None,
            protocol::TCP => tcp(self.bytes),
            protocol::UDP => udp(self.bytes),
            protocol::ICMP => icmp(self.bytes),
            protocol::ICMPV6 => icmpv6(self.bytes),
            _ => None,
        };
        transport.unwrap_or_else(|| self.unread())
    }

    /// Returns the summary of content whose transport header is not read.
    fn unread(self) -> Payload {
        if self.is_fragment { Payload::Fragment } else { Payload::Other { protocol: self.protocol } }
    }
}

/// Reads TCP (RFC 9293).
fn tcp(segment: &[u8]) -> Option<Payload> {
    const FLAGS: usize = 13;
    if segment.len() < TCP_BYTES {
        return None;
    }
    let header_bytes = usize::from(segment[12] >> 4) * 4;
    let data = if header_bytes < TCP_BYTES { None } else { segment.get(header_bytes..) }?;
    Some(Payload::Tcp {
        from_port: be16(segment, 0),
        to_port: be16(segment, 2),
        flags: segment[FLAGS],
        seq: be32(segment, 4),
        ack: be32(segment, 8),
        len: length(data),
    })
}

/// Reads UDP (RFC 768).
fn udp(datagram: &[u8]) -> Option<Payload> {
    let data = datagram.get(UDP_BYTES..)?;
    let bytes = usize::from(be16(datagram, 4)).checked_sub(UDP_BYTES).unwrap_or(data.len());
    Some(Payload::Udp {
        from_port: be16(datagram, 0),
        to_port: be16(datagram, 2),
        len: length(&data[..bytes.min(data.len())]),
    })
}

/// Reads ICMP (RFC 792).
fn icmp(message: &[u8]) -> Option<Payload> {
    const TIMESTAMP: u8 = 13;
    const TIMESTAMP_REPLY: u8 = 14;
    let [kind, code, ..] = *message else { return None };
    let has_timestamps = matches!(kind, TIMESTAMP | TIMESTAMP_REPLY) && code == 0;
    let is_whole =
        if has_timestamps { message.len() == ICMP_TIMESTAMP_BYTES } else { message.len() >= ICMP_BYTES };
    is_whole.then_some(Payload::Icmp { v6: false, kind, code })
}

/// Reads ICMPv6 (RFC 4443).
fn icmpv6(message: &[u8]) -> Option<Payload> {
    let [kind, code, ..] = *message else { return None };
    (message.len() >= ICMP_BYTES).then_some(Payload::Icmp { v6: true, kind, code })
}

fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}

/// Returns the big-endian number at an offset. The caller ensures that two bytes are there.
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the big-endian number at an offset. The caller ensures that four bytes are there.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

//! MAC addresses of the nodes that an endpoint (Everett's own TCP/IP stack on the wire) talks to: ARP (RFC 826) and
//! neighbor discovery (RFC 4861).
//!
//! The TCP/IP stack itself would query only one address per second, and repeat the same query if no node answers. A
//! node without power would thus keep the endpoint from talking to any other node. So the endpoint itself queries all
//! addresses, and the stack learns from the answers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscRepr,
};

use crate::wire::HEADER_BYTES;
use crate::wire::summary::{Payload, Summary};

/// Maximum number of IP addresses for which the endpoint queries MAC addresses.
pub const NEIGHBORS_MAX: usize = 256;
/// Interval between two queries for an address, in nanoseconds (RFC 4861, RETRANS_TIMER).
const ASK_EVERY_NS: u64 = 1_000_000_000;
/// Time for which an answer is valid, in nanoseconds. The stack remembers an answer twice as long.
const KNOWN_NS: u64 = 30_000_000_000;
/// ICMPv6 type of a neighbor advertisement.
const ADVERTISEMENT: u8 = 136;
/// Hop limit of neighbor discovery packets (RFC 4861, section 3.1). It shows that no router has forwarded the packet.
const HOP_LIMIT: u8 = 255;

/// Knowledge of the endpoint about an IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbor {
    /// The MAC address is unknown, and the next query is due at this vtime.
    Wanted(u64),
    /// The MAC address is known since this vtime.
    Known(u64),
}

/// Nodes that the endpoint talks to, by IP address.
#[derive(Debug, Default)]
pub(super) struct Neighbors(BTreeMap<IpAddr, Neighbor>);

impl Neighbors {
    /// Records that the endpoint needs the MAC address of `who` from vtime `now` on.
    pub(super) fn want(&mut self, who: IpAddr, now: u64) {
        match self.0.get(&who) {
            Some(Neighbor::Wanted(_)) => return,
            Some(Neighbor::Known(since)) if now < since.saturating_add(KNOWN_NS) => return,
            None if self.0.len() >= NEIGHBORS_MAX => return,
            _ => (),
        }
        self.0.insert(who, Neighbor::Wanted(now));
    }

    /// Forgets all addresses.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Returns the vtime at which the next query is due.
    pub(super) fn next(&self) -> Option<u64> {
        let wanted = self.0.values().filter_map(|neighbor| match neighbor {
            Neighbor::Wanted(at) => Some(*at),
            Neighbor::Known(_) => None,
        });
        wanted.min()
    }

    /// Records that the sender's MAC address is known, if the frame is an ARP packet or a neighbor advertisement. The
    /// stack learns the address itself from the same frame.
    pub(super) fn hear(&mut self, frame: &[u8], now: u64) {
        let who = match Summary::of(frame) {
            Summary::Arp { sender, .. } => sender.into(),
            Summary::Ip { from, payload: Payload::Icmp { v6: true, kind: ADVERTISEMENT, .. }, .. } => from,
            _ => return,
        };
        if let Some(neighbor) = self.0.get_mut(&who) {
            *neighbor = Neighbor::Known(now);
        }
    }

    /// Returns frames with the queries that are due at `now`. The sender is the endpoint. Its own addresses are `mac`,
    /// `ipv4` and `ipv6`.
    pub(super) fn ask(
        &mut self,
        now: u64,
        mac: EthernetAddress,
        ipv4: Option<Ipv4Addr>,
        ipv6: Option<Ipv6Addr>,
    ) -> Vec<Vec<u8>> {
        let mut questions = vec![];
        for (who, neighbor) in &mut self.0 {
            match neighbor {
                Neighbor::Wanted(at) if *at <= now => *at = now.saturating_add(ASK_EVERY_NS),
                _ => continue,
            }
            questions.extend(match who {
                IpAddr::V4(who) => ipv4.map(|own| arp_request(mac, own, *who)),
                IpAddr::V6(who) => ipv6.map(|own| solicitation(mac, own, *who)),
            });
        }
        questions
    }
}

fn ethernet(repr: EthernetRepr, payload: usize) -> EthernetFrame<Vec<u8>> {
    let mut frame = EthernetFrame::new_unchecked(vec![0; HEADER_BYTES + payload]);
    repr.emit(&mut frame);
    frame
}

fn arp_request(mac: EthernetAddress, own: Ipv4Addr, who: Ipv4Addr) -> Vec<u8> {
    let request = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: mac,
        source_protocol_addr: own,
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: who,
    };
    let to = EthernetAddress::BROADCAST;
    let repr = EthernetRepr { src_addr: mac, dst_addr: to, ethertype: EthernetProtocol::Arp };
    let mut frame = ethernet(repr, request.buffer_len());
    request.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    frame.into_inner()
}

fn solicitation(mac: EthernetAddress, own: Ipv6Addr, who: Ipv6Addr) -> Vec<u8> {
    let [.., a, b, c] = who.octets();
    // The query goes to the solicited-node address (RFC 4291, section 2.7.1) and its Ethernet group (RFC 2464, section
    // 7).
    let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
    let to = EthernetAddress([0x33, 0x33, 0xff, a, b, c]);
    let solicit =
        Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr: who, lladdr: Some(mac.into()) });
    let ip = Ipv6Repr {
        src_addr: own,
        dst_addr: group,
        next_header: IpProtocol::Icmpv6,
        payload_len: solicit.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    let repr = EthernetRepr { src_addr: mac, dst_addr: to, ethertype: EthernetProtocol::Ipv6 };
    let mut frame = ethernet(repr, ip.buffer_len() + solicit.buffer_len());
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet);
    let mut icmp = Icmpv6Packet::new_unchecked(packet.payload_mut());
    solicit.emit(&own, &group, &mut icmp, &ChecksumCapabilities::default());
    frame.into_inner()
}

//! Data of a message: what the transport protocol of a frame carries.

use etherparse::{LaxSlicedPacket, TransportSlice, ip_number};

/// Returns the data of a TCP segment or UDP datagram, and otherwise the content of the frame's packet. Guests may send
/// anything: a frame that is damaged has the data up to the damage.
pub(super) fn data(frame: &[u8]) -> &[u8] {
    let Ok(packet) = LaxSlicedPacket::from_ethernet(frame) else { return &[] };
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => tcp.payload(),
        Some(TransportSlice::Udp(udp)) => udp.payload(),
        Some(TransportSlice::Icmpv4(icmp)) => icmp.payload(),
        Some(TransportSlice::Icmpv6(icmp)) => icmp.payload(),
        _ => match packet.ip_payload() {
            // The header of the transport protocol is cut.
            Some(payload) if matches!(payload.ip_number, ip_number::TCP | ip_number::UDP) => &[],
            Some(payload) => payload.payload,
            None => &[],
        },
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    #[test]
    fn data_is_that_of_the_transport_protocol() {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let mut frame = Vec::new();
        builder.tcp(1, 2, 3, 4).write(&mut frame, b"SET a 1").unwrap();
        // Ethernet pads short frames.
        frame.extend([0; 8]);
        assert_eq!(data(&frame), b"SET a 1");
        for len in 0..frame.len() {
            assert!(b"SET a 1".starts_with(data(&frame[..len])), "{len}");
        }
        assert_eq!(data(&[]), b"");
    }
}

//! Network card of an endpoint. An endpoint is a TCP/IP stack with which Everett itself talks to the nodes of a world.
//! The card stores the frames between this stack and the wire, in both directions.

use std::collections::VecDeque;

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use crate::wire::HEADER_BYTES;

/// Maximum length of an IP packet in bytes.
pub(super) const MTU: usize = 1500;

#[derive(Debug, Default)]
pub(super) struct Card {
    /// Frames that have arrived for the stack.
    pub(super) received: VecDeque<Vec<u8>>,
    /// Frames from the stack for the wire.
    pub(super) sent: Vec<Vec<u8>>,
}

pub(super) struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

pub(super) struct Sending<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut frame = vec![0; len];
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Received(frame), Sending(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MTU + HEADER_BYTES;
        capabilities
    }
}

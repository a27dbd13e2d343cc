//! A learning switch (IEEE 802.1D, 7.8) without ageing. It chooses the ports to which a frame goes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of MAC addresses that the switch learns behind one port. Frames to further addresses are flooded.
pub const MACS_PER_PORT_MAX: usize = 64;
/// Length of an Ethernet header in bytes: destination, source and type.
pub const HEADER_BYTES: usize = 14;

/// Ports to which a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// One port.
    Port(u8),
    /// All ports except the one from which the frame came.
    Flood,
    /// Only the port from which the frame came, so the frame goes nowhere.
    Own,
}

/// Learned MAC addresses, each with the port behind which it was last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Table(BTreeMap<[u8; 6], u8>);

impl Table {
    /// Learns the source of a frame that came in at `port`, and returns the frame's route.
    pub(super) fn route(&mut self, port: u8, destination: [u8; 6], source: [u8; 6]) -> Route {
        self.learn(port, source);
        if is_group(destination) {
            return Route::Flood;
        }
        match self.0.get(&destination) {
            Some(&to) if to == port => Route::Own,
            Some(&to) => Route::Port(to),
            None => Route::Flood,
        }
    }

    fn learn(&mut self, port: u8, source: [u8; 6]) {
        if is_group(source) || source == [0; 6] || self.0.get(&source) == Some(&port) {
            return;
        }
        // The address has moved away from its old port, even if there is no room to learn its new port.
        self.0.remove(&source);
        if self.behind(port) < MACS_PER_PORT_MAX {
            self.0.insert(source, port);
        }
    }

    /// Forgets the addresses behind a port, because its node lost power.
    pub(super) fn forget(&mut self, port: u8) {
        self.0.retain(|_, behind| *behind != port);
    }

    fn behind(&self, port: u8) -> usize {
        self.0.values().filter(|&&behind| behind == port).count()
    }

    /// True if a switch with `ports` ports can have learned this table.
    pub(super) fn is_sound(&self, ports: usize) -> bool {
        self.0.iter().all(|(&mac, &port)| usize::from(port) < ports && !is_group(mac) && mac != [0; 6])
            && (0..ports).all(|port| self.behind(port as u8) <= MACS_PER_PORT_MAX)
    }
}

/// True for a broadcast or multicast address.
fn is_group(mac: [u8; 6]) -> bool {
    mac[0] & 1 != 0
}

/// Returns a frame's destination and source address. Returns `None` if the frame is shorter than a header.
pub(super) fn addresses(frame: &[u8]) -> Option<([u8; 6], [u8; 6])> {
    if frame.len() < HEADER_BYTES {
        return None;
    }
    let (destination, rest) = frame.split_first_chunk()?;
    Some((*destination, *rest.first_chunk()?))
}

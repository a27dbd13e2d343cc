//! Which port a frame goes to: a learning switch (IEEE 802.1D, 7.8), without ageing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Addresses that the switch knows behind one port. More are not learned: frames to them are flooded.
pub const MACS_PER_PORT_MAX: usize = 64;
/// Destination and source address and type.
pub const HEADER_BYTES: usize = 14;

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// To this port.
    Port(u8),
    /// To all ports but its own.
    Flood,
    /// Back to where it came from.
    Own,
}

/// Which address was last seen behind which port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Table(BTreeMap<[u8; 6], u8>);

impl Table {
    /// A frame with this destination and source came in by `port`.
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
        // It is not where it was, whether or not there is room to know where it is.
        self.0.remove(&source);
        if self.behind(port) < MACS_PER_PORT_MAX {
            self.0.insert(source, port);
        }
    }

    /// A port's cable was pulled.
    pub(super) fn forget(&mut self, port: u8) {
        self.0.retain(|_, behind| *behind != port);
    }

    fn behind(&self, port: u8) -> usize {
        self.0.values().filter(|&&behind| behind == port).count()
    }

    /// Whether `ports` ports could have taught it this.
    pub(super) fn is_sound(&self, ports: usize) -> bool {
        self.0.iter().all(|(&mac, &port)| usize::from(port) < ports && !is_group(mac) && mac != [0; 6])
            && (0..ports).all(|port| self.behind(port as u8) <= MACS_PER_PORT_MAX)
    }
}

/// Broadcast and multicast.
fn is_group(mac: [u8; 6]) -> bool {
    mac[0] & 1 != 0
}

/// A frame's destination and source, if it is long enough to be one.
pub(super) fn addresses(frame: &[u8]) -> Option<([u8; 6], [u8; 6])> {
    if frame.len() < HEADER_BYTES {
        return None;
    }
    let (destination, rest) = frame.split_first_chunk()?;
    Some((*destination, *rest.first_chunk()?))
}

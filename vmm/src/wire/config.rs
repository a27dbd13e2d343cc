//! What a wire joins: ports, the links between them, and what of that is refused.

use std::collections::BTreeMap;

use everett_fault::Distribution;
use everett_fault::distribution::DistributionError;
use serde::{Deserialize, Serialize};

use crate::virtio::net::FRAME_BYTES_MAX;

/// Ports of a wire. Sets of them are bits of a word.
pub const PORTS_MAX: usize = everett_fault::limits::NODES_MAX;
/// Bytes of a node's name.
pub const NAME_BYTES_MAX: usize = 64;
/// The least that a link's latency may be, in nanoseconds: nodes run this far without hearing of each other.
pub const LATENCY_NS_MIN: u64 = 1_000;
/// The slowest that a link may be, in bits a second.
pub const BITS_PER_S_MIN: u64 = 1_000;
/// The fastest that a link may be, in bits a second.
pub const BITS_PER_S_MAX: u64 = 1_000_000_000_000;
/// The shortest queue of a link's direction, in bytes: one frame.
pub const QUEUE_BYTES_MIN: u32 = FRAME_BYTES_MAX as u32;
/// The longest queue of a link's direction, in bytes.
pub const QUEUE_BYTES_MAX: u32 = 16 << 20;

/// What is plugged into a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortConfig {
    /// The node's name: letters, digits, dots, dashes and underscores.
    pub name: String,
    /// Its card's address. The switch learns addresses from frames; this one is for captures, and to be told apart.
    pub mac: [u8; 6],
}

/// Each direction of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// How long a frame is on its way once its last bit was sent, in nanoseconds.
    pub latency: Distribution,
    /// Bits a second. Counted are a frame's own bytes, without preamble, checksum and gap.
    pub bits_per_s: u64,
    /// Bytes that may wait, with the frame that is being sent. What does not fit is dropped.
    pub queue_bytes: u32,
}

impl Default for LinkConfig {
    /// Two machines in one hall.
    fn default() -> LinkConfig {
        LinkConfig {
            latency: Distribution::Uniform(100_000, 150_000),
            bits_per_s: 1_000_000_000,
            queue_bytes: 512 << 10,
        }
    }
}

/// A link that is unlike the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOverride {
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// The other direction, too.
    pub both_ways: bool,
    /// What it is like.
    pub link: LinkConfig,
}

/// What a wire joins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireConfig {
    /// In the order of their numbers.
    pub ports: Vec<PortConfig>,
    /// What links are like.
    pub link: LinkConfig,
    /// Except these.
    pub overrides: Vec<LinkOverride>,
}

/// Why a wire cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too many ports.
    #[error("{0} ports: at most {PORTS_MAX}")]
    Ports(usize),
    /// No name for a node.
    #[error("{0:?}: a node's name has 1 to {NAME_BYTES_MAX} letters, digits, dots, dashes and underscores")]
    Name(String),
    /// A name twice.
    #[error("two nodes are called {0}")]
    NameTwice(String),
    /// A card's address that is for groups, or nobody's.
    #[error("{0}: its MAC address is not one card's")]
    Mac(String),
    /// An address twice.
    #[error("{0} and {1} have the same MAC address")]
    MacTwice(String, String),
    /// A name that no port has.
    #[error("a link of {0}: there is no such node")]
    UnknownNode(String),
    /// From a node to itself.
    #[error("a link from {0} to itself")]
    ToItself(String),
    /// Described twice.
    #[error("the link from {0} to {1} is described twice")]
    LinkTwice(String, String),
    /// No distribution.
    #[error("latency of {0}: {1}")]
    Latency(String, DistributionError),
    /// Frames would arrive too soon.
    #[error("latency of {0}: {1} ns at the least, {LATENCY_NS_MIN} ns are needed")]
    TooClose(String, u64),
    /// A bandwidth beyond the bounds.
    #[error("bandwidth of {0}: {1} bits a second; from {BITS_PER_S_MIN} to {BITS_PER_S_MAX}")]
    Bandwidth(String, u64),
    /// A queue beyond the bounds.
    #[error("queue of {0}: {1} bytes; from {QUEUE_BYTES_MIN} to {QUEUE_BYTES_MAX}")]
    Queue(String, u32),
}

/// A configuration that was checked, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WireConfig", into = "WireConfig")]
pub(super) struct Topology {
    config: WireConfig,
    /// For each direction, which link it belongs to: 0 for the usual one, i for override i - 1.
    table: Vec<u16>,
    lookahead: u64,
}

impl Topology {
    pub(super) fn ports(&self) -> &[PortConfig] {
        &self.config.ports
    }

    pub(super) fn name(&self, port: u8) -> &str {
        self.config.ports.get(usize::from(port)).map_or("", |port| &port.name)
    }

    pub(super) fn port(&self, name: &str) -> Option<u8> {
        self.config.ports.iter().position(|port| port.name == name).map(|port| port as u8)
    }

    /// How many directions there are, those from nodes to themselves among them.
    pub(super) fn directions(&self) -> usize {
        self.table.len()
    }

    /// The number of a direction.
    pub(super) fn direction(&self, from: u8, to: u8) -> usize {
        usize::from(from) * self.config.ports.len() + usize::from(to)
    }

    /// What a direction is like.
    pub(super) fn link(&self, direction: usize) -> &LinkConfig {
        let number = self.table.get(direction).map_or(0, |&number| usize::from(number));
        match number.checked_sub(1).and_then(|other| self.config.overrides.get(other)) {
            Some(other) => &other.link,
            None => &self.config.link,
        }
    }

    /// The least latency of all links.
    pub(super) fn lookahead(&self) -> u64 {
        self.lookahead
    }
}

impl From<Topology> for WireConfig {
    fn from(topology: Topology) -> WireConfig {
        topology.config
    }
}

impl TryFrom<WireConfig> for Topology {
    type Error = ConfigError;

    fn try_from(config: WireConfig) -> Result<Topology, ConfigError> {
        let ports = config.ports.len();
        if ports > PORTS_MAX {
            return Err(ConfigError::Ports(ports));
        }
        let mut numbers = BTreeMap::new();
        let mut macs = BTreeMap::new();
        for (number, port) in config.ports.iter().enumerate() {
            check_name(&port.name)?;
            if numbers.insert(&port.name, number).is_some() {
                return Err(ConfigError::NameTwice(port.name.clone()));
            }
            if port.mac[0] & 1 != 0 || port.mac == [0; 6] {
                return Err(ConfigError::Mac(port.name.clone()));
            }
            if let Some(other) = macs.insert(port.mac, &port.name) {
                return Err(ConfigError::MacTwice(other.clone(), port.name.clone()));
            }
        }
        check_link(&config.link, || "the usual link".to_owned())?;
        let mut lookahead = config.link.latency.least();
        let mut table = vec![0; ports * ports];
        for (i, other) in config.overrides.iter().enumerate() {
            let number =
                |name: &String| numbers.get(name).ok_or_else(|| ConfigError::UnknownNode(name.clone()));
            let (from, to) = (*number(&other.from)?, *number(&other.to)?);
            if from == to {
                return Err(ConfigError::ToItself(other.from.clone()));
            }
            check_link(&other.link, || format!("the link from {} to {}", other.from, other.to))?;
            lookahead = lookahead.min(other.link.latency.least());
            let back = other.both_ways.then_some((to, from));
            for (from, to) in [(from, to)].into_iter().chain(back) {
                if std::mem::replace(&mut table[from * ports + to], i as u16 + 1) != 0 {
                    let name = |number: usize| config.ports[number].name.clone();
                    return Err(ConfigError::LinkTwice(name(from), name(to)));
                }
            }
        }
        Ok(Topology { config, table, lookahead })
    }
}

fn check_name(name: &str) -> Result<(), ConfigError> {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if letters && (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let start = name.chars().take(NAME_BYTES_MAX).collect();
    Err(ConfigError::Name(start))
}

fn check_link(link: &LinkConfig, name: impl Fn() -> String) -> Result<(), ConfigError> {
    link.latency.check().map_err(|error| ConfigError::Latency(name(), error))?;
    if link.latency.least() < LATENCY_NS_MIN {
        return Err(ConfigError::TooClose(name(), link.latency.least()));
    }
    if !(BITS_PER_S_MIN..=BITS_PER_S_MAX).contains(&link.bits_per_s) {
        return Err(ConfigError::Bandwidth(name(), link.bits_per_s));
    }
    if !(QUEUE_BYTES_MIN..=QUEUE_BYTES_MAX).contains(&link.queue_bytes) {
        return Err(ConfigError::Queue(name(), link.queue_bytes));
    }
    Ok(())
}

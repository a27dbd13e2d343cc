//! Configuration of a wire: its ports, the links between them, and their validation.

use std::collections::BTreeMap;

use everett_fault::Distribution;
use everett_fault::distribution::DistributionError;
use serde::{Deserialize, Serialize};

use crate::virtio::net::FRAME_BYTES_MAX;

/// Maximum number of ports of a wire. A set of ports must fit into the bits of a 64-bit word.
pub const PORTS_MAX: usize = everett_fault::limits::NODES_MAX;
/// Maximum length of a node's name in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Minimum latency of a link, in nanoseconds. No frame arrives sooner after its sending. A world can therefore execute
/// each node for this long before nodes exchange frames.
pub const LATENCY_NS_MIN: u64 = 1_000;
/// Minimum bandwidth of a link, in bits per second.
pub const BITS_PER_S_MIN: u64 = 1_000;
/// Maximum bandwidth of a link, in bits per second.
pub const BITS_PER_S_MAX: u64 = 1_000_000_000_000;
/// Minimum size of a direction's queue in bytes: one frame.
pub const QUEUE_BYTES_MIN: u32 = FRAME_BYTES_MAX as u32;
/// Maximum size of a direction's queue in bytes.
pub const QUEUE_BYTES_MAX: u32 = 16 << 20;

/// Node that is plugged into a port of the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortConfig {
    /// The node's name: letters, digits, dots, dashes and underscores.
    pub name: String,
    /// MAC address of the node's card. Captures show this address, and no two cards may share one. The switch does not
    /// use it: the switch learns addresses from frames.
    pub mac: [u8; 6],
}

/// Properties of one direction of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// Time from sending a frame's last bit to its arrival, in nanoseconds.
    pub latency: Distribution,
    /// Bandwidth in bits per second. Preamble, checksum and gap between frames take no time.
    pub bits_per_s: u64,
    /// Maximum bytes in the queue, including the frame that is being sent. A frame that does not fit is dropped.
    /// [`NO_LINK`] means that the direction does not exist.
    pub queue_bytes: u32,
}

/// Value of [`LinkConfig::queue_bytes`] for a direction that does not exist.
pub const NO_LINK: u32 = 0;

impl Default for LinkConfig {
    /// Returns the properties of a link between two machines in one data centre.
    fn default() -> LinkConfig {
        LinkConfig {
            latency: Distribution::Uniform(100_000, 150_000),
            bits_per_s: 1_000_000_000,
            queue_bytes: 512 << 10,
        }
    }
}

/// Link whose properties differ from the default ([`WireConfig::link`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOverride {
    /// Name of the sending node.
    pub from: String,
    /// Name of the receiving node.
    pub to: String,
    /// True if the opposite direction has these properties, too.
    pub both_ways: bool,
    /// Properties of the direction.
    pub link: LinkConfig,
}

/// Configuration of a wire: its ports and links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireConfig {
    /// Ports, in the order of their numbers.
    pub ports: Vec<PortConfig>,
    /// Properties of all links without an override.
    pub link: LinkConfig,
    /// Links with other properties.
    pub overrides: Vec<LinkOverride>,
}

/// Defect of a wire's configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The wire has too many ports.
    #[error("{0} ports: at most {PORTS_MAX}")]
    Ports(usize),
    /// A node's name is invalid.
    #[error("{0:?}: a node's name has 1 to {NAME_BYTES_MAX} letters, digits, dots, dashes and underscores")]
    Name(String),
    /// Two nodes have the same name.
    #[error("two nodes are called {0}")]
    NameTwice(String),
    /// A card's MAC address is a group address or zero.
    #[error("{0}: its MAC address is a group address or zero")]
    Mac(String),
    /// Two cards have the same MAC address.
    #[error("{0} and {1} have the same MAC address")]
    MacTwice(String, String),
    /// A link names a node that does not exist.
    #[error("a link names {0}, which is not a node")]
    UnknownNode(String),
    /// A link joins a node to itself.
    #[error("a link from {0} to itself")]
    ToItself(String),
    /// A link is configured twice.
    #[error("the link from {0} to {1} is described twice")]
    LinkTwice(String, String),
    /// A latency's distribution is invalid.
    #[error("latency of {0}")]
    Latency(String, #[source] DistributionError),
    /// A latency can be less than [`LATENCY_NS_MIN`].
    #[error("latency of {0}: its minimum of {1} ns is below {LATENCY_NS_MIN} ns")]
    TooClose(String, u64),
    /// A bandwidth is out of bounds.
    #[error("bandwidth of {0}: {1} bits a second; from {BITS_PER_S_MIN} to {BITS_PER_S_MAX}")]
    Bandwidth(String, u64),
    /// A queue length is out of bounds.
    #[error("queue of {0}: {1} bytes; from {QUEUE_BYTES_MIN} to {QUEUE_BYTES_MAX}")]
    Queue(String, u32),
}

/// Validated configuration, with tables that are computed from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WireConfig", into = "WireConfig")]
pub(super) struct Topology {
    config: WireConfig,
    /// Source of each direction's properties: 0 stands for the default, i for override i - 1.
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

    /// Returns the number of directions, including those from a node to itself.
    pub(super) fn directions(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of a direction, which indexes per-direction tables.
    pub(super) fn direction(&self, from: u8, to: u8) -> usize {
        usize::from(from) * self.config.ports.len() + usize::from(to)
    }

    pub(super) fn link(&self, direction: usize) -> &LinkConfig {
        let number = self.table.get(direction).map_or(0, |&number| usize::from(number));
        match number.checked_sub(1).and_then(|other| self.config.overrides.get(other)) {
            Some(other) => &other.link,
            None => &self.config.link,
        }
    }

    /// True if there is a link from one node to another.
    pub(super) fn is_linked(&self, from: u8, to: u8) -> bool {
        self.link(self.direction(from, to)).queue_bytes != NO_LINK
    }

    /// Returns the minimum latency of all links, in nanoseconds.
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
    if link.queue_bytes != NO_LINK && !(QUEUE_BYTES_MIN..=QUEUE_BYTES_MAX).contains(&link.queue_bytes) {
        return Err(ConfigError::Queue(name(), link.queue_bytes));
    }
    Ok(())
}

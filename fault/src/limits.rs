//! Bounds of a world, against which fault plans are checked.

/// Maximum number of nodes of a world. Each node has its own port of the wire.
pub const NODES_MAX: usize = 64;
/// Maximum number of network faults that are active at one time.
pub const NETWORK_FAULTS_MAX: usize = 256;

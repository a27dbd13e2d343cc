//! Bounds of a world that fault plans are checked against.

/// Nodes of a world, which are the ports of its wire.
pub const NODES_MAX: usize = 64;
/// Network faults that last at one time.
pub const NETWORK_FAULTS_MAX: usize = 256;

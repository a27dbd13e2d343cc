//! Maximum numbers of nodes and of active network faults in a world. Fault plans must not exceed them.

/// Maximum number of nodes in a world. Each node has its own port on the simulated wire.
pub const NODES_MAX: usize = 64;
/// Maximum number of network faults that are active at once.
pub const NETWORK_FAULTS_MAX: usize = 256;

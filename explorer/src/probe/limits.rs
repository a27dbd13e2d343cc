//! Bounds of probes that a world file declares.

/// Maximum number of probes that a world declares.
pub const PROBES_MAX: usize = 64;
/// Maximum number of nodes that a probe names.
pub const NODES_MAX: usize = everett_fault::limits::NODES_MAX;
/// Maximum number of processes for which a branch remembers the last value of a probe. Processes that have ended count, too.
/// For further processes, a value is compared with no earlier one.
pub const PROCESSES_MAX: usize = 4096;

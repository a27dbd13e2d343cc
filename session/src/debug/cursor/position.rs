//! An instant of one node.

/// Instant of one node, between two of its instructions. Positions are ordered by vtime. At equal vtimes, nodes execute
/// in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The world's vtime that the node has reached, in nanoseconds.
    pub vtime_ns: u64,
    /// Number of the node.
    pub node: usize,
    /// Number of instructions that the node has retired ([`everett_vmm::world::Node::retired`]).
    pub count: u64,
}

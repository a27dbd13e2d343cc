//! The first difference between the headers of two explorations.

/// First difference between two explorations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} differs: {this} here, {other} there")]
pub struct Difference {
    /// Name of the field in the header, or of the part of the world: `world.node[0].memory`.
    pub field: String,
    /// Value in this header, as JSON, shortened.
    pub this: String,
    /// Value in the other header, as JSON, shortened.
    pub other: String,
}

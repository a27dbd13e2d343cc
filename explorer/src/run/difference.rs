//! The first difference between the headers (`run.json`) of two explorations. A header is the identity and the
//! parameters of an exploration.

/// First difference between the headers of two explorations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} differs: {this} here, {other} there")]
pub struct Difference {
    /// Name of the field in the header. For a setting of the world, its path, e.g. `world.node[0].memory`.
    pub field: String,
    /// Value in this header, as shortened JSON.
    pub this: String,
    /// Value in the other header, as shortened JSON.
    pub other: String,
}

//! Errors in declared properties. Each error's message is one line.

use crate::coverage::WorldError;

use super::limits::{NAME_BYTES_MAX, PROPERTIES_MAX, UNIT_BYTES_MAX, VIOLATED_BYTES_MAX};

/// Error in the properties that a world declares. Messages quote names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PropertyError {
    /// A world declares more than [`PROPERTIES_MAX`] properties.
    #[error("at most {PROPERTIES_MAX} properties")]
    TooMany,
    /// A property is invalid.
    #[error("property {name}")]
    Property { name: String, source: PropertyProblem },
    /// The world asks to ignore a built-in property that does not exist.
    #[error("ignore: there is no built-in property {name}; {hint}")]
    Ignore { name: String, hint: String },
    /// The nodes are invalid.
    #[error(transparent)]
    Nodes(#[from] WorldError),
}

/// Error in one declared property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PropertyProblem {
    /// The name has an invalid length or character.
    #[error("name: 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, ' ', '-', '_', '.'")]
    Name,
    /// Two properties have this name.
    #[error("name: another property has this name")]
    NameTwice,
    /// A built-in property has this name.
    #[error("name: a built-in property has this name")]
    NameOfBuiltIn,
    /// The property has none or several of `never`, `eventually` and `sometimes`.
    #[error("give exactly one of \"never\", \"eventually\" and \"sometimes\"")]
    Form,
    /// The expression is invalid or too large.
    #[error("{key}: {why}")]
    Expression { key: &'static str, why: String },
    /// The name pattern of units (services, drivers, checks) is empty or too long.
    #[error("unit: must have from 1 to {UNIT_BYTES_MAX} bytes")]
    Unit,
    /// A property of console lines has a name pattern of units.
    #[error("unit: console lines have no unit")]
    UnitOfConsole,
    /// The description of a violation is empty, too long, or has control characters.
    #[error("violated: 1 to {VIOLATED_BYTES_MAX} bytes in one line")]
    Violated,
    /// A `sometimes` property has a description of a violation.
    #[error("violated: a \"sometimes\" property is never violated")]
    NeverViolated,
    /// The list of nodes is empty.
    #[error("nodes: the list is empty; leave it out for all nodes")]
    NoNodes,
    /// A node does not exist.
    #[error("nodes: there is no node {name}; {hint}")]
    NoNode { name: String, hint: String },
}

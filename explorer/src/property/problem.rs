//! What can be wrong with declared properties, as one line.

use crate::coverage::WorldError;

use super::limits::{NAME_BYTES_MAX, PROPERTIES_MAX, UNIT_BYTES_MAX};

/// What is wrong. Names in it are quoted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PropertyError {
    /// Too many properties.
    #[error("at most {PROPERTIES_MAX} properties")]
    TooMany,
    /// A property that is wrong.
    #[error("property {name}: {problem}")]
    Property { name: String, problem: PropertyProblem },
    /// Something to ignore that does not exist.
    #[error("ignore: there is no built-in property {name}; {hint}")]
    Ignore { name: String, hint: String },
    /// Nodes that no world has.
    #[error(transparent)]
    Nodes(#[from] WorldError),
}

/// What is wrong with a property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PropertyProblem {
    /// A name that is none.
    #[error("name: 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, ' ', '-', '_', '.'")]
    Name,
    /// A name of two properties.
    #[error("name: another property has it")]
    NameTwice,
    /// A name of one that is there anyway.
    #[error("name: a built-in property has it")]
    NameOfBuiltIn,
    /// Nothing that it says, or more than one thing.
    #[error("give exactly one of \"never\", \"eventually\" and \"sometimes\"")]
    Form,
    /// An expression that is none, or too large.
    #[error("{key}: {why}")]
    Expression { key: &'static str, why: String },
    /// A pattern that is empty or too long.
    #[error("unit: must have from 1 to {UNIT_BYTES_MAX} bytes")]
    Unit,
    /// Units on a console.
    #[error("unit: lines of a console have none")]
    UnitOfConsole,
    /// A list with nothing in it.
    #[error("nodes: names no node; leave it out for all")]
    NoNodes,
    /// A node that does not exist.
    #[error("nodes: there is no node {name}; {hint}")]
    NoNode { name: String, hint: String },
}

//! Errors in declared probes. Each error's message is one line.

use super::limits::{NODES_MAX, PROBES_MAX};
use crate::property::limits::{NAME_BYTES_MAX, VIOLATED_BYTES_MAX};

/// Error in the probes that a world declares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ProbeError {
    /// A world declares more than [`PROBES_MAX`] probes.
    #[error("at most {PROBES_MAX} probes")]
    TooMany,
    /// A probe is invalid.
    #[error("probe {name}")]
    Probe { name: String, source: ProbeProblem },
}

/// Error in one declared probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ProbeProblem {
    /// The name has an invalid length or character.
    #[error("name: 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, ' ', '-', '_', '.'")]
    Name,
    /// The name of a state variable has an invalid character.
    #[error("name: with \"state\", only letters, digits and _, and no digit first")]
    VariableName,
    /// A property or another probe has this name.
    #[error("name: a property or another probe has this name")]
    NameTwice,
    /// The probe has no effect.
    #[error("give \"always\", \"never\", \"never_decreases\", \"sometimes\", \"state\" or \"log\"")]
    NoEffect,
    /// The probe needs a value.
    #[error("value: \"{0}\" needs an expression")]
    NoValue(&'static str),
    /// Two keys contradict each other.
    #[error("never: \"{0}\" has no effect with it")]
    Never(&'static str),
    /// The description of a violation is empty, too long, or has control characters.
    #[error("violated: 1 to {VIOLATED_BYTES_MAX} bytes in one line")]
    Violated,
    /// A probe that cannot be violated has a description of a violation.
    #[error("violated: nothing can violate this probe")]
    NeverViolated,
    /// The list of nodes is empty or too long.
    #[error("nodes: 1 to {NODES_MAX} names; leave it out for all nodes")]
    Nodes,
    /// A node does not exist.
    #[error("nodes: there is no node {name}; {hint}")]
    NoNode { name: String, hint: String },
    /// A place or an expression cannot be parsed.
    #[error("{key}: {why}")]
    Expression { key: &'static str, why: String },
}

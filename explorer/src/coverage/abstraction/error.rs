//! Errors in the configuration of an abstract state, which is a summary of a world's logs and faults. Rules in the
//! world file say how log lines set the variables of the state.

use super::super::limits::{
    NAME_BYTES_MAX, REGEX_BYTES_MAX, RULES_MAX, VALUE_BYTES_MAX, VALUES_DECLARED_MAX, VARIABLES_MAX,
    VOCABULARY_MAX,
};

/// Error in the configuration of an abstract state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AbstractionError {
    /// The configuration has more than [`RULES_MAX`] rules.
    #[error("at most {RULES_MAX} rules")]
    TooManyRules,
    /// `last` is out of bounds.
    #[error("last: must be 1 or 2, not {0}")]
    Last(u8),
    /// `vocabulary` is out of bounds.
    #[error("vocabulary: must be from 1 to {VOCABULARY_MAX}, not {0}")]
    Vocabulary(u16),
    /// A rule has an error.
    #[error("rule {rule:?}")]
    Rule { rule: String, source: RuleProblem },
}

/// Error in a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RuleProblem {
    /// The rule's name, or its pattern for the names of programs (`unit`), is empty or too long.
    #[error("{field}: must have from 1 to {NAME_BYTES_MAX} bytes")]
    Name { field: &'static str },
    /// Another rule has the same name.
    #[error("name: another rule has this name")]
    NameTwice,
    /// A variable's name has a forbidden character or length.
    #[error("variable {0:?}: a name has letters, digits and _, at most {NAME_BYTES_MAX}, and no digit first")]
    VariableName(String),
    /// The expression is too long.
    #[error("regex: at most {REGEX_BYTES_MAX} bytes")]
    RegexLong,
    /// The expression does not compile, or is too large when compiled.
    #[error("regex: {0}")]
    Regex(String),
    /// The rule names a node that does not exist.
    #[error("nodes: there is no node {0:?}")]
    NoNode(String),
    /// The rule sets no variable.
    #[error("has no variables: name a capture, or give `set`")]
    NoVariables,
    /// The rule sets too many variables.
    #[error("at most {VARIABLES_MAX} variables")]
    TooManyVariables,
    /// A variable is both captured and listed in `set`.
    #[error("variable {0:?}: is a capture and in `set`")]
    CapturedAndSet(String),
    /// `captures` names a capture that the expression lacks.
    #[error("captures: the regex has no capture {0:?}")]
    NoCapture(String),
    /// `values` names a variable that the rule does not set.
    #[error("values: the rule has no variable {0:?}")]
    NoVariable(String),
    /// `values` lists values of a variable that is a number.
    #[error("values: {0:?} is a number, captured by rank or size; its values cannot be listed")]
    ValuesOfNumber(String),
    /// `values` lists too many values for a variable.
    #[error("values: {0:?} has more than {VALUES_DECLARED_MAX}")]
    TooManyValues(String),
    /// A value is too long.
    #[error("variable {0:?}: a value has at most {VALUE_BYTES_MAX} bytes")]
    ValueLong(String),
    /// `set` has a value that `values` does not list.
    #[error("set: {value:?} is not among the values of {variable:?}")]
    NotAValue { variable: String, value: String },
    /// A global variable is captured as a rank among nodes, but it belongs to no node.
    #[error("captures: {0:?} is global and has no rank among nodes")]
    GlobalRank(String),
    /// Another rule sets the same variable, but interprets its capture differently or has a different `global`.
    #[error("variable {0:?}: another rule captures it differently, or has another `global`")]
    TwoMeanings(String),
}

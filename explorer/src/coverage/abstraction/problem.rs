//! What can be wrong with what is declared.

use super::super::limits::{
    NAME_BYTES_MAX, REGEX_BYTES_MAX, RULES_MAX, VALUE_BYTES_MAX, VALUES_DECLARED_MAX, VARIABLES_MAX,
    VOCABULARY_MAX,
};

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AbstractionError {
    /// Too many rules.
    #[error("at most {RULES_MAX} rules")]
    TooManyRules,
    /// An odd number of classes.
    #[error("last: must be 1 or 2, not {0}")]
    Last(u8),
    /// An odd vocabulary.
    #[error("vocabulary: must be from 1 to {VOCABULARY_MAX}, not {0}")]
    Vocabulary(u16),
    /// A rule that is wrong.
    #[error("rule {rule:?}: {problem}")]
    Rule { rule: String, problem: RuleProblem },
}

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RuleProblem {
    /// A name that is empty or too long.
    #[error("{field}: must have from 1 to {NAME_BYTES_MAX} bytes")]
    Name { field: &'static str },
    /// A name of two rules.
    #[error("name: another rule has it")]
    NameTwice,
    /// A variable's name that could be taken for something else.
    #[error("variable {0:?}: a name has letters, digits and _, at most {NAME_BYTES_MAX}, and no digit first")]
    VariableName(String),
    /// An expression that is too long.
    #[error("regex: at most {REGEX_BYTES_MAX} bytes")]
    RegexLong,
    /// An expression that cannot be compiled, or would be too large.
    #[error("regex: {0}")]
    Regex(String),
    /// A node that does not exist.
    #[error("nodes: there is no node {0:?}")]
    NoNode(String),
    /// A rule of no use.
    #[error("has no variables: name a capture, or give `set`")]
    NoVariables,
    /// Too many variables.
    #[error("at most {VARIABLES_MAX} variables")]
    TooManyVariables,
    /// A variable that is both.
    #[error("variable {0:?}: is a capture and in `set`")]
    CapturedAndSet(String),
    /// Something about a capture that does not exist.
    #[error("captures: the regex has no capture {0:?}")]
    NoCapture(String),
    /// Values of a variable that does not exist.
    #[error("values: the rule has no variable {0:?}")]
    NoVariable(String),
    /// Values of a variable that is a number.
    #[error("values: {0:?} is a number of which only the rank or size counts")]
    ValuesOfNumber(String),
    /// Too many values.
    #[error("values: {0:?} has more than {VALUES_DECLARED_MAX}")]
    TooManyValues(String),
    /// A value that is too long.
    #[error("variable {0:?}: a value has at most {VALUE_BYTES_MAX} bytes")]
    ValueLong(String),
    /// A value that is not one of those declared.
    #[error("set: {value:?} is not among the values of {variable:?}")]
    NotAValue { variable: String, value: String },
    /// A rank among nodes of something that is not a node's.
    #[error("captures: {0:?} is global and has no rank among nodes")]
    GlobalRank(String),
    /// A variable that another rule takes otherwise.
    #[error("variable {0:?}: another rule takes it otherwise, or for global")]
    TwoMeanings(String),
}

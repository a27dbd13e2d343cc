//! Errors in lines that programs send through the SDK.

use super::limits::{QUIET_S_MAX, SDK_LINE_BYTES_MAX};

/// Reason why a line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The line is longer than [`SDK_LINE_BYTES_MAX`], or its transport truncated it.
    #[error("longer than {SDK_LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The line is not JSON. The contained reason names the column.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// The line is JSON, but not an object with one field.
    #[error("not an object with one field")]
    NotOneField,
    /// A field is missing or has another type.
    #[error("{0} is missing or has a wrong type")]
    Field(&'static str),
    /// `assert_type` has an unknown value.
    #[error("assert_type is none of \"always\", \"sometimes\" and \"reachability\"")]
    AssertType,
    /// `guidance_type` has an unknown value.
    #[error("guidance_type is none of \"numeric\", \"boolean\" and \"json\"")]
    GuidanceType,
    /// A quiet period (a time without faults, for which a program asks) has an invalid length.
    #[error("seconds is not a number from 0 to {QUIET_S_MAX}")]
    Seconds,
}

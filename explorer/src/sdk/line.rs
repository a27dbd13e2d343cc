//! Lines that a program sends through the SDK, and their parser.

use serde_json::{Map, Value};

use super::assertion::Assertion;
use super::error::Problem;
use super::guidance::Guidance;
use super::limits::{QUIET_S_MAX, SDK_LINE_BYTES_MAX};

/// Line of the SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SdkLine {
    /// First line of a process, with the SDK's language and version.
    Header {
        /// Programming language of the SDK.
        language: String,
        /// Version of the SDK.
        version: String,
    },
    /// Registration or evaluation of an assertion.
    Assertion(Assertion),
    /// Value that steers the search, or `None` if the line has no value.
    Guidance(Option<Guidance>),
    /// The program reports that its setup is complete.
    Setup,
    /// The program asks for a period without faults, of this length in nanoseconds.
    Quiet(u64),
    /// Any other event.
    Event {
        /// Name of the event.
        name: String,
        /// Details of the event, as JSON.
        details: String,
    },
}

/// Parses a line.
///
/// # Errors
/// Returns an error if the line is too long, or is not a JSON object with exactly one field. Returns an error if a line
/// of a known kind lacks a field or has a wrong value in a field.
pub fn parse(text: &str) -> Result<SdkLine, Problem> {
    if text.len() > SDK_LINE_BYTES_MAX {
        return Err(Problem::TooLong);
    }
    let value: Value = serde_json::from_str(text).map_err(|error| Problem::NotJson(error.to_string()))?;
    let Value::Object(object) = value else { return Err(Problem::NotOneField) };
    let mut fields = object.into_iter();
    let (Some((name, value)), None) = (fields.next(), fields.next()) else {
        return Err(Problem::NotOneField);
    };
    let object = |field: &'static str| value.as_object().ok_or(Problem::Field(field));
    Ok(match name.as_str() {
        "antithesis_sdk" => header(object("antithesis_sdk")?),
        "antithesis_assert" => SdkLine::Assertion(Assertion::read(object("antithesis_assert")?)?),
        "antithesis_guidance" => SdkLine::Guidance(Guidance::read(object("antithesis_guidance")?)?),
        "antithesis_setup" => match object("antithesis_setup")?.get("status").and_then(Value::as_str) {
            Some("complete") => SdkLine::Setup,
            Some(_) => SdkLine::Event { details: value.to_string(), name },
            None => return Err(Problem::Field("status")),
        },
        "everett_stop_faults" => SdkLine::Quiet(quiet_ns(object("everett_stop_faults")?)?),
        _ => SdkLine::Event { details: value.to_string(), name },
    })
}

fn header(fields: &Map<String, Value>) -> SdkLine {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let language = fields.get("language").and_then(|language| language.get("name"));
    SdkLine::Header { language: text(language), version: text(fields.get("sdk_version")) }
}

fn quiet_ns(fields: &Map<String, Value>) -> Result<u64, Problem> {
    let seconds = fields.get("seconds").and_then(Value::as_f64).ok_or(Problem::Seconds)?;
    if !(0.0..=QUIET_S_MAX).contains(&seconds) {
        return Err(Problem::Seconds);
    }
    // The number of seconds is at most one day, so the result fits in 64 bits. Fractions of a nanosecond are dropped.
    Ok((seconds * 1e9) as u64)
}

//! Kinds of lines, and their parser.

use serde_json::{Map, Value};

use super::assertion::Assertion;
use super::guidance::Guidance;
use super::limits::{QUIET_S_MAX, SDK_LINE_BYTES_MAX};
use super::problem::Problem;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SdkLine {
    /// The first line of a process: the SDK's language and version.
    Header {
        /// Name of the language.
        language: String,
        /// Version of the SDK.
        version: String,
    },
    /// An assertion.
    Assertion(Assertion),
    /// A value that leads the search; `None` if the line has none.
    Guidance(Option<Guidance>),
    /// The setup is complete.
    Setup,
    /// A program asks for a time without faults, in nanoseconds.
    Quiet(u64),
    /// Any other event.
    Event {
        /// Its name.
        name: String,
        /// Its details, as JSON.
        details: String,
    },
}

/// Parses a line.
///
/// # Errors
/// Returns an error if the line is not an object with one field, or if a field of a known line is missing or wrong.
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
    // At most a day, so the number fits. A fraction of a nanosecond is dropped.
    Ok((seconds * 1e9) as u64)
}

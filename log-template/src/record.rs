//! Lines that are records with a message, in JSON or logfmt.

use serde_json::Value;

use super::prefix::Severity;
use super::{at, run};

/// Keys of the message in a JSON record. The first of these keys that the record has is used.
const MESSAGE: [&str; 2] = ["msg", "message"];
/// Keys of the level in a JSON record. The first of these keys that the record has is used.
const LEVEL: [&str; 3] = ["level", "lvl", "severity"];

/// Returns a record's level and message. `None` if the text is not a record with a message.
pub(super) fn message(text: &str) -> Option<(Severity, String)> {
    json(text).or_else(|| logfmt(text))
}

fn json(text: &str) -> Option<(Severity, String)> {
    if !text.starts_with('{') {
        return None;
    }
    let Ok(Value::Object(record)) = serde_json::from_str(text) else { return None };
    let first = |keys: &[&str]| keys.iter().find_map(|key| record.get(*key)?.as_str());
    let severity = first(&LEVEL).and_then(Severity::of).unwrap_or(Severity::Plain);
    Some((severity, first(&MESSAGE)?.to_owned()))
}

/// Parses a line like `time=… level=info msg="…"`. A record may also start with its level, if the message follows
/// directly.
///
/// The first pair must be a time whose value has a digit, or a level directly before the message. This ensures that no
/// template (a line with marks in place of its varying parts) looks like a record. A template has no digits. A mark
/// replaces a varying part and never removes it, so a level that did not stand directly before the message in the line
/// does not stand there in the template either. Everything after the message is ignored.
fn logfmt(text: &str) -> Option<(Severity, String)> {
    let mut severity = Severity::Plain;
    let mut rest = text;
    let mut timed = false;
    for index in 0.. {
        let (key, value, after) = pair(rest)?;
        match key {
            "msg" if timed || index == 1 => return Some((severity, value)),
            "level" if timed || index == 0 => severity = Severity::of(&value)?,
            "time" | "ts" | "t" if index == 0 && value.bytes().any(|b| b.is_ascii_digit()) => timed = true,
            _ if !timed => return None,
            _ => {}
        }
        rest = after.strip_prefix(' ')?;
    }
    None
}

/// Returns a key, its value, and the rest of the text. `None` if the text does not start with `key=value`.
fn pair(text: &str) -> Option<(&str, String, &str)> {
    let key = run(text.as_bytes(), 0, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let (key, rest) = text.split_at_checked(key).filter(|(key, _)| !key.is_empty())?;
    let rest = rest.strip_prefix('=')?;
    if at(rest.as_bytes(), 0) != b'"' {
        let (value, after) = rest.split_at_checked(run(rest.as_bytes(), 0, |byte| byte != b' '))?;
        return Some((key, value.to_owned(), after));
    }
    let mut value = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Some((key, value, rest.get(index + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

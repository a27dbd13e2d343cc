//! Functions that write host names, TOML strings and TOML lists.

use std::fmt::Write as _;

/// Returns a text as a quoted TOML string. The string has no line break, whatever the text contains.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // A write to a string cannot fail.
            c if c.is_control() => drop(write!(out, "\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns texts as a TOML list on one line.
pub(super) fn list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", texts.join(", "))
}

/// Maximum length of a host name, in bytes. Host names may have 63 bytes, so three are left for a suffix like `-64`.
const LABEL_BYTES_MAX: usize = 60;

/// Returns a host name that resembles `text`, with lower-case letters, digits and single dashes. If nothing is left,
/// returns `node`.
pub(super) fn label(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() == LABEL_BYTES_MAX {
            break;
        }
    }
    let plain = out.trim_end_matches('-');
    if plain.is_empty() || plain == "localhost" { "node".to_owned() } else { plain.to_owned() }
}

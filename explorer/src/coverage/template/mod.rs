//! Log lines reduced to templates: what a line says, without when, where and how much.
//!
//! - `prefix`: timestamps, process ids and levels at the start of a line; `record`: lines that are JSON or logfmt
//! - `mask`: what varies inside of a line; `lexeme`: what such a thing looks like; `stamp`: times
//!
//! Not here: how many templates are told apart (`super::vocabulary`).
//!
//! **Invariants.**
//! - [`template`] is a function of the text alone, takes time linear in it, and never fails.
//! - The template of a template is itself. What makes it so: no template has a digit, a quoted string, a control character
//!   or two spaces in a row; masks replace and never delete, so that nothing comes to stand beside what it did not stand
//!   beside; and every prefix has a digit in it, but for levels, which are written back in one form.

mod lexeme;
mod mask;
mod prefix;
mod record;
mod stamp;

use super::limits::{LINE_BYTES_MAX, TEMPLATE_BYTES_MAX};
use super::text::head;
use prefix::Severity;

/// Ends a template that was cut.
const CUT: char = '…';

/// The template of a line, with `<n>`, `<id>`, `<addr>`, `<str>`, `<path>` and `<time>` for what varies. A level of
/// warnings or worse stays, as `warn: `, `error: ` or `fatal: `.
#[must_use]
pub fn template(line: &str) -> String {
    let mut text = clean(head(line, LINE_BYTES_MAX));
    let mut severity = Severity::Plain;
    // A record's message can have a prefix, or be a record: each is shorter than what it was in.
    let rest = loop {
        let stripped = prefix::strip(&text);
        severity = severity.max(stripped.severity);
        let Some((level, message)) = record::message(stripped.rest) else {
            break stripped.rest.to_owned();
        };
        severity = severity.max(level);
        text = clean(&message);
    };
    let mut out = severity.label().to_owned();
    if !out.is_empty() && !rest.is_empty() {
        out.push(' ');
    }
    mask::mask(&rest, &mut out);
    if out.len() > TEMPLATE_BYTES_MAX {
        out.truncate(out.floor_char_boundary(TEMPLATE_BYTES_MAX - CUT.len_utf8()));
        out.push(CUT);
    }
    out
}

/// A line without colours, with one space for each run of spaces and control characters, and none at its ends.
fn clean(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            while chars.next_if(|c| c.is_ascii_digit() || *c == ';').is_some() {}
            chars.next_if(char::is_ascii_alphabetic);
        } else if !c.is_control() && !c.is_whitespace() {
            out.push(c);
            continue;
        }
        if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if out.ends_with(' ') {
        out.pop();
    }
    out
}

/// The byte there; 0, which no cleaned text has, beyond the end.
fn at(bytes: &[u8], index: usize) -> u8 {
    bytes.get(index).copied().unwrap_or(0)
}

/// How many of the bytes from there on are such.
fn run(bytes: &[u8], from: usize, such: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take_while(|byte| such(**byte)).count()
}

/// How many digits there are from there on.
fn digits(bytes: &[u8], from: usize) -> usize {
    run(bytes, from, |byte| byte.is_ascii_digit())
}

/// Whether a byte belongs to a word. What is not ASCII does: so does, with it, the mark of a cut.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests;

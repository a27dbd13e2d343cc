//! Log lines reduced to templates. A template is the constant text of a line, without times, addresses and numbers.
//!
//! - `prefix`: timestamps, process ids and levels at the start of a line
//! - `record`: lines in JSON or logfmt
//! - `mask`: replaces the varying parts of a line
//! - `lexeme`: recognises varying parts
//! - `timestamp`: recognises times
//!
//! Not here: the bound on the number of distinct templates (`explorer/src/coverage/vocabulary.rs`).
//!
//! **Invariants.**
//! - [`template`] is a function of the text alone, takes time linear in the text's length, and never fails.
//! - The template of a template is the template itself. Three facts guarantee this. First, a template has no digits,
//!   quoted strings, control characters or double spaces. Second, a varying part is replaced and never deleted, so the
//!   texts on its two sides cannot join to a new varying part. Third, every prefix except a level contains a digit, and
//!   the only levels that are prefixes of templates are `warn:`, `error:` and `fatal:`, which [`template`] keeps.

mod lexeme;
mod mask;
mod prefix;
mod record;
mod timestamp;

use prefix::Severity;

/// Maximum number of bytes that are read of a line. The rest of the line is ignored.
pub const TEMPLATE_LINE_BYTES_MAX: usize = 16 << 10;
/// Maximum length of a template, in bytes.
pub const TEMPLATE_BYTES_MAX: usize = 160;

/// Mark at the end of a template that was cut.
const CUT: char = '…';

/// Returns the template of a line, with `<n>`, `<id>`, `<addr>`, `<str>`, `<path>` and `<time>` in place of varying
/// parts. A level of warning or worse becomes `warn: `, `error: ` or `fatal: ` at the start.
#[must_use]
pub fn template(line: &str) -> String {
    let mut text = clean(&line[..line.floor_char_boundary(TEMPLATE_LINE_BYTES_MAX)]);
    let mut severity = Severity::Plain;
    // The message of a record can have a prefix, or be another record. Each message is shorter than the record around
    // it, so the loop ends.
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

/// Removes colours from a line, turns each run of spaces and control characters into one space, and trims both ends.
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

/// Returns the byte at `index`, or 0 beyond the end. A cleaned text contains no 0 byte.
fn at(bytes: &[u8], index: usize) -> u8 {
    bytes.get(index).copied().unwrap_or(0)
}

/// Returns the number of consecutive bytes, starting at `from`, that satisfy `is`.
fn run(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take_while(|byte| is(**byte)).count()
}

/// Returns the number of consecutive digits, starting at `from`.
fn digits(bytes: &[u8], from: usize) -> usize {
    run(bytes, from, |byte| byte.is_ascii_digit())
}

/// True if a byte belongs to a word. All bytes beyond ASCII do, including those of the mark [`CUT`].
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests;

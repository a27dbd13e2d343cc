//! Replacement of the varying parts of a line with marks.

use super::lexeme::{colon_address, lexeme};
use super::{at, is_word, run};

/// Marks of varying parts. A mark that is already in the text stays unchanged. Callers that know the names of nodes
/// insert `<node>` before this module runs.
const MARKS: [&str; 7] = ["<n>", "<id>", "<addr>", "<str>", "<path>", "<time>", "<node>"];

/// Appends `text` to `out`, with marks in place of its varying parts. `text` has no control characters and no double
/// spaces.
pub(super) fn mask(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let mut index = 0;
    // After an unterminated quote, no further quote of the same kind is tried. Otherwise a line of quotes would take
    // quadratic time.
    let (mut double, mut single) = (true, true);
    while let Some(rest) = text.get(index..) {
        let Some(c) = rest.chars().next() else { break };
        let before = if index == 0 { 0 } else { at(bytes, index - 1) };
        let found = match c {
            '<' => MARKS.into_iter().find(|mark| rest.starts_with(mark)).map(|mark| (mark.len(), mark)),
            '"' if double => {
                let string = double_quoted(rest.as_bytes());
                double = string.is_some();
                string.map(|length| (length, "<str>"))
            }
            '\'' if single && !joined(before) => {
                let string = single_quoted(rest.as_bytes());
                single = string.is_some();
                string.map(|length| (length, "<str>"))
            }
            '/' if !joined(before) => {
                let (length, is_path) = path(rest.as_bytes());
                if !is_path {
                    // Copy the whole candidate unchanged, so that it is not tried again at each of its slashes.
                    out.push_str(rest.get(..length).unwrap_or_default());
                    index += length;
                    continue;
                }
                Some((length, "<path>"))
            }
            ':' if !joined(before) => colon_address(rest.as_bytes()).map(|length| (length, "<addr>")),
            _ if c.is_ascii() && is_word(c as u8) => lexeme(rest.as_bytes()),
            _ => None,
        };
        if let Some((length, mark)) = found {
            out.push_str(mark);
            index += length;
        } else if c.is_ascii() && is_word(c as u8) {
            let length = run(bytes, index, |byte| byte.is_ascii() && is_word(byte));
            word(rest.get(..length).unwrap_or_default(), out);
            index += length;
        } else {
            out.push(c);
            index += c.len_utf8();
        }
    }
}

/// True if a quote, slash or colon after this byte belongs to a word and starts no varying part. The byte `>` may end a
/// mark that replaced a word.
fn joined(byte: u8) -> bool {
    is_word(byte) || byte == b'>'
}

/// Appends a word with `<n>` in place of each run of digits.
fn word(word: &str, out: &mut String) {
    let mut in_number = false;
    for c in word.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !in_number {
            out.push_str("<n>");
        }
        in_number = c.is_ascii_digit();
    }
}

/// Returns the length of a string in double quotes. `None` if the string does not end. A backslash in the string
/// escapes the next byte.
fn double_quoted(bytes: &[u8]) -> Option<usize> {
    let mut index = 1;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'"' => return Some(index + 1),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
    None
}

/// Returns the length of a string in single quotes. `None` if the string does not end. A quote before a word character
/// is an apostrophe, and does not end the string.
fn single_quoted(bytes: &[u8]) -> Option<usize> {
    let ends = |index: usize| {
        let after = at(bytes, index + 1);
        at(bytes, index) == b'\'' && !is_word(after) && after != b'<'
    };
    (1..bytes.len()).find(|index| ends(*index)).map(|index| index + 1)
}

/// Returns the length of a candidate for an absolute path, and true if it is a path. A path has at least one letter or
/// digit.
fn path(bytes: &[u8]) -> (usize, bool) {
    let in_path = |byte: u8| is_word(byte) && byte.is_ascii() || b"/.-+@~%".contains(&byte);
    let length = run(bytes, 0, in_path);
    let path = bytes.get(..length).unwrap_or_default();
    let full_stops = path.iter().rev().take_while(|byte| **byte == b'.').count();
    if path.iter().any(u8::is_ascii_alphanumeric) { (length - full_stops, true) } else { (length, false) }
}

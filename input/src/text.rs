//! Functions that make foreign text (from guests, packages, paths, errors) safe to show.
//!
//! **Invariant.** Characters that could control a terminal, or make a text look like a different text, are shown as
//! escapes. They are C0 and C1 controls, DEL, marks and overrides of the writing direction, line separators, the byte
//! order mark, and tag characters.

/// Maximum number of characters that [`quoted`] shows of a text.
pub const QUOTED_CHARS_MAX: usize = 48;

/// True if the character is shown as an escape. Some functions make an exception for tabs and line ends.
fn hidden(c: char) -> bool {
    // The last range contains the tag characters, which terminals do not show.
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns a text that is safe to show on one line of a terminal. Tabs are kept.
#[must_use]
pub fn printable(text: &str) -> String {
    escaped(text, |c| c == '\t')
}

/// Returns a text that is safe to show on one line of a report or an error message. Tabs become escapes.
#[must_use]
pub fn one_line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Returns foreign text in quotes, on one line. Shows at most [`QUOTED_CHARS_MAX`] of its characters.
#[must_use]
pub fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) && !stays(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Returns one of Everett's own lines, safe to show on a terminal. Colours (SGR sequences such as `ESC [ 1 ; 3 1 m`),
/// tabs and line feeds are kept, and all other control characters become escapes. Foreign text in the line must already
/// have passed [`printable`]: this function is only a second barrier.
#[must_use]
pub fn painted(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let length = colour(rest).unwrap_or(0);
        if length > 0 {
            safe.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        if hidden(c) && !matches!(c, '\t' | '\n') {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    safe
}

/// Returns the length in bytes of the SGR sequence at the start of a text. `None` if there is no such sequence.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

/// Escapes hidden characters in JSON as `\u` and four digits. JSON serializers do not escape C1 controls.
#[must_use]
pub fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // Outside of strings, JSON has no hidden characters except white space.
        if hidden(c) && !matches!(c, '\n' | '\r' | '\t') {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Filter for a guest's console bytes on their way to the operator's terminal. Line ends are kept. All other characters
/// are treated as in [`printable`].
#[derive(Debug, Clone, Default)]
pub struct Console {
    /// End of the input so far, kept for the next call because it is incomplete: part of a UTF-8 character, or a
    /// carriage return.
    held: Vec<u8>,
}

impl Console {
    /// Returns safe text for the next bytes of the console. An incomplete end is kept for the next call.
    pub fn take(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let whole = all.len() - unfinished(&all);
        self.held = all.split_off(whole);
        let text = String::from_utf8_lossy(&all).replace("\r\n", "\n");
        escaped(&text, |c| matches!(c, '\t' | '\n'))
    }
}

/// Returns the number of bytes at the end that are incomplete: part of a UTF-8 character, or a carriage return.
fn unfinished(bytes: &[u8]) -> usize {
    if bytes.ends_with(b"\r") {
        return 1;
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => 0,
        Err(_) => {
            // An incomplete character has at most three bytes, so only the last three are checked.
            let last = (1..=bytes.len().min(3)).find(|back| bytes[bytes.len() - back] & 0xc0 != 0x80);
            last.filter(|back| {
                std::str::from_utf8(&bytes[bytes.len() - back..])
                    .is_err_and(|error| error.error_len().is_none())
            })
            .unwrap_or(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn controls_and_overrides_are_shown() {
        assert_eq!(printable("a\tb\x1b[2Jc\r"), "a\tb\\u{1b}[2Jc\\r");
        assert_eq!(
            printable("grün \u{9b}31m \u{202e}x\u{feff}\u{61c}"),
            "grün \\u{9b}31m \\u{202e}x\\u{feff}\\u{61c}"
        );
        assert_eq!(one_line("é \"quoted\" `x`"), "é \"quoted\" `x`");
        assert_eq!(one_line("a\tb\r\n\u{1b}[2J\u{202e}\u{2028}"), "a\\tb\\r\\n\\u{1b}[2J\\u{202e}\\u{2028}");
    }

    #[test]
    fn foreign_text_is_quoted_and_cut() {
        assert_eq!(quoted("a\n"), r#""a\n""#);
        let longest = "ü".repeat(QUOTED_CHARS_MAX);
        assert_eq!(quoted(&longest), format!("\"{longest}\""));
        assert_eq!(quoted(&format!("{longest}b")), format!("\"{longest}\"…"));
    }

    #[test]
    fn everetts_own_colours_stay() {
        assert_eq!(painted("\u{1b}[1;31mred\u{1b}[0m\ttab"), "\u{1b}[1;31mred\u{1b}[0m\ttab");
        assert_eq!(painted("\u{1b}[2J\u{1b}]0;title\u{7}"), "\\u{1b}[2J\\u{1b}]0;title\\u{7}");
        assert_eq!(painted("\u{1b}[31"), "\\u{1b}[31");
    }

    #[test]
    fn hidden_characters_in_json_become_escapes() {
        assert_eq!(
            json("{\"a\":\"\u{9b}2J\u{202e}\u{e0001}\"}"),
            "{\"a\":\"\\u009b2J\\u202e\\udb40\\udc01\"}"
        );
    }

    #[test]
    fn a_console_keeps_its_lines() {
        let mut console = Console::default();
        assert_eq!(console.take(b"one\r"), "one");
        assert_eq!(console.take(b"\ntwo\rover\x1b[2J\xc3"), "\ntwo\\rover\\u{1b}[2J");
        assert_eq!(console.take(b"\xbc\xff\xc2"), "ü\u{fffd}");
        assert_eq!(console.take(b"\x9b1m"), "\\u{9b}1m");
    }

    proptest! {
        #[test]
        fn nothing_hidden_gets_through(text in any::<String>(), bytes in any::<Vec<u8>>(), cut in 0..64_usize) {
            prop_assert!(!printable(&text).contains(|c| hidden(c) && c != '\t'));
            prop_assert!(!one_line(&text).contains(hidden));
            prop_assert!(!json(&text).contains(|c| hidden(c) && !matches!(c, '\n' | '\r' | '\t')));
            let (mut console, cut) = (Console::default(), cut.min(bytes.len()));
            let shown = console.take(&bytes[..cut]) + &console.take(&bytes[cut..]);
            prop_assert!(!shown.contains(|c| hidden(c) && !matches!(c, '\n' | '\t')));
            let mut whole = Console::default();
            prop_assert_eq!(whole.take(&bytes), shown);
        }
    }
}

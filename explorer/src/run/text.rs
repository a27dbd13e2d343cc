//! Texts of others, made fit for one line.

/// The text with escapes for what is not shown, ends lines, or changes how what follows is shown.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        // Line and paragraph separators, marks and overrides of the writing direction, and the byte order mark.
        let hidden = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if c.is_control() || hidden {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn what_is_not_shown_is_escaped() {
        assert_eq!(one_line("é \"quoted\" `x`"), "é \"quoted\" `x`");
        assert_eq!(one_line("a\tb\r\n\u{1b}[2J\u{202e}\u{2028}"), "a\\tb\\r\\n\\u{1b}[2J\\u{202e}\\u{2028}");
    }
}

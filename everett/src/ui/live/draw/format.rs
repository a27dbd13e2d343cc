//! Formats numbers, bars and curves as text.

use unicode_width::UnicodeWidthStr as _;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Formats host time as hours, minutes and seconds.
pub(super) fn clock(seconds: f64) -> String {
    let s = seconds.max(0.0) as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// Returns a bar of `width` characters for a share from 0 to 1.
pub(super) fn bar(share: f64, width: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(full) + &"░".repeat(width - full)
}

/// Returns a curve with one character per value. Zero is blank, or the lowest level if `floor` is true.
pub(super) fn curve(values: &[u64], floor: bool) -> String {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let top = LEVELS.len() as u128;
    let level = |value: u64| {
        let level = (u128::from(value) * top).div_ceil(u128::from(most)).clamp(1, top) as usize;
        if value == 0 && !floor { ' ' } else { LEVELS.get(level - 1).copied().unwrap_or(' ') }
    };
    values.iter().map(|value| level(*value)).collect()
}

/// Breaks a text into lines of at most `width` columns, at spaces if possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits = |line: &String| line.is_empty() || line.width() + 1 + word.width() <= width;
        match lines.last_mut() {
            Some(line) if fits(line) => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
        // A word that is longer than a line is cut.
        while let Some(line) = lines.last_mut().filter(|line| line.width() > width) {
            let mut end = 0;
            for (at, c) in line.char_indices() {
                if line.get(..at + c.len_utf8()).is_some_and(|head| head.width() > width) {
                    break;
                }
                end = at + c.len_utf8();
            }
            if end == 0 || end >= line.len() {
                break;
            }
            let rest = line.split_off(end);
            lines.push(rest);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_numbers() {
        assert_eq!(
            (clock(-1.0), clock(61.9), clock(3_661.0)),
            ("0:00".to_owned(), "1:01".to_owned(), "1:01:01".to_owned())
        );
        assert_eq!(
            (bar(0.5, 4), bar(7.0, 2), bar(0.0, 0)),
            ("██░░".to_owned(), "██".to_owned(), String::new())
        );
        assert_eq!(curve(&[0, 1, 4, 8], false), " ▁▄█");
        assert_eq!(curve(&[0, 0], true), "▁▁");
        assert_eq!(curve(&[u64::MAX, 1], false), "█▁");
    }

    #[test]
    fn long_texts_become_lines() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 3), [""]);
        // Wide characters take two columns.
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("日", 1), ["日"]);
    }
}

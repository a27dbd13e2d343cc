//! What a person or a program sees: text or JSON lines on standard output, progress and errors on standard error.
//!
//! * [`Ui`] decides once where things go; [`style`] has the few colours; [`progress`] the bars.
//!
//! **Invariants.** With `--json`, standard output holds JSON lines and nothing else. Bars and colour appear only on
//! terminals. Text that a guest wrote is never sent to a terminal with control characters in it.

pub mod progress;
pub mod style;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Where output goes.
#[derive(Debug, Clone, Copy)]
pub struct Ui {
    /// JSON lines instead of text.
    pub json: bool,
    /// Bars on standard error.
    pub bars: bool,
}

impl Ui {
    /// For this process.
    #[must_use]
    pub fn new(json: bool) -> Ui {
        Ui { json, bars: !json && io::stderr().is_terminal() }
    }

    /// A line for people; nothing with `--json`.
    pub fn say(&self, line: impl AsRef<str>) -> io::Result<()> {
        if self.json { Ok(()) } else { self.write(line.as_ref()) }
    }

    /// A line for programs; nothing without `--json`.
    pub fn record(&self, record: &impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let line = serde_json::to_string(record).map_err(io::Error::other)?;
        self.write(&line)
    }

    fn write(&self, line: &str) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

/// A guest's text made safe for a terminal: control characters other than tab become escapes.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // C1 controls and the bidirectional overrides can rewrite what a terminal shows, as escapes can.
        let hidden = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && c != '\t') || hidden {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(printable("a\tb\x1b[2Jc\r"), "a\tb\\u{1b}[2Jc\\r");
        assert_eq!(printable("grün"), "grün");
        assert_eq!(printable("x\u{202e}y"), "x\\u{202e}y");
    }
}

//! Text styles. [`paint`] always writes escape sequences, and the output stream removes them if it is not a terminal.

use anstyle::{AnsiColor, Style};

/// Style of successes.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Style of notes and warnings.
pub const NOTE: Style = AnsiColor::Yellow.on_default().bold();
/// Style of failures.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of headings.
pub const HEAD: Style = Style::new().bold();
/// Style of secondary text, such as vtimes and digests.
pub const FAINT: Style = Style::new().dimmed();

/// Returns `text` with the escape sequences of `style`.
#[must_use]
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

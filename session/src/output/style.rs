//! Text styles of the output. Escapes are always written; the stream removes them when it is not a terminal.

use anstyle::{AnsiColor, Style};

/// Successes.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Notes and warnings.
pub const NOTE: Style = AnsiColor::Yellow.on_default().bold();
/// Failures.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Headings.
pub const HEAD: Style = Style::new().bold();
/// Times, digests and other secondary text.
pub const FAINT: Style = Style::new().dimmed();

/// Returns `text` in `style`.
#[must_use]
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

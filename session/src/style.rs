//! The few styles. They are always written; the stream drops them where there is no terminal.

use anstyle::{AnsiColor, Style};

/// Things that are well.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Things to know.
pub const NOTE: Style = AnsiColor::Yellow.on_default().bold();
/// Things that are wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Headings.
pub const HEAD: Style = Style::new().bold();
/// Times, digests and other things that the eye should pass over.
pub const FAINT: Style = Style::new().dimmed();

/// `text` in `style`.
#[must_use]
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

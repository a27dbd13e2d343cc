//! Texts and numbers on the page.

use crate::exploration::figures;
use everett_input::text::one_line;
use maud::{Markup, html};

pub(super) use crate::data::confidence;
pub(super) use figures::{count, counted, duration, percent};

/// Returns text from guests or files with hidden characters escaped, for attributes and titles. The template escapes
/// markup.
pub(super) fn plain(text: &str) -> String {
    one_line(text)
}

/// Returns text from guests or files as an element whose writing direction does not affect the text around it.
pub(super) fn foreign(text: &str) -> Markup {
    html! { bdi { (one_line(text)) } }
}

/// Returns text from guests or files in the font of code.
pub(super) fn code(text: &str) -> Markup {
    html! { code { bdi { (one_line(text)) } } }
}

/// Formats a vtime in seconds, with milliseconds.
pub(super) fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1_000)
}

/// Formats a CPU time. `ns` is the time in nanoseconds, and may have a fractional part.
pub(super) fn cpu(ns: f64) -> String {
    // The cast saturates.
    duration(ns as u64)
}

/// Formats a probability as a percentage.
pub(super) fn share(p: f64) -> String {
    match p * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p > 0.0 && p < 0.1 => "< 0.1 %".to_owned(),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

//! Reads the vtime with which a line of evidence begins.

/// Splits a line into its vtime, in nanoseconds, and the text after it. `None` if the line does not begin with a vtime.
pub(super) fn at(line: &str) -> Option<(u64, &str)> {
    let (time, rest) = line.trim_start().split_once(' ')?;
    Some((seconds(time)?, rest.trim_start()))
}

/// Converts a decimal number of seconds to nanoseconds.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.len() != 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part.parse().ok()?)
}

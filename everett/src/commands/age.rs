//! Parses ages on the command line, such as `12h` or `7d`.

use everett_input::units;

/// Parses a duration, which may be in days. Returns nanoseconds.
pub(super) fn parse_age_ns(text: &str) -> Result<u64, units::UnitError> {
    const DAY_NS: u64 = 24 * 3_600_000_000_000;
    match text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok()) {
        Some(days) => days.checked_mul(DAY_NS).ok_or_else(|| units::UnitError::TooLarge(text.to_owned())),
        None => units::parse_duration_ns(text),
    }
}

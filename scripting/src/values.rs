//! Vtimes from a script's values.

use everett_input::units;

use super::error::Error;

/// Nanoseconds of a second.
const NS_PER_S: f64 = 1e9;

/// Returns a number of seconds in nanoseconds, rounded.
///
/// # Errors
/// Returns an error if the number is negative, not finite or too large.
pub fn from_seconds(seconds: f64) -> Result<u64, Error> {
    let ns = (seconds * NS_PER_S).round();
    // Every number below 2^63 fits.
    if ns.is_finite() && (0.0..9.2e18).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err(Error::Argument(format!("{seconds} is not a number of seconds")))
    }
}

/// Returns a duration such as `1.5s` or `20ms` in nanoseconds.
///
/// # Errors
/// Returns an error if the text is no duration.
pub fn from_text(text: &str) -> Result<u64, Error> {
    units::parse_duration_ns(text).map_err(|error| Error::Argument(format!("{text:?}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_bounded() {
        assert_eq!(from_seconds(3.717_448_419).unwrap(), 3_717_448_419);
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(matches!(from_seconds(bad), Err(Error::Argument(_))), "{bad}");
        }
        assert_eq!(from_text("20ms").unwrap(), 20_000_000);
        assert!(matches!(from_text("soon"), Err(Error::Argument(_))));
    }
}

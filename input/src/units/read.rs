//! Parsing of durations and sizes in world files and on the command line.
//!
//! A number must have a unit, because `20` alone could be seconds or nanoseconds, and a run of the wrong duration
//! wastes much time. All arithmetic uses integers, so `0.1s` is exactly 100,000,000 ns.

use std::fmt;

use serde::de::{Error as DeError, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A size in bytes. In a file it is written with a unit: `"64K"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{}B", self.0))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        SIZE.read(from).map(Size)
    }
}

/// Deserializes a duration with a unit. Returns nanoseconds.
///
/// # Errors
/// Returns an error if the value is a bare number, or if [`parse_duration_ns`] refuses it.
pub fn deserialize_duration_ns<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    TIME.read(from)
}

/// Serde visitor that parses a text with a unit. For a bare number, its error suggests a unit.
struct Quantity(&'static Units);

impl Visitor<'_> for Quantity {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text with a unit, such as \"1{}\"", self.0.example)
    }

    fn visit_str<E: DeError>(self, text: &str) -> Result<u64, E> {
        parse(text, self.0).map_err(E::custom)
    }

    fn visit_i64<E: DeError>(self, number: i64) -> Result<u64, E> {
        Err(E::custom(self.0.bare(number)))
    }

    fn visit_u64<E: DeError>(self, number: u64) -> Result<u64, E> {
        Err(E::custom(self.0.bare(number)))
    }

    fn visit_f64<E: DeError>(self, number: f64) -> Result<u64, E> {
        Err(E::custom(self.0.bare(number)))
    }
}

/// Error from parsing a quantity. Its message lists the valid units.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not start with a number.
    #[error("\"{0}\" does not begin with a number")]
    NoNumber(String),
    /// The number has no unit.
    #[error("\"{text}\" has no unit; write one of {units}, as in \"{text}{example}\"")]
    NoUnit {
        /// The text of the user.
        text: String,
        /// List of the valid units.
        units: &'static str,
        /// A unit that the user may have meant.
        example: &'static str,
    },
    /// The value is a number, not a text with a unit.
    #[error("{number} needs a unit, e.g. \"{number}{example}\"")]
    Bare {
        /// The number of the user.
        number: String,
        /// A unit that the user may have meant.
        example: &'static str,
    },
    /// There is no such unit.
    #[error("\"{text}\" has the unknown unit \"{unit}\"; the units are {units}")]
    UnknownUnit {
        /// The text of the user.
        text: String,
        /// The unknown unit in the text.
        unit: String,
        /// List of the valid units.
        units: &'static str,
    },
    /// The value does not fit into 64 bits.
    #[error("\"{0}\" is too large")]
    TooLarge(String),
    /// The value is not a whole number of the smallest unit.
    #[error("\"{text}\" is not a whole number of {base}")]
    TooFine {
        /// The text of the user.
        text: String,
        /// Name of the smallest unit.
        base: &'static str,
    },
}

struct Units {
    names: &'static str,
    example: &'static str,
    base: &'static str,
    factors: &'static [(&'static str, u64)],
}

impl Units {
    fn read<'de, D: Deserializer<'de>>(&'static self, from: D) -> Result<u64, D::Error> {
        // Self-describing formats tell the type of a value, so the error for a bare number can suggest a unit. Binary
        // formats do not tell it, so `read` asks for a string.
        if from.is_human_readable() {
            from.deserialize_any(Quantity(self))
        } else {
            from.deserialize_str(Quantity(self))
        }
    }

    fn bare(&self, number: impl fmt::Display) -> UnitError {
        UnitError::Bare { number: number.to_string(), example: self.example }
    }
}

const TIME: Units = Units {
    names: "ns, us, ms, s, m, h",
    example: "s",
    base: "nanoseconds",
    factors: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
};

const SIZE: Units = Units {
    names: "B, K, M, G, T",
    example: "M",
    base: "bytes",
    factors: &[
        ("B", 1),
        ("K", 1 << 10),
        ("KiB", 1 << 10),
        ("M", 1 << 20),
        ("MiB", 1 << 20),
        ("G", 1 << 30),
        ("GiB", 1 << 30),
        ("T", 1 << 40),
        ("TiB", 1 << 40),
    ],
};

/// Parses a duration such as `20s`, `1.5ms` or `2m`. Returns nanoseconds.
///
/// # Errors
/// Returns an error if the unit is missing or unknown, or if the value is not a whole number of nanoseconds below 2^64.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    parse(text, &TIME)
}

/// Parses a size such as `128M` or `4K`. A K is 1024 bytes. Returns bytes.
///
/// # Errors
/// Returns an error if the unit is missing or unknown, or if the value is not a whole number of bytes below 2^64.
pub fn parse_size_bytes(text: &str) -> Result<u64, UnitError> {
    parse(text, &SIZE)
}

/// Returns the error for a duration without a unit.
pub fn bare_duration(number: impl fmt::Display) -> UnitError {
    TIME.bare(number)
}

/// Returns the error for a size without a unit.
pub fn bare_size(number: impl fmt::Display) -> UnitError {
    SIZE.bare(number)
}

fn parse(text: &str, units: &Units) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err(UnitError::NoNumber(text.to_owned()));
    }
    if unit.is_empty() {
        let (text, units, example) = (trimmed.to_owned(), units.names, units.example);
        return Err(UnitError::NoUnit { text, units, example });
    }
    let Some(&(_, factor)) = units.factors.iter().find(|(name, _)| *name == unit) else {
        let (text, unit, units) = (trimmed.to_owned(), unit.to_owned(), units.names);
        return Err(UnitError::UnknownUnit { text, unit, units });
    };
    let too_large = || UnitError::TooLarge(trimmed.to_owned());
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let mut value = u128::from(whole) * u128::from(factor);
    if !fraction.is_empty() {
        // A fraction that does not fit 64 bits is refused as too fine, even if its last digits are zeros.
        let too_fine = || UnitError::TooFine { text: trimmed.to_owned(), base: units.base };
        let digits: u128 = fraction.parse::<u64>().map_err(|_| too_fine())?.into();
        let scale =
            10u128.checked_pow(u32::try_from(fraction.len()).unwrap_or(u32::MAX)).ok_or_else(too_fine)?;
        let scaled = digits * u128::from(factor);
        if !scaled.is_multiple_of(scale) {
            return Err(too_fine());
        }
        value += scaled / scale;
    }
    u64::try_from(value).map_err(|_| too_large())
}

/// Formats a duration so that [`parse_duration_ns`] returns exactly `ns`: `1.5s`, `200ms`. The unit is `s`, `ms`, `us`
/// or `ns`: the largest that gives a number of at least one.
#[must_use]
pub fn write_duration_ns(ns: u64) -> String {
    let (unit, factor, digits) = match ns {
        0..1_000 => ("ns", 1, 0),
        1_000..1_000_000 => ("us", 1_000, 3),
        1_000_000..1_000_000_000 => ("ms", 1_000_000, 6),
        _ => ("s", 1_000_000_000, 9),
    };
    let (whole, rest) = (ns / factor, ns % factor);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration_ns("20s"), Ok(20_000_000_000));
        assert_eq!(parse_duration_ns("500ms"), Ok(500_000_000));
        assert_eq!(parse_duration_ns("1.5us"), Ok(1_500));
        assert_eq!(parse_duration_ns("0.1 s"), Ok(100_000_000));
        assert_eq!(parse_duration_ns("2h"), Ok(7_200_000_000_000));
        assert!(matches!(parse_duration_ns("20"), Err(UnitError::NoUnit { .. })));
        assert!(matches!(parse_duration_ns("20d"), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!(parse_duration_ns("s"), Err(UnitError::NoNumber(_))));
        assert!(matches!(parse_duration_ns("1.s"), Err(UnitError::NoNumber(_))));
        assert!(matches!(parse_duration_ns("1.2.3s"), Err(UnitError::NoNumber(_))));
        assert!(matches!(parse_duration_ns("-1s"), Err(UnitError::NoNumber(_))));
        assert!(matches!(parse_duration_ns("0.5ns"), Err(UnitError::TooFine { .. })));
        assert!(matches!(parse_duration_ns("99999999999h"), Err(UnitError::TooLarge(_))));
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size_bytes("128M"), Ok(128 << 20));
        assert_eq!(parse_size_bytes("1.5G"), Ok(3 << 29));
        assert_eq!(parse_size_bytes("512B"), Ok(512));
        let error = parse_size_bytes("128Q").unwrap_err().to_string();
        assert_eq!(error, "\"128Q\" has the unknown unit \"Q\"; the units are B, K, M, G, T");
        let error = parse_size_bytes("128").unwrap_err().to_string();
        assert_eq!(error, "\"128\" has no unit; write one of B, K, M, G, T, as in \"128M\"");
    }

    #[test]
    fn the_error_for_a_bare_number_suggests_a_unit() {
        let size = |json: &str| serde_json::from_str::<Size>(json).map_err(|error| error.to_string());
        assert_eq!(size("\"4K\""), Ok(Size(4096)));
        assert!(size("4").unwrap_err().starts_with("4 needs a unit, e.g. \"4M\""));
        assert!(size("-1.5").unwrap_err().starts_with("-1.5 needs a unit"));
        assert!(
            size("[]")
                .unwrap_err()
                .starts_with("invalid type: sequence, expected text with a unit, such as \"1M\"")
        );
    }

    #[test]
    fn written_exactly() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_500, "1.5us"),
            (20_000_000, "20ms"),
            (1_000_000_000, "1s"),
            (90_000_000_001, "90.000000001s"),
        ] {
            assert_eq!(write_duration_ns(ns), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC*|[0-9]{1,20}(\\.[0-9]{1,3})? ?[a-zA-Z]{0,3}") {
            match parse_duration_ns(&text) {
                Ok(ns) => proptest::prop_assert_eq!(parse_duration_ns(&write_duration_ns(ns)), Ok(ns)),
                Err(error) => proptest::prop_assert!(error.to_string().contains(text.trim()), "{}", error),
            }
            match parse_size_bytes(&text) {
                Ok(bytes) => proptest::prop_assert_eq!(parse_size_bytes(&format!("{bytes}B")), Ok(bytes)),
                Err(error) => proptest::prop_assert!(error.to_string().contains(text.trim()), "{}", error),
            }
        }

        #[test]
        fn whole_numbers_are_exact(n in 0u64..1_000_000) {
            proptest::prop_assert_eq!(parse_duration_ns(&format!("{n}us")), Ok(n * 1_000));
            proptest::prop_assert_eq!(parse_size_bytes(&format!("{n}K")), Ok(n * 1_024));
        }

        #[test]
        fn written_durations_are_read_back(ns: u64, shift in 0u32..64) {
            let ns = ns >> shift;
            proptest::prop_assert_eq!(parse_duration_ns(&write_duration_ns(ns)), Ok(ns));
        }
    }
}

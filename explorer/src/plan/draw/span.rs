//! Types of settings in the `[faults]` table: durations with units, and ranges.

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use everett_fault::Requests;

use everett_input::units::{deserialize_duration_ns, write_duration_ns};

use super::error::ConfigProblem;

/// Duration in nanoseconds, written as a text with its unit, such as `"1.5s"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

impl Span {
    /// Returns a span of `ms` milliseconds.
    #[must_use]
    pub const fn ms(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }

    /// Returns a span of `s` seconds.
    #[must_use]
    pub const fn s(s: u64) -> Span {
        Span(s.saturating_mul(1_000_000_000))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&write_duration_ns(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        deserialize_duration_ns(from).map(Span)
    }
}

/// Range from which each fault draws a value, both ends included. The draw favours no order of magnitude: in a range
/// from 1 ms to 10 s, a value between 1 ms and 2 ms is about as likely as a value between 4 s and 8 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between<T>(pub T, pub T);

/// Numeric type of a setting.
pub(super) trait Number: Copy {
    fn number(self) -> u64;
    fn show(number: u64) -> String {
        number.to_string()
    }
}

impl Number for Span {
    fn number(self) -> u64 {
        self.0
    }

    fn show(number: u64) -> String {
        write_duration_ns(number)
    }
}

impl Number for u32 {
    fn number(self) -> u64 {
        self.into()
    }
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }
}

/// Setting whose value can be checked against bounds.
pub(super) trait Bounded {
    fn check(&self, bounds: &RangeInclusive<u64>) -> Result<(), ConfigProblem>;
}

impl<T: Number> Bounded for T {
    fn check(&self, bounds: &RangeInclusive<u64>) -> Result<(), ConfigProblem> {
        let found = self.number();
        if bounds.contains(&found) {
            return Ok(());
        }
        let show = |number: &u64| T::show(*number);
        let (least, most) = (show(bounds.start()), show(bounds.end()));
        Err(ConfigProblem::Bounds { found: show(&found), least, most })
    }
}

impl<T: Number> Bounded for Between<T> {
    fn check(&self, bounds: &RangeInclusive<u64>) -> Result<(), ConfigProblem> {
        self.0.check(bounds)?;
        self.1.check(bounds)?;
        if self.0.number() > self.1.number() {
            return Err(ConfigProblem::Range);
        }
        Ok(())
    }
}

/// Checks the number of elements against the bounds.
impl Bounded for Vec<Requests> {
    fn check(&self, bounds: &RangeInclusive<u64>) -> Result<(), ConfigProblem> {
        (self.len() as u64).check(bounds)
    }
}

impl Bounded for Vec<Vec<String>> {
    fn check(&self, bounds: &RangeInclusive<u64>) -> Result<(), ConfigProblem> {
        (self.len() as u64).check(bounds)
    }
}

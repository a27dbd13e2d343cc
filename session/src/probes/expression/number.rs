//! Numbers in memory.

/// Kind of a number in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Length in bytes: 1, 2, 4 or 8.
    pub bytes: usize,
    /// Meaning of the bytes.
    pub kind: Kind,
}

/// Meaning of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integer from 0.
    Unsigned,
    /// Integer in two's complement.
    Signed,
    /// Floating-point number (IEEE 754).
    Float,
}

impl Number {
    /// Returns the kind of number with this name, such as `u32`, `i8` or `f64`.
    #[must_use]
    pub fn named(name: &str) -> Option<Number> {
        let (kind, bits) = name.split_at_checked(1)?;
        let kind = match kind {
            "u" => Kind::Unsigned,
            "i" => Kind::Signed,
            "f" => Kind::Float,
            _ => return None,
        };
        let bytes = match bits {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            _ => return None,
        };
        (kind != Kind::Float || bytes >= 4).then_some(Number { bytes, kind })
    }

    /// Returns the integer that the lowest bytes of `bits` are.
    #[must_use]
    pub fn integer(self, bits: u64) -> i128 {
        let shift = 64 - 8 * self.bytes.clamp(1, 8) as u32;
        match self.kind {
            Kind::Signed => i128::from((bits << shift).cast_signed() >> shift),
            _ => i128::from(bits << shift >> shift),
        }
    }
}

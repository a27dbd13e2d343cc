//! Guidance: values of a program that lead the search.

use serde_json::{Map, Number, Value as Json};

use super::error::Problem;
use super::limits::{NAME_BYTES_MAX, VALUE_BYTES_MAX};
use crate::text::clip;

/// A value that a program reports as guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guidance {
    /// Name: the SDK's id, of at most [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Value of a guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, of which only better ones are new.
    Number {
        /// Rank among the values of this guidance: a higher one is better. The order is that of the numbers, reversed
        /// if the guidance is to be minimised.
        rank: i64,
        /// The number as text.
        text: String,
    },
    /// Any other value: each one that was not seen is new. The text has at most [`VALUE_BYTES_MAX`] bytes.
    Other(String),
}

impl Guidance {
    /// Reads a guidance; `None` for a line that only registers it, and for numbers that are none.
    pub(super) fn read(fields: &Map<String, Json>) -> Result<Option<Guidance>, Problem> {
        let text = |name: &str| fields.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
        let name = text("id").or_else(|| text("message")).ok_or(Problem::Field("id"))?;
        let kind = text("guidance_type").ok_or(Problem::Field("guidance_type"))?;
        if !["numeric", "boolean", "json"].contains(&kind) {
            return Err(Problem::GuidanceType);
        }
        let hit = fields.get("hit").and_then(Json::as_bool).ok_or(Problem::Field("hit"))?;
        let data = match fields.get("guidance_data") {
            None | Some(Json::Null) => return Ok(None),
            Some(_) if !hit => return Ok(None),
            Some(data) => data,
        };
        let value = if kind == "numeric" {
            let maximize =
                fields.get("maximize").and_then(Json::as_bool).ok_or(Problem::Field("maximize"))?;
            let side = |name: &'static str, path| match data.get(name) {
                Some(Json::Number(number)) => Ok(Some(number)),
                // What is not a number has no JSON form.
                Some(Json::Null) => Ok(None),
                _ => Err(Problem::Field(path)),
            };
            let sides = (side("left", "guidance_data.left")?, side("right", "guidance_data.right")?);
            let (Some(left), Some(right)) = sides else { return Ok(None) };
            let difference = difference(left, right);
            let rank = rank(difference);
            Value::Number { rank: if maximize { rank } else { !rank }, text: difference.to_string() }
        } else {
            // The fields of an object are in the order of names.
            Value::Other(clip(&data.to_string(), VALUE_BYTES_MAX))
        };
        Ok(Some(Guidance { name: clip(name, NAME_BYTES_MAX), value }))
    }
}

/// Returns the difference of two numbers: exact for whole numbers up to the last conversion.
fn difference(left: &Number, right: &Number) -> f64 {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => (left - right) as f64,
        _ => left.as_f64().unwrap_or(0.0) - right.as_f64().unwrap_or(0.0),
    }
}

/// Returns an integer with the order of the numbers: IEEE 754's total order, with one zero.
fn rank(number: f64) -> i64 {
    // Adding a positive zero makes a negative zero positive.
    let bits = (number + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::rank;

    proptest! {
        #[test]
        fn ranks_have_the_order_of_the_numbers(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(Some(rank(a).cmp(&rank(b))), a.partial_cmp(&b));
            prop_assert_eq!((!rank(a)).cmp(&!rank(b)), rank(b).cmp(&rank(a)));
        }
    }

    #[test]
    fn both_zeros_are_one() {
        assert_eq!(rank(0.0), rank(-0.0));
    }
}

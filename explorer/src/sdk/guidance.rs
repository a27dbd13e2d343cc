//! Guidance: values that a program reports to steer the search towards new behaviour.

use serde_json::{Map, Number, Value as Json};

use super::error::Problem;
use super::limits::{NAME_BYTES_MAX, VALUE_BYTES_MAX};
use crate::text::clip;

/// Value that a program reports as guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guidance {
    /// Name of the guidance, at most [`NAME_BYTES_MAX`] bytes. SDK lines call this field `id`.
    pub name: String,
    /// Reported value.
    pub value: Value,
}

/// Value of a guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Number: the difference of two numbers, called left and right, that the program reports. It is new to the search
    /// only if it is better than all earlier ones.
    Number {
        /// Rank of the number among the values of this guidance; a higher rank is better. If the program wants a small
        /// number (`maximize` is false), smaller numbers have higher ranks.
        rank: i64,
        /// The number as text.
        text: String,
    },
    /// Any other value, as text of at most [`VALUE_BYTES_MAX`] bytes. Each value that no branch reported before is new.
    Other(String),
}

impl Guidance {
    /// Reads a guidance. Returns `None` for a line that only registers a guidance, for a line without a value, and for
    /// a numeric guidance of which the left or right number is NaN or infinite.
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
                // NaN and infinity have no JSON form, so SDKs send null.
                Some(Json::Null) => Ok(None),
                _ => Err(Problem::Field(path)),
            };
            let sides = (side("left", "guidance_data.left")?, side("right", "guidance_data.right")?);
            let (Some(left), Some(right)) = sides else { return Ok(None) };
            let difference = difference(left, right);
            let rank = rank(difference);
            Value::Number { rank: if maximize { rank } else { !rank }, text: difference.to_string() }
        } else {
            // `serde_json` sorts the fields of an object by name, so equal objects have equal texts.
            Value::Other(clip(&data.to_string(), VALUE_BYTES_MAX))
        };
        Ok(Some(Guidance { name: clip(name, NAME_BYTES_MAX), value }))
    }
}

/// Returns `left` minus `right`. Integers are subtracted exactly before the conversion to a float.
fn difference(left: &Number, right: &Number) -> f64 {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => (left - right) as f64,
        _ => left.as_f64().unwrap_or(0.0) - right.as_f64().unwrap_or(0.0),
    }
}

/// Maps a float to an integer, so that the integers have the order of the floats. Both zeros are equal.
fn rank(number: f64) -> i64 {
    // Adding positive zero turns negative zero into positive zero.
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

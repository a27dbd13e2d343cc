//! Comparison of the headers of two explorations.

use serde_json::Value;

use super::difference::Difference;
use super::header::Header;
use super::one_line;
use crate::text::clip;

/// Maximum length of a value in a reported difference, in bytes.
const VALUE_BYTES_MAX: usize = 120;

impl Header {
    /// Checks that both headers describe the same exploration, so that each run may use the branch results that the
    /// other run recorded.
    ///
    /// Only three fields may differ: the path of the world file (but not its contents), the format version, and the
    /// engine. Everett's version must be equal, because another version may make other choices.
    ///
    /// # Errors
    /// Returns the first difference.
    pub fn same_exploration(&self, other: &Header) -> Result<(), Difference> {
        let Header { schema_version: _, everett, machine_version, identity, image, world_file: _, .. } = self;
        let Header { world, seed, strategy, in_flight, root_ns, segment_ns, horizon_ns, nodes, .. } = self;
        same("everett", everett, &other.everett)?;
        same("machine_version", machine_version, &other.machine_version)?;
        // Compare the world before the identity: an error about the world names the setting that differs, but an error
        // about the identity shows only two digests.
        same_value("world", world, &other.world)?;
        same("image", image, &other.image)?;
        same("nodes", nodes, &other.nodes)?;
        same("seed", &seed.number(), &other.seed.number())?;
        same("strategy", &strategy.0, &other.strategy.0)?;
        same("in_flight", in_flight, &other.in_flight)?;
        same("root_ns", root_ns, &other.root_ns)?;
        same("segment_ns", segment_ns, &other.segment_ns)?;
        same("horizon_ns", horizon_ns, &other.horizon_ns)?;
        same("exact", &self.exact, &other.exact)?;
        same("identity", identity, &other.identity)
    }
}

fn same<T: PartialEq + Into<Value> + Clone>(field: &str, this: &T, other: &T) -> Result<(), Difference> {
    if this == other {
        return Ok(());
    }
    Err(differ(field, Some(&this.clone().into()), Some(&other.clone().into())))
}

/// Compares two values. The recursion is bounded, because the JSON reader limits the depth of values.
fn same_value(field: &str, this: &Value, other: &Value) -> Result<(), Difference> {
    match (this, other) {
        (Value::Object(these), Value::Object(others)) => {
            for (name, this) in these {
                let field = format!("{field}.{name}");
                match others.get(name) {
                    Some(other) => same_value(&field, this, other)?,
                    None => return Err(differ(&field, Some(this), None)),
                }
            }
            match others.iter().find(|(name, _)| !these.contains_key(*name)) {
                Some((name, other)) => Err(differ(&format!("{field}.{name}"), None, Some(other))),
                None => Ok(()),
            }
        }
        (Value::Array(these), Value::Array(others)) => {
            for (i, (this, other)) in these.iter().zip(others).enumerate() {
                same_value(&format!("{field}[{i}]"), this, other)?;
            }
            let at = these.len().min(others.len());
            match (these.get(at), others.get(at)) {
                (None, None) => Ok(()),
                (this, other) => Err(differ(&format!("{field}[{at}]"), this, other)),
            }
        }
        _ if this == other => Ok(()),
        _ => Err(differ(field, Some(this), Some(other))),
    }
}

fn differ(field: &str, this: Option<&Value>, other: Option<&Value>) -> Difference {
    let shown = |value: Option<&Value>| match value {
        Some(value) => one_line(&clip(&value.to_string(), VALUE_BYTES_MAX)),
        None => "nothing".to_owned(),
    };
    let field = one_line(&clip(field, VALUE_BYTES_MAX));
    Difference { field, this: shown(this), other: shown(other) }
}

//! Declarations of properties in a world file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A `[[property]]` table. It has exactly one of `never`, `eventually` and `sometimes`, each a regular expression for
/// lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct PropertyConfig {
    /// Name of the property in reports: 1 to 64 of `a-z A-Z 0-9 - _ .` and spaces. It must be unique among all
    /// properties.
    pub name: String,
    /// Expression that no line may match. Each matching line is a hit, i.e. a violation.
    #[serde(default)]
    pub never: Option<String>,
    /// Expression that a line must match between the end of all faults and the end of the timeline. A timeline without
    /// a matching line violates the property.
    #[serde(default)]
    pub eventually: Option<String>,
    /// Expression that a line of at least one timeline should match. If no line does, the report lists a gap, but there
    /// is no hit.
    #[serde(default)]
    pub sometimes: Option<String>,
    /// Name pattern of the units (services, drivers, checks) whose lines are judged; `*` stands for any characters. If
    /// absent, lines of all units are judged.
    #[serde(default)]
    pub unit: Option<String>,
    /// Nodes whose lines are judged. If absent, lines of all nodes are judged.
    #[serde(default)]
    pub nodes: Option<BTreeSet<String>>,
    /// True if lines of kernels' consoles are judged. False if the output of programs is judged.
    #[serde(default)]
    pub console: bool,
    /// Description of a violation in reports: 1 to 128 bytes in one line. Not allowed with `sometimes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
}

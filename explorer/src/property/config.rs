//! Declarations of properties in a world file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A `[[property]]` table. Exactly one of `never`, `eventually` and `sometimes` is given: a regular expression for
/// lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct PropertyConfig {
    /// Name in reports: 1 to 64 of `a-z A-Z 0-9 - _ .` and spaces, unique among all properties.
    pub name: String,
    /// Expression that no line may match. Each matching line is a hit.
    #[serde(default)]
    pub never: Option<String>,
    /// Expression that a line must match after faults have ended for good and before the timeline ends. If no line
    /// matches, this is a hit.
    #[serde(default)]
    pub eventually: Option<String>,
    /// Expression that a line of at least one timeline must match. Never a hit.
    #[serde(default)]
    pub sometimes: Option<String>,
    /// Pattern for units whose lines are judged; `*` stands for any characters. If absent, lines of all units are
    /// judged.
    #[serde(default)]
    pub unit: Option<String>,
    /// Nodes whose lines are judged. If absent, lines of all nodes are judged.
    #[serde(default)]
    pub nodes: Option<BTreeSet<String>>,
    /// True if lines of kernels' consoles are judged instead of programs' output.
    #[serde(default)]
    pub console: bool,
    /// Words for a violation in reports: 1 to 128 bytes in one line. Not with `sometimes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
}

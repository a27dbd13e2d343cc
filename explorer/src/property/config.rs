//! What a world file declares.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A `[[property]]` table. Exactly one of `never`, `eventually` and `sometimes` is given: an expression over lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct PropertyConfig {
    /// Its name in reports: 1 to 64 of `a-z A-Z 0-9 - _ .` and spaces. No other property has it.
    pub name: String,
    /// A line that matches is a hit.
    #[serde(default)]
    pub never: Option<String>,
    /// Whenever faults have ended for good, a line that matches must come before the timeline ends: none is a hit.
    #[serde(default)]
    pub eventually: Option<String>,
    /// At least one timeline of an exploration must have a line that matches. Never a hit.
    #[serde(default)]
    pub sometimes: Option<String>,
    /// The units whose lines it is about; `*` stands for any characters. All if it is not given.
    #[serde(default)]
    pub unit: Option<String>,
    /// The nodes whose lines it is about. All if it is not given.
    #[serde(default)]
    pub nodes: Option<BTreeSet<String>>,
    /// It is about lines of kernels' consoles, and not about programs' output.
    #[serde(default)]
    pub console: bool,
}

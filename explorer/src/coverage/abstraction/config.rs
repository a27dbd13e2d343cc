//! Configuration of the abstract state.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Rules that map observed events to abstract states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AbstractionConfig {
    /// State variables.
    pub rules: Vec<RuleConfig>,
    /// Setting that decides whether log templates are part of the state.
    pub templates: Templates,
    /// Number of a unit's last distinct template classes that are part of the state: 1 or 2.
    pub last: u8,
    /// Number of templates of a unit that are distinguished; later ones form one class.
    pub vocabulary: u16,
}

impl Default for AbstractionConfig {
    fn default() -> AbstractionConfig {
        AbstractionConfig { rules: Vec::new(), templates: Templates::Auto, last: 1, vocabulary: 12 }
    }
}

/// Setting that decides whether log templates are part of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Templates {
    /// Templates are part of the state only if there are no rules. Declared state is better than templates, and a state
    /// that is too fine gives no guidance.
    #[default]
    Auto,
    /// Templates are part of the state.
    On,
    /// Templates are not part of the state.
    Off,
}

/// Rule that sets state variables from log lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Name for errors and reports.
    pub name: String,
    /// Pattern for the units whose lines the rule reads; `*` stands for any characters. Without it the rule reads all
    /// units.
    #[serde(default)]
    pub unit: Option<String>,
    /// Regular expression that a line must match. Each named capture is a variable.
    pub regex: String,
    /// Nodes whose lines the rule reads; all if empty.
    #[serde(default)]
    pub nodes: BTreeSet<String>,
    /// True if the variables belong to the world and not to a node.
    #[serde(default)]
    pub global: bool,
    /// Variables that a matching line sets to fixed values.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Interpretation of captures; [`Capture::Exact`] for those that are not listed.
    #[serde(default)]
    pub captures: BTreeMap<String, Capture>,
    /// Possible values of variables, so that unseen values can be reported.
    #[serde(default)]
    pub values: BTreeMap<String, BTreeSet<String>>,
    /// Events at which the rule's variables are forgotten.
    #[serde(default = "all_resets")]
    pub reset_on: BTreeSet<Reset>,
}

fn all_resets() -> BTreeSet<Reset> {
    [Reset::PowerLoss, Reset::Exit].into()
}

/// Interpretation of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// The captured text itself.
    #[default]
    Exact,
    /// A number, reduced to its rank among the nodes' numbers. For terms and epochs.
    Relative,
    /// A number, reduced to its logarithm to base 2, rounded down. For lengths.
    Bucket,
}

/// Event at which variables are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// Power loss or reset of the node.
    PowerLoss,
    /// Exit of a unit whose lines the rule reads.
    Exit,
}

//! Configuration of the abstract state, i.e. of the summary that coverage makes of a world's logs and faults. The state
//! consists of variables and of log templates, i.e. log lines without their variable parts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Rules that map observed events to abstract states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AbstractionConfig {
    /// Rules that set state variables.
    pub rules: Vec<RuleConfig>,
    /// Decides whether log templates are part of the state.
    pub templates: Templates,
    /// How many of a unit's latest distinct log templates the state contains: 1 or 2. A unit is a service or a driver
    /// (program of the workload).
    pub last: u8,
    /// Maximum number of different log templates of a unit. Once a unit has that many, all its further templates count
    /// as the single template `other`.
    pub vocabulary: u16,
}

impl Default for AbstractionConfig {
    fn default() -> AbstractionConfig {
        AbstractionConfig { rules: Vec::new(), templates: Templates::Auto, last: 1, vocabulary: 12 }
    }
}

/// Decides whether log templates are part of the state. A log template is a log line without its variable parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Templates {
    /// Templates are part of the state only if there are no rules. The variables that rules set describe a state better
    /// than templates. If states contained both, nearly every state would be new, and new states could not guide the
    /// explorer.
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
    /// Name of the rule, for errors and reports.
    pub name: String,
    /// Name pattern of the units whose lines the rule reads; `*` stands for any characters. If absent, the rule reads
    /// all units.
    #[serde(default)]
    pub unit: Option<String>,
    /// Regular expression that a line must match. Each named capture sets a variable.
    pub regex: String,
    /// Nodes whose lines the rule reads. If empty, all nodes.
    #[serde(default)]
    pub nodes: BTreeSet<String>,
    /// True if the variables belong to the whole world. False if each node has its own.
    #[serde(default)]
    pub global: bool,
    /// Variables that a matching line sets to fixed values.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Interpretation of each capture. Captures that are not listed are [`Capture::Exact`].
    #[serde(default)]
    pub captures: BTreeMap<String, Capture>,
    /// Possible values of variables, so that reports can list the values that never occurred.
    #[serde(default)]
    pub values: BTreeMap<String, BTreeSet<String>>,
    /// Events that clear the rule's variables on the event's node. No event clears global variables.
    #[serde(default = "all_resets")]
    pub reset_on: BTreeSet<Reset>,
}

fn all_resets() -> BTreeSet<Reset> {
    [Reset::PowerLoss, Reset::Exit].into()
}

/// Interpretation of a captured text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// The captured text itself.
    #[default]
    Exact,
    /// A number, replaced by its rank. If the variable has the values 3, 7 and 9 on the nodes, their ranks are 0, 1 and
    /// 2. Suitable for terms and epochs.
    Relative,
    /// A number, reduced to its base-2 logarithm, rounded down. Suitable for lengths.
    Bucket,
}

/// Event that clears variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// Power loss or reset of the node.
    PowerLoss,
    /// Exit of a unit whose lines the rule reads.
    Exit,
}

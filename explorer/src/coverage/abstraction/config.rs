//! What can be declared.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// How observed events become abstract states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AbstractionConfig {
    /// State variables.
    pub rules: Vec<RuleConfig>,
    /// Whether log templates are part of the state.
    pub templates: Templates,
    /// How many of a unit's last different template classes are: 1 or 2.
    pub last: u8,
    /// How many templates of a unit are told apart; those first seen after them are one class.
    pub vocabulary: u16,
}

impl Default for AbstractionConfig {
    fn default() -> AbstractionConfig {
        AbstractionConfig { rules: Vec::new(), templates: Templates::Auto, last: 1, vocabulary: 12 }
    }
}

/// Whether log templates are part of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Templates {
    /// If there are no rules: declared state beats templates, and states that are too fine lead nowhere.
    #[default]
    Auto,
    /// Yes.
    On,
    /// No.
    Off,
}

/// A rule: what a line says about the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Its name, for errors and reports.
    pub name: String,
    /// The units whose lines it is about; `*` stands for any characters. All if it is not given.
    #[serde(default)]
    pub unit: Option<String>,
    /// What a line must have. Each named capture is a variable.
    pub regex: String,
    /// The nodes that it is about. All if there are none.
    #[serde(default)]
    pub nodes: BTreeSet<String>,
    /// Its variables are the world's and not a node's.
    #[serde(default)]
    pub global: bool,
    /// Variables that a matching line sets to these values.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// How captures are taken, if not as they are.
    #[serde(default)]
    pub captures: BTreeMap<String, Capture>,
    /// The values that variables can have, so that it can be told which were never seen.
    #[serde(default)]
    pub values: BTreeMap<String, BTreeSet<String>>,
    /// When its variables are forgotten.
    #[serde(default = "all_resets")]
    pub reset_on: BTreeSet<Reset>,
}

fn all_resets() -> BTreeSet<Reset> {
    [Reset::PowerLoss, Reset::Exit].into()
}

/// How a capture is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// As it is.
    #[default]
    Exact,
    /// A number of which only its rank among the nodes' numbers counts, as of terms and epochs.
    Relative,
    /// A number of which only its logarithm to base 2, rounded down, counts, as of lengths.
    Bucket,
}

/// When variables are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reset {
    /// The node loses power or is reset.
    PowerLoss,
    /// A unit that the rule is about ends.
    Exit,
}

//! Declarations of probes in a world file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::coverage::Capture;

/// A `[[probe]]` table. It has at least one of `always`, `never`, `never_decreases`, `sometimes`, `state` and `log`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ProbeConfig {
    /// Name of the probe, which is also the name of its property and of its state variable. It must be unique among all
    /// properties and probes.
    pub name: String,
    /// Place in a program, as `everett print` takes it: `PROGRAM:FUNCTION`, `PROGRAM:FILE:LINE` or `PROGRAM:0xADDRESS`.
    pub at: String,
    /// Expression whose value the probe reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Condition. Only hits count at which it is not 0.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Nodes that are probed. If absent, all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<BTreeSet<String>>,
    /// Expression that must not be 0 at any hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// True if no hit may happen.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never: bool,
    /// Forbids that the value decreases, in a process or on a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_decreases: Option<Scope>,
    /// True if at least one branch should have a hit. If no branch has one, the report lists a gap.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sometimes: bool,
    /// Makes the value a state variable of the node, interpreted in this way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Capture>,
    /// True if each hit is an event among the log lines.
    #[serde(default, skip_serializing_if = "is_false")]
    pub log: bool,
    /// Description of a violation in reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
    /// Folder with separate debug files. Programs are matched with its files by their build IDs, so the folder's path is
    /// not part of a run's world.
    #[serde(default, skip_serializing)]
    pub debug_files: Option<PathBuf>,
}

impl ProbeConfig {
    /// True if the first hit on a path is noted: it is wanted, or without it nothing was judged.
    #[must_use]
    pub fn notes_first_hit(&self) -> bool {
        self.sometimes || self.always.is_some() || self.never_decreases.is_some()
    }

    /// True if a hit can violate the probe.
    #[must_use]
    pub fn is_property(&self) -> bool {
        self.always.is_some() || self.never || self.never_decreases.is_some()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Range in which the values of a probe are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A process, until it ends or loads another program. For counters in memory.
    Process,
    /// A node, also after its programs or the node itself restarted. For values that are stored on disks, such as terms.
    Node,
}

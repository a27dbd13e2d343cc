//! The classes `Finding` and `Branch`, which an exploration has recorded.

use everett_explorer::run::{self as explorer, Record};
use pyo3::prelude::*;

use crate::timeline::seconds;

/// A finding of an exploration.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Finding {
    pub(crate) number: u32,
    property: String,
    signature: String,
    text: String,
    vtime: f64,
    vtime_ns: u64,
    node: Option<String>,
    /// Number of the first branch that showed it.
    branch: u64,
    /// Number of branches that showed it.
    branches: u64,
    /// Lines of logs, messages and faults before it.
    lines: Vec<String>,
    messages: Vec<String>,
    faults: Vec<String>,
}

impl From<&explorer::Finding> for Finding {
    fn from(finding: &explorer::Finding) -> Finding {
        let hit = &finding.hit;
        Finding {
            number: finding.id,
            property: hit.property.clone(),
            signature: hit.signature.clone(),
            text: hit.text.clone(),
            vtime: seconds(hit.vtime_ns),
            vtime_ns: hit.vtime_ns,
            node: hit.node.clone(),
            branch: finding.first,
            branches: finding.tally.branches,
            lines: hit.evidence.lines.clone(),
            messages: hit.evidence.packets.clone(),
            faults: hit.evidence.faults.clone(),
        }
    }
}

#[pymethods]
impl Finding {
    fn __repr__(&self) -> String {
        format!("Finding({}, {:?}: {:?}, branch={})", self.number, self.property, self.text, self.branch)
    }
}

/// A recorded branch.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Branch {
    pub(crate) number: u64,
    /// Number of the branch that it extends.
    parent: Option<u64>,
    path: String,
    end: f64,
    end_ns: u64,
    trail: String,
    checked: bool,
    faults: u64,
    messages: u64,
    /// Violations: property, text, and vtime in nanoseconds.
    violations: Vec<(String, String, u64)>,
    sometimes: Vec<String>,
    broken: Option<String>,
}

impl From<Record> for Branch {
    fn from(record: Record) -> Branch {
        let violations = record.hits.into_iter().map(|hit| (hit.property, hit.text, hit.vtime_ns));
        Branch {
            number: record.choice,
            parent: record.from,
            path: record.path.to_string(),
            end: seconds(record.end_ns),
            end_ns: record.end_ns,
            trail: record.trail,
            checked: record.checked,
            faults: record.faults,
            messages: record.messages,
            violations: violations.collect(),
            sometimes: record.sometimes,
            broken: record.broken,
        }
    }
}

#[pymethods]
impl Branch {
    fn __repr__(&self) -> String {
        format!("Branch({}, path={:?}, {} violations)", self.number, self.path, self.violations.len())
    }
}

//! Violation of a property on a branch (a hit), with its evidence.

use serde::{Deserialize, Serialize};

use super::limits::{
    EVIDENCE_LINE_BYTES_MAX, EVIDENCE_LINES_MAX, NAME_BYTES_MAX, SIGNATURE_BYTES_MAX, TEXT_BYTES_MAX,
};
use crate::text::clip;

/// Violation of a property on a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hit {
    /// Name of the property.
    pub property: String,
    /// Signature: a hash that groups hits. Hits of a property with the same signature are one finding.
    pub signature: String,
    /// Description of the violation.
    pub text: String,
    /// Vtime of the hit, in nanoseconds.
    pub vtime_ns: u64,
    /// Name of the violating node. `None` if the hit does not belong to a single node.
    pub node: Option<String>,
    /// Observations around the hit.
    pub evidence: Evidence,
}

/// Observations around a hit, as texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Lines of logs and histories.
    pub lines: Vec<String>,
    /// Packets on the simulated network.
    pub packets: Vec<String>,
    /// Faults that were applied.
    pub faults: Vec<String>,
}

impl Hit {
    /// Cuts the hit to its bounds. A text that is too long ends in a hash of the whole text.
    pub(super) fn bound(&mut self) {
        cut(&mut self.property, NAME_BYTES_MAX);
        cut(&mut self.signature, SIGNATURE_BYTES_MAX);
        cut(&mut self.text, TEXT_BYTES_MAX);
        self.node.iter_mut().for_each(|node| cut(node, NAME_BYTES_MAX));
        let Evidence { lines, packets, faults } = &mut self.evidence;
        for list in [lines, packets, faults] {
            list.truncate(EVIDENCE_LINES_MAX);
            list.iter_mut().for_each(|line| cut(line, EVIDENCE_LINE_BYTES_MAX));
        }
    }
}

/// Cuts a text to `most` bytes in place.
pub(super) fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        *text = clip(text, most);
    }
}

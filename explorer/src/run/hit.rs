//! A property that a branch hit, with what shows it.

use serde::{Deserialize, Serialize};

use super::limits::{
    EVIDENCE_BYTES_MAX, EVIDENCE_LINES_MAX, NAME_BYTES_MAX, SIGNATURE_BYTES_MAX, TEXT_BYTES_MAX,
};
use crate::coverage::text::clip;

/// Something that must not be seen was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hit {
    /// The property.
    pub property: String,
    /// What two hits that are the same bug have in common.
    pub signature: String,
    /// What is wrong, in words.
    pub text: String,
    /// When, in nanoseconds of vtime.
    pub vtime_ns: u64,
    /// Where, if it is about one node.
    pub node: Option<String>,
    /// What shows it.
    pub evidence: Evidence,
}

/// What was seen around a hit, as texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Lines of logs and histories.
    pub lines: Vec<String>,
    /// What went over the wire.
    pub packets: Vec<String>,
    /// The faults that were done.
    pub faults: Vec<String>,
}

impl Hit {
    /// Within bounds: texts that are too long end in their hash.
    pub(super) fn bound(&mut self) {
        cut(&mut self.property, NAME_BYTES_MAX);
        cut(&mut self.signature, SIGNATURE_BYTES_MAX);
        cut(&mut self.text, TEXT_BYTES_MAX);
        self.node.iter_mut().for_each(|node| cut(node, NAME_BYTES_MAX));
        let Evidence { lines, packets, faults } = &mut self.evidence;
        for list in [lines, packets, faults] {
            list.truncate(EVIDENCE_LINES_MAX);
            list.iter_mut().for_each(|line| cut(line, EVIDENCE_BYTES_MAX));
        }
    }
}

/// Clip a text in place.
pub(super) fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        *text = clip(text, most);
    }
}

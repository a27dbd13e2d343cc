//! Digests of all exact results, one for each number of branches.
//!
//! Values that may differ between hosts are left out (times, executed instructions, the reason why a branch broke), and
//! so are values that repeat others (evidence, lengths of logs) and the cost of final phases: it is a part of the
//! instructions, and records of older formats lack it.

use super::super::record::{HistoryCount, Record};
use super::finding::Finding;
use crate::composer::Counts;
use crate::coverage::Coverage;

/// Chain of digests, one for each number of branches. Each is computed from the previous digest and a record.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    /// Digests after 1, 2, 3, … branches.
    links: Vec<blake3::Hash>,
}

impl Chain {
    pub(super) fn add(&mut self, exact: blake3::Hash) {
        let mut digest = Digest::new("everett 1 run link");
        digest.bytes(self.last().as_bytes());
        digest.bytes(exact.as_bytes());
        self.links.push(digest.finish());
    }

    /// Returns the last digest, or the initial one if there are no branches.
    pub(super) fn last(&self) -> blake3::Hash {
        self.links.last().copied().unwrap_or_else(nothing)
    }

    pub(super) fn at(&self, branches: u64) -> Option<blake3::Hash> {
        match usize::try_from(branches).ok()?.checked_sub(1) {
            None => Some(nothing()),
            Some(i) => self.links.get(i).copied(),
        }
    }
}

/// Returns the digest of the whole result.
pub(super) fn whole(chain: &Chain, findings: &[Finding], overflow: u64, coverage: &Coverage) -> blake3::Hash {
    let mut digest = Digest::new("everett 1 run");
    digest.bytes(chain.last().as_bytes());
    digest.number(overflow);
    digest.number(findings.len() as u64);
    for finding in findings {
        digest.number(finding.id.into());
        digest.number(finding.first);
        digest.text(&finding.hit.property);
        digest.text(&finding.hit.signature);
        digest.text(&finding.hit.text);
        digest.number(finding.hit.vtime_ns);
        digest.number(finding.tally.branches);
        digest.number(finding.tally.subtrees.len() as u64);
        for (subtree, hit) in &finding.tally.subtrees {
            digest.number(*subtree);
            digest.number(hit.branches);
        }
    }
    digest.bytes(coverage.digest().as_bytes());
    digest.finish()
}

/// Returns the digest of the exact parts of a record that is within its bounds. Two records have the same digest if and
/// only if these parts are equal.
pub(in super::super) fn exact(record: &Record) -> blake3::Hash {
    let Record { choice, from, path, open_ns, end_ns, instructions, trail, marks, checked, .. } = record;
    let Record { faults, losses, messages, delta, hits, sometimes, commands, history, broken, .. } = record;
    let mut digest = Digest::new("everett 1 run record");
    digest.number(*choice);
    digest.maybe(*from);
    digest.text(&path.to_string());
    digest.maybe(*open_ns);
    for number in [*end_ns, *instructions, marks.len() as u64, u64::from(*checked)] {
        digest.number(number);
    }
    [*faults, *losses, *messages].into_iter().for_each(|number| digest.number(number));
    digest.text(trail);
    digest.number(broken.is_some().into());
    digest.number(delta.points().count() as u64);
    for (id, reached) in delta.points() {
        // The id stands for the point's texts.
        digest.bytes(&id.0.to_le_bytes());
        digest.number(reached.vtime_ns);
    }
    digest.number(delta.overflow());
    digest.number(delta.strange());
    digest.number(hits.len() as u64);
    for hit in hits {
        [&hit.property, &hit.signature, &hit.text].into_iter().for_each(|text| digest.text(text));
        digest.number(hit.vtime_ns);
        digest.number(hit.node.is_some().into());
        digest.text(hit.node.as_deref().unwrap_or_default());
    }
    digest.number(sometimes.len() as u64);
    sometimes.iter().for_each(|name| digest.text(name));
    digest.number(commands.commands().count() as u64);
    for (name, Counts { started, succeeded, failed }) in commands.commands() {
        digest.text(name);
        [started, succeeded, failed].into_iter().for_each(|number| digest.number(number));
    }
    digest.number(history.is_some().into());
    let HistoryCount { operations, acknowledged, failed, problems, unknown } = history.unwrap_or_default();
    [operations, acknowledged, failed, problems, unknown].into_iter().for_each(|n| digest.number(n));
    digest.finish()
}

fn nothing() -> blake3::Hash {
    Digest::new("everett 1 run without a branch").finish()
}

/// Hasher of values with unambiguous boundaries.
struct Digest(blake3::Hasher);

impl Digest {
    fn new(what: &str) -> Digest {
        Digest(blake3::Hasher::new_derive_key(what))
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn maybe(&mut self, number: Option<u64>) {
        self.number(number.is_some().into());
        self.number(number.unwrap_or(0));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    fn finish(&self) -> blake3::Hash {
        self.0.finalize()
    }
}

//! Chain of digests of branches' results. The digests cover only those parts of the results that do not depend on the
//! host.

use super::super::digest::Digest;
use super::finding::Finding;
use crate::coverage::Coverage;

/// Chain of digests. Digest n covers the results of the first n branches: it is computed from digest n - 1 and the
/// record (stored result) of the n-th branch.
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

    /// Returns the last digest, or the initial digest if there are no branches.
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

/// Returns the digest of all results.
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

fn nothing() -> blake3::Hash {
    Digest::new("everett 1 run without a branch").finish()
}

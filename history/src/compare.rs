//! Comparison of a run's findings with those of the previous run of the same world.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::run::{Finding, Run};

/// Status of a finding in comparison with the previous run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Only the later run has the finding.
    New,
    /// Both runs have the finding.
    Ongoing,
    /// Only the previous run has the finding. The bug may still exist, because the finding may be rare.
    Gone,
}

/// Comparison of a run with the previous run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The previous run.
    pub before: Run,
    /// True if the world, an image or the machine version has changed since the previous run.
    pub changed: bool,
    /// Findings of both runs: first the findings of the later run, then those that only the previous run has.
    pub findings: Vec<(Status, Finding)>,
}

impl Compared {
    /// Compares the findings `now` of a run with the findings `then` of the previous run `before`. `identity` is the
    /// [`Run::identity`] of the run itself.
    #[must_use]
    pub fn of(identity: &str, now: &[Finding], before: Run, then: &[Finding]) -> Compared {
        let keys = |all: &[Finding]| -> BTreeSet<(String, String)> {
            all.iter().map(|finding| (finding.property.clone(), finding.signature.clone())).collect()
        };
        let (keys_now, keys_then) = (keys(now), keys(then));
        let has = |keys: &BTreeSet<(String, String)>, finding: &Finding| {
            let (property, signature) = finding.key();
            keys.contains(&(property.to_owned(), signature.to_owned()))
        };
        let shown = now.iter().map(|finding| {
            (if has(&keys_then, finding) { Status::Ongoing } else { Status::New }, finding.clone())
        });
        let gone = then.iter().filter(|finding| !has(&keys_now, finding));
        let gone = gone.map(|finding| (Status::Gone, finding.clone()));
        Compared { changed: before.identity != identity, before, findings: shown.chain(gone).collect() }
    }

    /// Returns the number of findings with this status.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.findings.iter().filter(|(has, _)| *has == status).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_the_same_if_property_and_signature_are() {
        let finding = |id, property: &str, signature: &str| Finding {
            id,
            property: property.to_owned(),
            signature: signature.to_owned(),
            text: format!("text {id}"),
        };
        let now = [finding(1, "p", "a"), finding(2, "q", "a")];
        let then = [finding(1, "q", "a"), finding(2, "p", "b")];
        let before = Run { identity: "i".to_owned(), ..Run::default() };
        let compared = Compared::of("i", &now, before.clone(), &then);
        let statuses: Vec<_> = compared.findings.iter().map(|(status, finding)| (*status, finding)).collect();
        assert_eq!(statuses, [(Status::New, &now[0]), (Status::Ongoing, &now[1]), (Status::Gone, &then[1])]);
        assert_eq!([Status::New, Status::Ongoing, Status::Gone].map(|status| compared.count(status)), [1; 3]);
        assert!(!compared.changed && Compared::of("j", &now, before, &then).changed);
    }
}

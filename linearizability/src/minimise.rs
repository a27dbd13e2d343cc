//! Search for the first completion (end of an operation) that is impossible: the one that ends the history's shortest
//! prefix without a valid order.
//!
//! If a history has a valid order, then all of its prefixes have one. A history without a valid order therefore has a
//! first impossible completion. Nothing that comes later can make its result possible.
//!
//! In a prefix, an operation that completes after the prefix has an unknown outcome, so a prefix allows more orders
//! than the whole history. The search over the whole history therefore gets stuck at this completion, or before it.

use std::collections::BTreeSet;

use super::error::short;
use super::evidence::{Evidence, Limit, Verdict};
use super::limits::{ORDER_SHOWN_MAX, POSSIBLE_MAX};
use super::operation::{Answer, Call, Description, Operation};
use super::partition::until;
use super::reader::History;
use super::search::{Allowance, Outcome, Search};
use super::spec::ModelKind;
use super::values::{NULL, V};

/// Judge of one part of a history, e.g. of the operations of one key.
pub(super) struct Judge<'p, 'h> {
    pub(super) history: &'h History,
    pub(super) part: &'p [&'h Operation],
    pub(super) allowance: Allowance,
    /// True if violations are traced to the first impossible completion.
    pub(super) follow: bool,
}

impl<'h> Judge<'_, 'h> {
    /// Judges the part. Returns the verdict and the number of search steps. The steps that traced a violation are not
    /// counted.
    pub(super) fn verdict(&self) -> (Verdict, u64) {
        let mut left = self.allowance.steps;
        let outcome = self.search(u64::MAX, None, &mut left);
        let verdict = match outcome {
            Outcome::Order(..) => Verdict::Fine,
            Outcome::Spent(why) => Verdict::Unknown { why },
            Outcome::None { stuck, .. } => Verdict::Violation(Box::new(self.evidence(stuck))),
        };
        (verdict, self.allowance.steps - left)
    }

    /// Searches for a valid order of the part's prefix that ends at `line`. `suspect` is the operation that is examined
    /// as the first impossible one.
    fn search(&self, line: u64, suspect: Option<&Operation>, left: &mut u64) -> Outcome<'h> {
        let (done, open) = until(self.part, line);
        let allowance = Allowance { steps: *left, ..self.allowance };
        let mut search = Search::new(self.history, &done, &open, suspect, allowance);
        let outcome = search.run();
        *left = left.saturating_sub(search.steps);
        match outcome {
            // Several searches share one allowance, so the whole allowance is reported as the limit.
            Outcome::Spent(Limit::Steps(_)) => Outcome::Spent(Limit::Steps(self.allowance.steps)),
            outcome => outcome,
        }
    }

    fn evidence(&self, stuck: &'h Operation) -> Evidence {
        let mut evidence = self.bare(stuck);
        if !self.follow {
            return evidence;
        }
        let mut left = self.allowance.steps;
        let (first, earliest) = self.first(stuck, &mut left);
        evidence = self.bare(first);
        evidence.earliest = earliest;
        let Some(end) = first.completed().filter(|_| earliest) else { return evidence };
        let mut since = None;
        if let Outcome::Order(order, state) = self.search(end.line - 1, None, &mut left) {
            evidence.state = Some(state);
            evidence.placed = order.len();
            let shown = order.iter().skip(order.len().saturating_sub(ORDER_SHOWN_MAX));
            evidence.order = shown.map(|operation| self.history.describe(operation)).collect();
            since = order.iter().rfind(|operation| operation.call.changes()).copied();
        }
        if let Outcome::None { possible, .. } = self.search(end.line, Some(first), &mut left) {
            evidence.more = possible.len() > POSSIBLE_MAX;
            evidence.possible = possible.into_iter().take(POSSIBLE_MAX).collect();
        }
        let one_thing = !matches!(self.history.spec.kind(), ModelKind::Queue | ModelKind::Set);
        if evidence.possible.len() == 1 && one_thing {
            evidence.since = since.filter(|since| since.precedes(first)).and_then(Operation::completed);
        }
        evidence
    }

    /// Returns the operation with the first impossible completion. The bool is false if the steps of the allowance
    /// ran out. An earlier completion may then be the first impossible one.
    fn first(&self, stuck: &'h Operation, left: &mut u64) -> (&'h Operation, bool) {
        let mut ends: Vec<(u64, &'h Operation)> = self
            .part
            .iter()
            .filter_map(|operation| Some((operation.completed()?.line, *operation)))
            .collect();
        ends.sort_unstable_by_key(|(line, _)| *line);
        let reached = stuck.completed().map_or(0, |moment| moment.line);
        // Prefixes that end before completion `good` have a valid order. The prefix that ends with completion `bad` has
        // none. The first prefix that is tried usually gives the answer.
        let mut good = ends.partition_point(|(line, _)| *line < reached);
        let mut bad = ends.len().saturating_sub(1);
        let mut stride = 0;
        while good < bad {
            let probe = (good + stride).min(good + (bad - good) / 2);
            let Some((line, _)) = ends.get(probe) else { break };
            match self.search(*line, None, left) {
                Outcome::Order(..) => {
                    good = probe + 1;
                    stride = 2 * stride + 1;
                }
                Outcome::None { .. } => bad = probe,
                Outcome::Spent(_) => break,
            }
        }
        (ends.get(bad).map_or(stuck, |(_, operation)| operation), good >= bad)
    }

    /// Returns the evidence about an operation, without the parts that need a search.
    fn bare(&self, operation: &'h Operation) -> Evidence {
        let describe = |operation: &Operation| self.history.describe(operation);
        let some = |keep: &dyn Fn(&Operation) -> bool| -> Vec<Description> {
            let kept = self.part.iter().filter(|other| ***other != *operation && keep(other));
            kept.take(ORDER_SHOWN_MAX).map(|other| describe(other)).collect()
        };
        let seen = match (operation.call, operation.answer()) {
            (_, Some(Answer::Value(v))) => Some(*v),
            (Call::Contains(v), Some(Answer::Holds(true))) | (Call::Cas(v, _), _) => Some(v),
            _ => None,
        };
        let end = operation.completed().map_or(u64::MAX, |moment| moment.line);
        Evidence {
            key: self.history.key(operation.key).map(short),
            operation: describe(operation),
            earliest: false,
            foreign: self.is_foreign(operation),
            possible: Vec::new(),
            more: false,
            since: None,
            placed: 0,
            order: Vec::new(),
            state: None,
            origins: some(&|other| seen.is_some() && other.call.leaves() == seen),
            concurrent: some(&|other| {
                // List an operation that was never acknowledged only if it may have changed the object.
                !other.precedes(operation)
                    && other.invoked.line < end
                    && (other.completed().is_some() || other.call.changes())
            }),
        }
    }

    /// True if the operation saw a value that is neither null nor the initial value, and that no operation of the part
    /// can have written.
    fn is_foreign(&self, operation: &Operation) -> bool {
        let left: BTreeSet<V> = self.part.iter().filter_map(|other| other.call.leaves()).collect();
        let unknown = |v: &V| *v != NULL && *v != self.history.initial && !left.contains(v);
        match (operation.call, operation.answer()) {
            (_, Some(Answer::Value(v))) => unknown(v),
            (Call::Contains(v), Some(Answer::Holds(true))) | (Call::Cas(v, _), _) => unknown(&v),
            (_, Some(Answer::Members(members))) => members.iter().any(unknown),
            _ => false,
        }
    }
}

//! Lower bound on the probability that an exploration under strategy `pct` finds a bug. The strategy gives the nodes
//! random priorities. The lower the priority of a node, the higher the latency of the frames that the node sends.

use std::fmt;

use serde::Serialize;

use everett_explorer::plan::draw::pct::Guarantee;
use everett_explorer::run::{Header, Merged};

/// Guarantee of random priorities (PCT): a lower bound on the probability of finding a bug.
///
/// The bound counts each subtree as one run. A subtree is a branch that starts at the root moment, with all branches
/// that descend from it. Its first branch draws priorities from its own random stream. A later branch of the subtree is
/// not an independent run: it keeps the latencies that are still in force, and adds others. Priorities change at random
/// times up to the horizon (the longest time that a timeline can have). The more messages a run has, the lower the
/// bound is. The bound therefore assumes the largest number of messages that any timeline had.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PctGuarantee {
    /// Parameters of the bound.
    #[serde(flatten)]
    pub guarantee: Guarantee,
    /// Lower bound on the probability that one run finds the bug. 0 if there is no bound.
    pub probability: f64,
    /// Lower bound on the probability that at least one run finds the bug.
    pub accumulated: f64,
    /// True if a timeline reached the horizon. Otherwise a run may have more messages than were counted, and the true
    /// bound may be lower.
    pub whole: bool,
}

impl PctGuarantee {
    /// Returns the guarantee of an exploration. `None` if its strategy is not `pct`, or if the recorded world has no
    /// `explore.depth`.
    #[must_use]
    pub fn of(header: &Header, merged: &Merged) -> Option<PctGuarantee> {
        let depth = header.world.pointer("/explore/depth").and_then(serde_json::Value::as_u64);
        let depth = depth.filter(|_| header.strategy.is_pct())?;
        let guarantee = Guarantee {
            chains: header.nodes.len() as u64,
            messages: merged.messages_most(),
            depth: u32::try_from(depth).ok()?,
            runs: merged.subtrees().len() as u64,
        };
        let (probability, accumulated) = (guarantee.probability(), guarantee.accumulated());
        Some(PctGuarantee { guarantee, probability, accumulated, whole: merged.totals().whole > 0 })
    }
}

impl fmt::Display for PctGuarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guarantee.fmt(f)?;
        if !self.whole {
            let messages = self.guarantee.messages;
            write!(f, ". No timeline reached the horizon, so a run may have more than {messages} messages")?;
        }
        Ok(())
    }
}

//! What random priorities promise of an exploration under strategy `pct`.

use std::fmt;

use serde::Serialize;

use crate::plan::draw::pct::Guarantee;
use crate::run::{Header, Merged};

/// What random priorities promise.
///
/// A run is a subtree: its first branch draws priorities under a key of its own. Branches that go on from there keep the latencies
/// that last and get more of them, so that they are no runs of their own. A run's messages are those of the timeline that has the
/// most, since the times at which priorities change are drawn for all the time up to the horizon.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Promise {
    /// What it is made of.
    #[serde(flatten)]
    pub guarantee: Guarantee,
    /// How likely a run finds such a bug, at the least. 0 if nothing is promised.
    pub probability: f64,
    /// How likely one of all runs does.
    pub accumulated: f64,
    /// A timeline came to the horizon. Before, a run may have more messages than were counted, and less is promised.
    pub whole: bool,
}

impl Promise {
    /// That of an exploration, if nodes have random priorities in it.
    #[must_use]
    pub fn of(header: &Header, merged: &Merged) -> Option<Promise> {
        let depth = header.world.pointer("/explore/depth").and_then(serde_json::Value::as_u64);
        let depth = depth.filter(|_| header.strategy.is_pct())?;
        let guarantee = Guarantee {
            chains: header.nodes.len() as u64,
            messages: merged.messages_most(),
            depth: u32::try_from(depth).ok()?,
            runs: merged.subtrees().len() as u64,
        };
        let (probability, accumulated) = (guarantee.probability(), guarantee.accumulated());
        Some(Promise { guarantee, probability, accumulated, whole: merged.totals().whole > 0 })
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guarantee.fmt(f)?;
        if !self.whole {
            f.write_str(
                "; no timeline came to the horizon, up to which there may be more messages than that",
            )?;
        }
        Ok(())
    }
}

//! Random priorities of nodes (probabilistic concurrency testing: Burckhardt et al., ASPLOS 2010; for messages: Ozkan
//! et al., OOPSLA 2018). They become latencies in a fault plan, so they can be replayed and shrunk like other faults.
//!
//! A chain is the sequence of frames that one node sends. The chains get a random order of priorities. At first, the
//! additional latency of a chain's frames is one step for each chain with a higher priority. At d-1 random times, a
//! random chain falls below all other chains, unless it is the lowest already. Its latency is then one step more than
//! that of the chain that was the lowest. The other chains keep their latencies. The depth d is the number of orderings
//! between two events that a bug needs to appear.
//!
//! Not here: merging the entries into a plan (`super::merge`), and the lower bound on the probability that a run finds
//! a bug of depth d (`super::guarantee`).
//!
//! **Invariants.**
//! - Each entry is a latency of the frames that one node sends. The entries of one node do not overlap, and all entries
//!   pass the checks of a plan.
//! - The draws are a function of the number of nodes, the settings, the span and the random stream. A higher depth only
//!   adds falls.

use std::ops::RangeInclusive;

use chacha20::ChaCha20Rng;
use everett_fault::distribution::TIME_NS_MAX;
use everett_fault::{Distribution, Fault, Group, Links, NetworkFault};
use serde::{Deserialize, Serialize};

use crate::plan::limits::{AT_NS_MAX, NETWORK_FAULTS_MAX};
use crate::plan::names::Names;
use crate::plan::{PlanEntry, What};

use super::error::{ConfigError, ConfigProblem};
use super::numbers::{below, between};
use super::span::{Between, Bounded, Span};

pub use super::guarantee::Guarantee;
pub use super::merge::merge;

/// Bounds of the depth d, the number of orderings between two events that a bug needs to appear. At higher depths, the
/// probability that a run finds the bug has a lower bound that is too small to be useful.
pub(crate) const DEPTH: RangeInclusive<u64> = 1..=16;
/// Bounds of the difference in latency between two neighbouring priorities, in nanoseconds: 1 µs to 10 s.
const STEP_NS: RangeInclusive<u64> = 1_000..=10_000_000_000;
/// Maximum number of chains that get random priorities. Each of these chains may need a network fault of its own, and
/// the number of simultaneous network faults is limited. All other chains get no added latency.
const CHAINS_MAX: usize = NETWORK_FAULTS_MAX;

/// Configuration of random priorities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct PctConfig {
    /// Depth d: number of orderings between two events that the bug needs to appear. d-1 falls of priorities are drawn.
    pub depth: u32,
    /// Difference in latency between two neighbouring priorities. Each call of [`entries`] draws it once from this
    /// range.
    pub step: Between<Span>,
}

impl Default for PctConfig {
    fn default() -> PctConfig {
        PctConfig { depth: 3, step: Between(Span::ms(1), Span::ms(50)) }
    }
}

impl PctConfig {
    /// Checks the settings. Drawing with invalid settings is safe, because they are clamped to their bounds.
    ///
    /// # Errors
    /// Returns all errors of the settings.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let error = |key: &str, what: ConfigProblem| ConfigError { key: key.to_owned(), what };
        let depth = self.depth.check(&DEPTH).err().map(|what| error("depth", what));
        let step = self.step.check(&STEP_NS).err().map(|what| error("step", what));
        let found: Vec<ConfigError> = depth.into_iter().chain(step).collect();
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

/// Draws priorities for a span of time, in nanoseconds after *ready* (all services are up). Returns the plan's entries
/// for these priorities, in order of time.
///
/// The span is cut at [`AT_NS_MAX`]. The result is empty if the span is empty, or if the world has fewer than two
/// nodes.
#[must_use]
pub fn entries(
    names: &Names,
    config: &PctConfig,
    from_ns: u64,
    to_ns: u64,
    rng: &mut ChaCha20Rng,
) -> Vec<PlanEntry> {
    let to_ns = to_ns.min(AT_NS_MAX);
    if names.count() < 2 || from_ns >= to_ns {
        return Vec::new();
    }
    let nodes: Vec<&str> = names.nodes().collect();
    Priorities::draw(nodes.len(), config, from_ns, to_ns, rng).entries(&nodes)
}

/// Span of time in which a chain keeps its level. Level 0 is the highest priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    chain: usize,
    level: u64,
    from_ns: u64,
    to_ns: u64,
}

/// Order of the chains at the beginning, and the falls after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Priorities {
    from_ns: u64,
    to_ns: u64,
    step_ns: u64,
    /// Indices of the chains, highest priority first.
    order: Vec<usize>,
    /// Time and chain of each fall, in order of time.
    falls: Vec<(u64, usize)>,
}

impl Priorities {
    /// Draws priorities. There must be at least one chain, and the span must not be empty.
    fn draw(
        chains: usize,
        config: &PctConfig,
        from_ns: u64,
        to_ns: u64,
        rng: &mut ChaCha20Rng,
    ) -> Priorities {
        let clamp = |Span(ns)| ns.clamp(*STEP_NS.start(), *STEP_NS.end());
        let step_ns = between(rng, clamp(config.step.0), clamp(config.step.1));
        let mut order: Vec<usize> = (0..chains).collect();
        for i in 0..chains {
            let other = i + below(rng, (chains - i) as u64) as usize;
            order.swap(i, other);
        }
        order.truncate(CHAINS_MAX);
        let depth = u64::from(config.depth).clamp(*DEPTH.start(), *DEPTH.end());
        let mut falls = Vec::new();
        for _ in 1..depth {
            let at_ns = from_ns + below(rng, to_ns - from_ns);
            let drawn = below(rng, order.len() as u64) as usize;
            falls.extend(order.get(drawn).map(|&chain| (at_ns, chain)));
        }
        falls.sort_by_key(|(at_ns, _)| *at_ns);
        Priorities { from_ns, to_ns, step_ns, order, falls }
    }

    /// Returns the levels of all chains over time, sorted by the beginnings of the stretches.
    fn stretches(&self) -> Vec<Stretch> {
        let (from_ns, to_ns) = (self.from_ns, self.to_ns);
        let first = |(level, &chain)| Stretch { chain, level, from_ns, to_ns };
        let mut last: Vec<Stretch> = (0..).zip(&self.order).map(first).collect();
        let mut lowest = last.len().saturating_sub(1) as u64;
        let mut all = Vec::with_capacity(last.len() + self.falls.len());
        for &(at_ns, chain) in &self.falls {
            // The lowest chain cannot fall.
            let Some(stretch) =
                last.iter_mut().find(|stretch| stretch.chain == chain && stretch.level < lowest)
            else {
                continue;
            };
            lowest += 1;
            all.push(Stretch { to_ns: at_ns, ..*stretch });
            *stretch = Stretch { level: lowest, from_ns: at_ns, ..*stretch };
        }
        all.extend(last);
        all.retain(|stretch| stretch.from_ns < stretch.to_ns);
        all.sort_by_key(|stretch| stretch.from_ns);
        all
    }

    fn entries(&self, nodes: &[&str]) -> Vec<PlanEntry> {
        let entry = |stretch: Stretch| {
            let extra_ns = stretch.level.saturating_mul(self.step_ns).min(TIME_NS_MAX);
            let node = nodes.get(stretch.chain).filter(|_| extra_ns > 0)?;
            let from = Group::Nodes([(*node).to_owned()].into());
            let links = Links { from, to: Group::All, both_ways: false };
            let what = What::Fault(Fault::Network(NetworkFault::Latency {
                links,
                extra: Distribution::Constant(extra_ns),
            }));
            let for_ns = Some(stretch.to_ns - stretch.from_ns);
            Some(PlanEntry { at_ns: stretch.from_ns, for_ns, what })
        };
        self.stretches().into_iter().filter_map(entry).collect()
    }
}

#[cfg(test)]
mod tests;

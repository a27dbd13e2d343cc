//! Computes from a path which faults are injected into its timeline, and where its last branch ends. Both together are
//! the path's fate.
//!
//! A fate is a function of the path and of [`Fates`]: the tables `[faults]` and `[explore]` of the world file, the
//! names of fault targets, the seed and the root moment's vtime. All branches of an exploration have the same
//! [`Fates`], so the path alone is enough to run one of them again.
//!
//! **Invariant.** Up to a fork, a child's plan equals its parent's, event by event.

use everett_fault::PPM;
use everett_streams::{Lineage, Owner, Purpose, Seed, Streams};

use crate::config::ExploreConfig;
use crate::plan::draw::numbers::below;
use crate::plan::draw::pct::{self, PctConfig};
use crate::plan::draw::{FaultConfig, draw_on};
use crate::plan::{Names, Plan};
use crate::search::strategy::StrategyKind;
use crate::search::{Fork, Path};

/// Inputs from which a path's fate is computed.
#[derive(Debug, Clone, Copy)]
pub struct Fates<'w> {
    /// Configuration of the exploration.
    pub explore: &'w ExploreConfig,
    /// Table of faults to draw from.
    pub faults: &'w FaultConfig,
    /// Names of the world's nodes, disks and services: the possible targets of faults.
    pub names: &'w Names,
    /// Seed of the exploration.
    pub seed: Seed,
    /// Vtime of the root moment, in nanoseconds.
    pub root_ns: u64,
}

/// End of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchEnd {
    /// Vtime of the end, in nanoseconds.
    pub at_ns: u64,
    /// True if the end lies before the horizon, so that other branches can start there. No branch runs beyond the
    /// horizon.
    pub open: bool,
    /// True if the checks run after the branch.
    pub checked: bool,
}

impl Fates<'_> {
    /// Returns the fault plan of the timeline that the path leads to. The timeline follows the plan until it is forked
    /// again.
    #[must_use]
    pub fn plan(&self, path: &Path) -> Plan {
        let mut lineage = Lineage::new(self.seed);
        let mut plan = Plan::default();
        let mut faults = self.faults.clone();
        for (depth, &Fork { vtime_ns, child }) in path.forks().iter().enumerate() {
            lineage = lineage.child(vtime_ns, child);
            let mut streams = Streams::new(&lineage, Owner::Fates);
            if depth == 0 && self.explore.swarm {
                faults = faults.swarm(streams.get(Purpose::Swarm));
            }
            let from_ns = vtime_ns.saturating_sub(self.root_ns);
            let horizon_ns = self.explore.horizon.0;
            plan = draw_on(&faults, self.names, &plan, from_ns, horizon_ns, &mut streams).plan;
            if self.explore.strategy == StrategyKind::Pct {
                let config = PctConfig { depth: self.explore.depth, ..PctConfig::default() };
                let late =
                    pct::entries(self.names, &config, from_ns, horizon_ns, streams.get(Purpose::Priority));
                plan = pct::merge(&plan, &late, self.names);
            }
        }
        plan
    }

    /// Returns the end of a path's last branch, or `None` for the empty path of the root moment.
    #[must_use]
    pub fn end(&self, path: &Path) -> Option<BranchEnd> {
        let last = path.forks().last()?;
        let horizon_ns = self.root_ns.saturating_add(self.explore.horizon.0);
        let at_ns = last.vtime_ns.saturating_add(self.explore.segment.0).min(horizon_ns);
        let open = at_ns < horizon_ns;
        let mut streams = Streams::new(&path.lineage(self.seed), Owner::Fates);
        let drawn = below(streams.get(Purpose::Checks), u64::from(PPM)) < u64::from(self.explore.checks());
        Some(BranchEnd { at_ns, open, checked: drawn || !open })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::NodeNames;
    use crate::plan::draw::Span;

    const ROOT_NS: u64 = 700_000_000;

    fn names() -> Names {
        let node = |i: u32| {
            (format!("n{i}"), NodeNames { disks: 1, units: ["u".to_owned()].into(), ..NodeNames::default() })
        };
        (0..4).map(node).collect()
    }

    fn path(children: &[u64], segment_ns: u64) -> Path {
        let forks = children.iter().zip(0..);
        forks.fold(Path::default(), |path, (&child, i)| {
            path.child(Fork { vtime_ns: ROOT_NS + i * segment_ns, child }).unwrap()
        })
    }

    proptest! {
        #[test]
        fn a_childs_plan_continues_its_parents(
            seed: u64,
            children in prop::collection::vec(1..9u64, 1..8),
            swarm: bool,
            pct: bool,
        ) {
            let strategy = if pct { StrategyKind::Pct } else { StrategyKind::Novelty };
            let explore = ExploreConfig { horizon: Span::s(60), swarm, strategy, ..ExploreConfig::default() };
            let (faults, names) = (FaultConfig::default(), names());
            let fates = Fates { explore: &explore, faults: &faults, names: &names, seed: Seed::new(seed), root_ns: ROOT_NS };
            let path = path(&children, explore.segment.0);
            let (plan, parent) = (fates.plan(&path), fates.plan(&path.parent().unwrap()));
            let from_ns = (children.len() as u64 - 1) * explore.segment.0;
            let before = |plan: &Plan| {
                plan.events().all().iter().filter(|event| event.at_ns < from_ns).cloned().collect::<Vec<_>>()
            };
            if children.len() > 1 {
                prop_assert_eq!(before(&plan), before(&parent));
            }
            let again = Plan::new(plan.entries().to_vec(), &names);
            prop_assert_eq!(again.as_ref(), Ok(&plan));
        }
    }

    #[test]
    fn children_of_a_moment_have_different_faults() {
        let explore = ExploreConfig { horizon: Span::s(60), ..ExploreConfig::default() };
        let (faults, names) = (FaultConfig::default(), names());
        let fates =
            Fates { explore: &explore, faults: &faults, names: &names, seed: Seed::new(1), root_ns: ROOT_NS };
        let plan = |children: &[u64]| fates.plan(&path(children, explore.segment.0));
        assert_ne!(plan(&[1]), plan(&[2]));
        assert_ne!(plan(&[1, 1]), plan(&[1, 2]));
        assert_ne!(
            plan(&[1, 1]),
            Fates { seed: Seed::new(2), ..fates }.plan(&path(&[1, 1], explore.segment.0))
        );
        let kinds = |children: &[u64]| {
            let entries = plan(children).entries().to_vec();
            let kind = |entry: crate::plan::PlanEntry| match entry.what {
                crate::plan::What::Fault(fault) => Some(fault.kind()),
                _ => None,
            };
            entries.into_iter().filter_map(kind).collect::<std::collections::BTreeSet<_>>()
        };
        let all = kinds(&[1]).union(&kinds(&[1, 7])).count();
        assert!(all < 16, "a subtree has about half of the kinds: {all}");
    }

    #[test]
    fn branches_end_on_the_grid_and_at_the_horizon() {
        let explore = ExploreConfig { horizon: Span::s(5), ..ExploreConfig::default() };
        let (faults, names) = (FaultConfig::default(), names());
        let fates =
            Fates { explore: &explore, faults: &faults, names: &names, seed: Seed::new(1), root_ns: ROOT_NS };
        let end = |children: &[u64]| fates.end(&path(children, explore.segment.0)).unwrap();
        assert_eq!((end(&[1]).at_ns, end(&[1]).open), (ROOT_NS + 2_000_000_000, true));
        assert_eq!(end(&[1, 1, 1]), BranchEnd { at_ns: ROOT_NS + 5_000_000_000, open: false, checked: true });
        assert_eq!(fates.end(&Path::default()), None);
        let checked = (1..=800).filter(|&child| end(&[child]).checked).count();
        assert!((60..140).contains(&checked), "one in eight is followed by checks: {checked} of 800");
    }
}

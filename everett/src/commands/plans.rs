//! Draws the fault plans of an exploration's branches again, for the report. A plan follows from the tables `[faults]`
//! and `[explore]` of the world file, the seed and the path.

use std::collections::BTreeMap;

use everett_explorer::fate::Fates;
use everett_explorer::plan::{Names, What};
use everett_explorer::run::Header;
use everett_explorer::run::branches::Branches;
use everett_explorer::search::strategy::StrategyKind;
use everett_explorer::search::{Fork, Path};
use everett_world_file::World;
use serde_json::{Value, json};

use super::exploration::recorded_defaults;

/// Maximum number of branches whose faults the report lists. In a larger exploration it lists only the faults of
/// branches with a finding.
const BRANCHES_MAX: usize = 4_000;

/// Returns the generator of the fault plans of an exploration.
pub(super) fn fates<'w>(header: &Header, world: &'w World, names: &'w Names) -> Fates<'w> {
    Fates {
        explore: &world.explore,
        faults: &world.faults,
        names,
        seed: header.seed,
        root_ns: header.root_ns,
    }
}

/// Returns the faults that begin on each branch, as lines of a plan. Empty if the table `[faults]` or `[explore]` of
/// the world file has changed since the exploration.
pub(super) fn of_branches(
    mut world: World,
    header: &Header,
    branches: &Branches,
) -> BTreeMap<u64, Vec<Value>> {
    let Ok(strategy) = header.strategy.0.parse::<StrategyKind>() else { return BTreeMap::new() };
    world.explore.strategy = strategy;
    world.explore.set_absent(recorded_defaults(header));
    let table = |name: &str| header.world.get(name).cloned().unwrap_or_default();
    if json!(world.faults) != table("faults") || json!(world.explore) != table("explore") {
        return BTreeMap::new();
    }
    let names = world.names();
    let fates = fates(header, &world, &names);
    let few = branches.all.len() <= BRANCHES_MAX;
    let listed = (0..).zip(&branches.all).filter(|(_, branch)| few || !branch.findings.is_empty());
    let faults = |(number, branch): (usize, &everett_explorer::run::branches::Branch)| {
        let begin_ns = branch.begin_ns.checked_sub(header.root_ns)?;
        let during = begin_ns..begin_ns.saturating_add(header.segment_ns);
        let plan = fates.plan(&path(branches, number)?);
        let text = plan.write();
        let entries = plan.entries().iter().zip(text.lines());
        let begun = entries
            .filter(|(entry, _)| matches!(entry.what, What::Fault(_)) && during.contains(&entry.at_ns));
        let lines: Vec<Value> = begun.filter_map(|(_, line)| serde_json::from_str(line).ok()).collect();
        (!lines.is_empty()).then_some((number as u64, lines))
    };
    listed.take(BRANCHES_MAX).filter_map(faults).collect()
}

/// Returns the path of a branch. `None` if its forks do not form a valid path.
fn path(branches: &Branches, number: usize) -> Option<Path> {
    let mut way = Vec::new();
    let mut next = Some(number);
    while let Some(branch) = next.and_then(|number| branches.all.get(number)) {
        way.push(Fork { vtime_ns: branch.begin_ns, child: branch.child });
        next = branch.from.and_then(|from| usize::try_from(from).ok());
    }
    way.into_iter().rev().try_fold(Path::default(), |path, fork| path.child(fork).ok())
}

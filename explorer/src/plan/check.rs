//! Checks of a single plan entry against the world's names and the bounds of faults.

use everett_fault::{Fault, Group, GuestFault};

use super::error::Problem;
use super::limits::{AT_NS_MAX, FOR_NS_MAX};
use super::line::Faulty;
use super::names::Names;
use super::{PlanEntry, What};

/// Reports the errors of an entry. Fields that already have an error are skipped.
pub(super) fn entry(entry: &PlanEntry, names: &Names, faulty: &mut Faulty) {
    let mut found: Vec<(&'static str, Problem)> = Vec::new();
    if entry.at_ns > AT_NS_MAX {
        found.push(("at", Problem::BeyondADay));
    }
    found.extend(duration(entry).map(|problem| ("for", problem)));
    if let What::Fault(fault) = &entry.what {
        targets(fault, names, &mut found);
        found.extend(fault.problems().into_iter().map(|p| (p.field, Problem::Value(p.what))));
    }
    found.retain(|(field, _)| !faulty.has(field.split('.').next().unwrap_or(field)));
    for (field, problem) in found {
        faulty.add(field, problem);
    }
}

fn duration(entry: &PlanEntry) -> Option<Problem> {
    match (&entry.what, entry.for_ns) {
        (What::Quiet, None) => Some(Problem::Missing),
        (_, None) => None,
        (What::Heal, Some(_)) => Some(Problem::NothingLasts(entry.what.name())),
        (What::Fault(fault), Some(_)) if !fault.kind().lasts() => {
            Some(Problem::NothingLasts(fault.kind().name()))
        }
        (What::Fault(fault), Some(_)) if fault.is_for_good() => Some(Problem::NeverRestarts),
        (_, Some(0)) => Some(Problem::Zero),
        (_, Some(ns)) => (ns > FOR_NS_MAX).then_some(Problem::BeyondADay),
    }
}

fn targets(fault: &Fault, names: &Names, found: &mut Vec<(&'static str, Problem)>) {
    if let Some(node) = fault.node() {
        found.extend(names.check_node(node).err().map(|problem| ("node", problem)));
    }
    if let Some(disk) = fault.disk() {
        found.extend(names.check_disk(&disk.node, disk.disk).err().map(|problem| ("disk", problem)));
    }
    if let Fault::Guest { node, fault } = fault {
        let unit = match fault {
            GuestFault::Priorities { unit, .. } => names.check_unit(node, unit),
            GuestFault::RestartService { unit } => names.check_service(node, unit),
            GuestFault::ClockStep { .. } | GuestFault::Reseed | GuestFault::Command { .. } => Ok(()),
        };
        found.extend(unit.err().map(|problem| ("unit", problem)));
    }
    if let Some(links) = fault.links() {
        let before = found.len();
        for (field, group) in [("links.from", &links.from), ("links.to", &links.to)] {
            let Group::Nodes(nodes) = group else { continue };
            if nodes.is_empty() {
                found.push((field, Problem::NoNodes));
            }
            found.extend(nodes.iter().filter_map(|node| Some((field, names.check_node(node).err()?))));
        }
        // A link joins two different nodes. The groups have no link if both consist of the same single node, or if the
        // world has no nodes.
        let first_two = |group: &Group| match group {
            Group::All => names.nodes().take(2).map(str::to_owned).collect::<Vec<_>>(),
            Group::Nodes(nodes) => nodes.iter().take(2).cloned().collect(),
        };
        let (from, to) = (first_two(&links.from), first_two(&links.to));
        if found.len() == before && (from.is_empty() || from.len() == 1 && from == to) {
            found.push(("links", Problem::NoLinks));
        }
    }
}

//! Checks that the faults of a plan do not conflict, i.e. that no fault needs a resource that an earlier fault still
//! holds.
//!
//! A node is on, off or paused, and only one fault at a time can switch it off or pause it. Resets, and faults that the
//! agent in the guest carries out, need a running node. Each setting of a node can be held by only one fault at a time,
//! for example its speed, its clock or a disk's latency. Network faults combine freely, with two exceptions: only one
//! fault at a time can clog a network card, i.e. keep it from sending and receiving, and the number of simultaneous
//! network faults is bounded.

use std::collections::{BTreeMap, BTreeSet};

use everett_fault::{
    DiskFault, Fault, FaultKind, GuestFault, MediumFault, NetworkFault, NodeFault, Requests,
};
use everett_input::text::quoted;

use super::PlanEntry;
use super::error::Problem;
use super::limits::NETWORK_FAULTS_MAX;
use super::names::{Names, NodeNames};
use super::quiet_periods::QuietPeriods;

/// Resource that only one fault at a time can hold. The first field is the index of the node among the world's names.
/// The second field is the index of a unit among the node's units, or the number of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Resource {
    Running(usize),
    Card(usize),
    Speed(usize),
    Clock(usize),
    Stalls(usize),
    Priorities(usize, usize),
    DiskErrors(usize, u32, Requests),
    DiskLatency(usize, u32),
    DiskRoom(usize, u32),
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    line: usize,
    kind: FaultKind,
    /// Vtime at which the fault ends, in nanoseconds. `None` if the fault lasts until the end of the workload.
    end_ns: Option<u64>,
}

/// Resources that the admitted faults hold.
#[derive(Debug, Default)]
pub(super) struct HeldResources {
    held: BTreeMap<Resource, Hold>,
    /// Network faults, each as the vtime of its end and its line number.
    network: BTreeSet<(u64, usize)>,
}

impl HeldResources {
    /// Admits a fault. Faults must be admitted in order of their start.
    ///
    /// # Errors
    /// Returns the field and the problem if the fault conflicts with an admitted fault, exceeds the maximum number of
    /// network faults, starts in a quiet period (in which no fault may start), or lasts beyond the start of the next
    /// quiet period or heal (an entry at which all faults end). The fault is then not admitted.
    pub(super) fn admit(
        &mut self,
        line: usize,
        entry: &PlanEntry,
        fault: &Fault,
        periods: &QuietPeriods,
        names: &Names,
    ) -> Result<(), (&'static str, Problem)> {
        let at_ns = entry.at_ns;
        if let Some(quiet) = periods.around(at_ns) {
            return Err(("at", Problem::InQuiet { line: quiet.line, end_ns: quiet.end_ns }));
        }
        let end_ns = periods.end(at_ns, entry.for_ns, fault);
        if let (Some(end_ns), Some(next)) = (end_ns, periods.next(at_ns))
            && end_ns > next.at_ns
        {
            let (what, line, at_ns) = (next.name, next.line, next.at_ns);
            return Err(("for", Problem::Crosses { end_ns, what, line, at_ns }));
        }
        let is_of_network = matches!(fault, Fault::Network(_));
        if is_of_network {
            // Forget the network faults that end at this time or earlier.
            self.network = self.network.split_off(&(at_ns.saturating_add(1), 0));
            if self.network.len() >= NETWORK_FAULTS_MAX {
                let since = self.network.iter().map(|&(_, line)| line).min().unwrap_or(line);
                return Err(("", Problem::TooManyAtOnce { since }));
            }
        }
        if let Some((needs, takes)) = resources(fault, names) {
            for resource in needs.iter().chain(&takes) {
                if let Some(hold) = self.held.get(resource)
                    && hold.end_ns.is_none_or(|end| end > at_ns)
                {
                    return Err(busy(*resource, hold, fault));
                }
            }
            for resource in takes {
                self.held.insert(resource, Hold { line, kind: fault.kind(), end_ns });
            }
        }
        if is_of_network {
            self.network.insert((end_ns.unwrap_or(u64::MAX), line));
        }
        Ok(())
    }
}

fn busy(resource: Resource, hold: &Hold, fault: &Fault) -> (&'static str, Problem) {
    let line = hold.line;
    let busy = Problem::Busy { fault: hold.kind.name(), line };
    match resource {
        Resource::Running(_) => {
            let state = if hold.kind == FaultKind::Pause { "paused" } else { "off" };
            ("node", Problem::NotRunning { node: quoted(fault.node().unwrap_or_default()), state, line })
        }
        Resource::Priorities(..) => ("unit", busy),
        Resource::DiskErrors(..) | Resource::DiskLatency(..) | Resource::DiskRoom(..) => ("disk", busy),
        Resource::Card(_) | Resource::Speed(_) | Resource::Clock(_) | Resource::Stalls(_) => ("node", busy),
    }
}

/// Returns the resource that must be free when a fault starts, and the resources that the fault holds until it ends.
/// Returns `None` for bit rot, for a fault without a node or with an unknown node, and for a fault that sets the
/// priorities of an unknown unit.
fn resources(fault: &Fault, names: &Names) -> Option<(Option<Resource>, Vec<Resource>)> {
    let name = fault.node()?;
    let node = names.nodes().position(|other| other == name)?;
    match fault {
        Fault::Network(fault) => Some((None, of_network(fault, node))),
        Fault::Disk { disk, fault } => Some((None, of_disk(fault, node, disk.disk))),
        Fault::Medium { fault: MediumFault::BitRot { .. }, .. } => None,
        Fault::Node { fault, .. } => Some(of_node(fault, node)),
        Fault::Guest { fault, .. } => {
            Some((Some(Resource::Running(node)), of_guest(fault, node, names.node(name)?)?))
        }
    }
}

fn of_network(fault: &NetworkFault, node: usize) -> Vec<Resource> {
    match fault {
        NetworkFault::Clog { .. } => vec![Resource::Card(node)],
        NetworkFault::Latency { .. }
        | NetworkFault::Loss { .. }
        | NetworkFault::Duplicate { .. }
        | NetworkFault::Reorder { .. }
        | NetworkFault::Corrupt { .. }
        | NetworkFault::Bandwidth { .. }
        | NetworkFault::Partition { .. } => Vec::new(),
    }
}

fn of_disk(fault: &DiskFault, node: usize, disk: u32) -> Vec<Resource> {
    match fault {
        DiskFault::Error { requests, .. } => {
            let all = [Requests::Read, Requests::Write, Requests::Flush];
            let which = all.into_iter().filter(|r| *requests == Requests::All || r == requests);
            which.map(|r| Resource::DiskErrors(node, disk, r)).collect()
        }
        DiskFault::Latency { .. } => vec![Resource::DiskLatency(node, disk)],
        DiskFault::Full => vec![Resource::DiskRoom(node, disk)],
    }
}

fn of_node(fault: &NodeFault, node: usize) -> (Option<Resource>, Vec<Resource>) {
    match fault {
        NodeFault::PowerLoss { .. } | NodeFault::Pause => (None, vec![Resource::Running(node)]),
        NodeFault::Reset { .. } => (Some(Resource::Running(node)), Vec::new()),
        NodeFault::SlowCpu { .. } => (None, vec![Resource::Speed(node)]),
        NodeFault::ClockDrift { .. } => (None, vec![Resource::Clock(node)]),
        NodeFault::Stalls { .. } => (None, vec![Resource::Stalls(node)]),
    }
}

/// Returns the resources that a fault inside a guest holds. Returns `None` if the fault sets priorities of a unit that
/// the node does not have.
fn of_guest(fault: &GuestFault, node: usize, names: &NodeNames) -> Option<Vec<Resource>> {
    match fault {
        GuestFault::Priorities { unit, .. } => {
            let unit = names.units.iter().position(|other| other == unit)?;
            Some(vec![Resource::Priorities(node, unit)])
        }
        GuestFault::ClockStep { .. }
        | GuestFault::Reseed
        | GuestFault::Command { .. }
        | GuestFault::RestartService { .. } => Some(Vec::new()),
    }
}

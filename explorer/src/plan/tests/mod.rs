//! Tests of fault plans, with a shared world and generators of faults and entries.

mod bad_lines;
mod changes;
mod conflicts;
mod cursors;
mod documented;
mod drawn;
mod forms;

use std::collections::BTreeSet;

use everett_fault::{
    DiskFault, DiskName, Distribution, Fault, Group, GuestFault, Links, MediumFault, NetworkFault, NodeFault,
    PPM, PartitionMode, Requests, Restart,
};
use proptest::prelude::*;

use super::*;

/// Returns a world of three nodes: `n1` has two disks and one service, `n2` has neither disks nor services, and `n3`
/// has one disk, two services and the driver `load`. Services and drivers are units.
fn names() -> Names {
    let node = |name: &str, disks, units: &[&str]| {
        let names = |units: &[&str]| units.iter().map(|unit| (*unit).to_owned()).collect();
        let services: Vec<&str> = units.iter().copied().filter(|unit| *unit != "load").collect();
        (name.to_owned(), NodeNames { disks, units: names(units), services: names(&services) })
    };
    [node("n1", 2, &["redis"]), node("n2", 0, &[]), node("n3", 1, &["redis", "sentinel", "load"])]
        .into_iter()
        .collect()
}

fn parse(text: &str) -> Result<Plan, PlanErrors> {
    Plan::parse(text, &names())
}

/// Returns the error messages of a plan.
fn errors_in(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn node() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["n1", "n2", "n3"]).prop_map(str::to_owned)
}

fn disk() -> impl Strategy<Value = DiskName> {
    prop::sample::select(vec![("n1", 0), ("n1", 1), ("n3", 0)])
        .prop_map(|(node, disk)| DiskName { node: node.to_owned(), disk })
}

fn group() -> impl Strategy<Value = Group> {
    prop_oneof![Just(Group::All), prop::collection::btree_set(node(), 1..3).prop_map(Group::Nodes),]
}

fn links() -> impl Strategy<Value = Links> {
    let links = (group(), group(), any::<bool>());
    links.prop_map(|(from, to, both_ways)| Links { from, to, both_ways }).prop_filter("no link", |links| {
        links.from != links.to || links.from.contains("n1") && links.from.contains("n2")
    })
}

/// Generates distributions of times from `least` to `most`, in all forms.
fn times(least: u64, most: u64) -> impl Strategy<Value = Distribution> {
    let time = move || least..=most;
    let points = prop::collection::vec((1..PPM, time()), 0..4);
    prop_oneof![
        time().prop_map(Distribution::Constant),
        (time(), time()).prop_map(|(a, b)| Distribution::Uniform(a.min(b), a.max(b))),
        (time(), points, time()).prop_map(|(first, middle, last)| {
            let shares: BTreeSet<u32> = middle.iter().map(|p| p.0).chain([0, PPM]).collect();
            let mut times: Vec<u64> = middle.iter().map(|p| p.1).chain([first, last]).collect();
            times.sort_unstable();
            Distribution::Quantiles(shares.into_iter().zip(times).collect())
        }),
    ]
}

/// Generates faults that are possible in the world.
fn fault() -> impl Strategy<Value = Fault> {
    let any_time = || times(0, 86_400_000_000_000);
    let modes = prop::sample::select(vec![PartitionMode::Drop, PartitionMode::Hold, PartitionMode::Slow]);
    let restart = || prop::sample::select(vec![Restart::Warm, Restart::Cold]);
    let requests =
        prop::sample::select(vec![Requests::Read, Requests::Write, Requests::Flush, Requests::All]);
    let units = prop::sample::select(vec![("n1", "redis"), ("n3", "redis"), ("n3", "sentinel")]);
    let argv = prop::collection::vec("[^\0]{1,12}", 1..4);
    prop_oneof![
        (links(), any_time())
            .prop_map(|(links, extra)| Fault::Network(NetworkFault::Latency { links, extra })),
        (links(), 0..=PPM).prop_map(|(links, ppm)| Fault::Network(NetworkFault::Loss { links, ppm })),
        (links(), 0..=PPM).prop_map(|(links, ppm)| Fault::Network(NetworkFault::Duplicate { links, ppm })),
        (links(), 0..=PPM, any_time()).prop_map(|(links, ppm, hold)| Fault::Network(NetworkFault::Reorder {
            links,
            ppm,
            hold
        })),
        (links(), 0..=PPM).prop_map(|(links, ppm)| Fault::Network(NetworkFault::Corrupt { links, ppm })),
        (links(), everett_fault::BITS_PER_S)
            .prop_map(|(links, bits_per_s)| Fault::Network(NetworkFault::Bandwidth { links, bits_per_s })),
        (links(), modes).prop_map(|(links, mode)| Fault::Network(NetworkFault::Partition { links, mode })),
        node().prop_map(|node| Fault::Network(NetworkFault::Clog { node })),
        (node(), prop::option::of(restart()), any::<bool>()).prop_map(|(node, restart, tear_sectors)| {
            Fault::Node { node, fault: NodeFault::PowerLoss { restart, tear_sectors } }
        }),
        (node(), restart())
            .prop_map(|(node, restart)| Fault::Node { node, fault: NodeFault::Reset { restart } }),
        node().prop_map(|node| Fault::Node { node, fault: NodeFault::Pause }),
        (node(), everett_fault::SLOW_CPU_PPM)
            .prop_map(|(node, ppm)| Fault::Node { node, fault: NodeFault::SlowCpu { ppm } }),
        (disk(), requests, 0..=PPM).prop_map(|(disk, requests, ppm)| Fault::Disk {
            disk,
            fault: DiskFault::Error { requests, ppm }
        }),
        (disk(), any_time())
            .prop_map(|(disk, extra)| Fault::Disk { disk, fault: DiskFault::Latency { extra } }),
        disk().prop_map(|disk| Fault::Disk { disk, fault: DiskFault::Full }),
        (disk(), everett_fault::BIT_ROT_BITS)
            .prop_map(|(disk, bits)| Fault::Medium { disk, fault: MediumFault::BitRot { bits } }),
        (node(), -everett_fault::CLOCK_DRIFT_PPM_MAX..=everett_fault::CLOCK_DRIFT_PPM_MAX)
            .prop_map(|(node, ppm)| Fault::Node { node, fault: NodeFault::ClockDrift { ppm } }),
        (node(), -everett_fault::CLOCK_STEP_NS_MAX..=everett_fault::CLOCK_STEP_NS_MAX)
            .prop_map(|(node, step_ns)| Fault::Guest { node, fault: GuestFault::ClockStep { step_ns } }),
        (node(), everett_fault::STALL_EVERY_INSTRUCTIONS, times(0, everett_fault::STALL_NS_MAX)).prop_map(
            |(node, every_instructions, stall)| Fault::Node {
                node,
                fault: NodeFault::Stalls { every_instructions, stall }
            }
        ),
        (units, times(everett_fault::PRIORITIES_EVERY_NS_MIN, 86_400_000_000_000)).prop_map(
            |((node, unit), every)| Fault::Guest {
                node: node.into(),
                fault: GuestFault::Priorities { unit: unit.into(), every }
            }
        ),
        node().prop_map(|node| Fault::Guest { node, fault: GuestFault::Reseed }),
        (node(), argv).prop_map(|(node, argv)| Fault::Guest { node, fault: GuestFault::Command { argv } }),
        prop::sample::select(vec![("n1", "redis"), ("n3", "redis"), ("n3", "sentinel")]).prop_map(
            |(node, unit)| Fault::Guest {
                node: node.into(),
                fault: GuestFault::RestartService { unit: unit.into() }
            }
        ),
    ]
}

/// Generates entries that are valid by themselves. Their times are from a small range, so that they often conflict.
fn entry() -> impl Strategy<Value = PlanEntry> {
    let what = prop_oneof![
        16 => fault().prop_map(What::Fault),
        2 => Just(What::Heal),
        1 => Just(What::Quiet),
    ];
    (0u64..40, prop::option::of(1u64..12), what).prop_map(|(at_ns, for_ns, what)| {
        let for_ns = match &what {
            What::Heal => None,
            What::Fault(fault) if fault.is_for_good() => None,
            What::Fault(fault) => for_ns.filter(|_| fault.kind().lasts()),
            What::Quiet => Some(for_ns.unwrap_or(5)),
        };
        PlanEntry { at_ns, for_ns, what }
    })
}

/// Builds a plan from entries, and removes conflicting entries.
fn mended(mut entries: Vec<PlanEntry>) -> Plan {
    loop {
        match Plan::new(entries.clone(), &names()) {
            Ok(plan) => return plan,
            Err(errors) => {
                entries.remove(errors.errors[0].line - 1);
            }
        }
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    prop::collection::vec(entry(), 0..24).prop_map(mended)
}

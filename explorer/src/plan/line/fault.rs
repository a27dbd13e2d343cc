//! Reads and writes the fields of each kind of fault in a line of a plan.

use everett_fault::{
    DiskFault, DiskName, Fault, FaultKind, GuestFault, MediumFault, NetworkFault, NodeFault, PPM,
    PartitionMode, Requests, Restart,
};

use super::fields::{FieldPath, Fields, Value, word};
use super::json::Json;
use super::values::SignedNs;

/// Reads the fields of a fault of this kind.
pub(super) fn read(kind: FaultKind, f: &mut Fields<'_, '_>) -> Fault {
    match kind {
        FaultKind::Latency => {
            Fault::Network(NetworkFault::Latency { links: f.take("links"), extra: f.take("extra") })
        }
        FaultKind::Loss => Fault::Network(NetworkFault::Loss { links: f.take("links"), ppm: f.take("ppm") }),
        FaultKind::Duplicate => {
            Fault::Network(NetworkFault::Duplicate { links: f.take("links"), ppm: f.take("ppm") })
        }
        FaultKind::Reorder => Fault::Network(NetworkFault::Reorder {
            links: f.take("links"),
            ppm: f.take("ppm"),
            hold: f.take("hold"),
        }),
        FaultKind::Corrupt => {
            Fault::Network(NetworkFault::Corrupt { links: f.take("links"), ppm: f.take("ppm") })
        }
        FaultKind::Bandwidth => Fault::Network(NetworkFault::Bandwidth {
            links: f.take("links"),
            bits_per_s: f.take("bits_per_s"),
        }),
        FaultKind::Partition => Fault::Network(NetworkFault::Partition {
            links: f.take("links"),
            mode: f.take_or("mode", PartitionMode::Drop),
        }),
        FaultKind::Clog => Fault::Network(NetworkFault::Clog { node: f.take("node") }),
        FaultKind::PowerLoss => Fault::Node {
            node: f.take("node"),
            fault: NodeFault::PowerLoss {
                restart: f.take_or("restart", Some(Restart::Warm)),
                tear_sectors: f.take_or("tear_sectors", false),
            },
        },
        FaultKind::Reset => Fault::Node {
            node: f.take("node"),
            fault: NodeFault::Reset { restart: f.take_or("restart", Restart::Warm) },
        },
        FaultKind::Pause => Fault::Node { node: f.take("node"), fault: NodeFault::Pause },
        FaultKind::SlowCpu => {
            Fault::Node { node: f.take("node"), fault: NodeFault::SlowCpu { ppm: f.take("ppm") } }
        }
        FaultKind::DiskError => Fault::Disk {
            disk: disk(f),
            fault: DiskFault::Error {
                requests: f.take_or("requests", Requests::All),
                ppm: f.take_or("ppm", PPM),
            },
        },
        FaultKind::DiskLatency => {
            Fault::Disk { disk: disk(f), fault: DiskFault::Latency { extra: f.take("extra") } }
        }
        FaultKind::DiskFull => Fault::Disk { disk: disk(f), fault: DiskFault::Full },
        FaultKind::BitRot => {
            Fault::Medium { disk: disk(f), fault: MediumFault::BitRot { bits: f.take("bits") } }
        }
        FaultKind::ClockDrift => {
            Fault::Node { node: f.take("node"), fault: NodeFault::ClockDrift { ppm: f.take("ppm") } }
        }
        FaultKind::ClockStep => {
            let node = f.take("node");
            let SignedNs(step_ns) = f.take("step");
            Fault::Guest { node, fault: GuestFault::ClockStep { step_ns } }
        }
        FaultKind::Stalls => Fault::Node {
            node: f.take("node"),
            fault: NodeFault::Stalls {
                every_instructions: f.take("every_instructions"),
                stall: f.take("stall"),
            },
        },
        FaultKind::Priorities => Fault::Guest {
            node: f.take("node"),
            fault: GuestFault::Priorities { unit: f.take("unit"), every: f.take("every") },
        },
        FaultKind::Reseed => Fault::Guest { node: f.take("node"), fault: GuestFault::Reseed },
        FaultKind::Command => {
            Fault::Guest { node: f.take("node"), fault: GuestFault::Command { argv: f.take("argv") } }
        }
        FaultKind::RestartService => {
            Fault::Guest { node: f.take("node"), fault: GuestFault::RestartService { unit: f.take("unit") } }
        }
    }
}

fn disk(f: &mut Fields<'_, '_>) -> DiskName {
    DiskName { node: f.take("node"), disk: f.take_or("disk", 0) }
}

/// Fields of a fault with their JSON values, in the order in which `everett_fault` declares them.
type Written = Vec<(&'static str, Json)>;

/// Returns all fields of a fault.
pub(super) fn write(fault: &Fault) -> Written {
    match fault {
        Fault::Network(fault) => write_network(fault),
        Fault::Disk { disk, fault } => {
            let disk = [("node", disk.node.write()), ("disk", disk.disk.write())];
            disk.into_iter().chain(write_disk(fault)).collect()
        }
        Fault::Medium { disk, fault: MediumFault::BitRot { bits } } => {
            vec![("node", disk.node.write()), ("disk", disk.disk.write()), ("bits", bits.write())]
        }
        Fault::Node { node, fault } => {
            [("node", node.write())].into_iter().chain(write_node(fault)).collect()
        }
        Fault::Guest { node, fault } => {
            [("node", node.write())].into_iter().chain(write_guest(fault)).collect()
        }
    }
}

fn write_network(fault: &NetworkFault) -> Written {
    match fault {
        NetworkFault::Latency { links, extra } => vec![("links", links.write()), ("extra", extra.write())],
        NetworkFault::Loss { links, ppm }
        | NetworkFault::Duplicate { links, ppm }
        | NetworkFault::Corrupt { links, ppm } => vec![("links", links.write()), ("ppm", ppm.write())],
        NetworkFault::Reorder { links, ppm, hold } => {
            vec![("links", links.write()), ("ppm", ppm.write()), ("hold", hold.write())]
        }
        NetworkFault::Bandwidth { links, bits_per_s } => {
            vec![("links", links.write()), ("bits_per_s", bits_per_s.write())]
        }
        NetworkFault::Partition { links, mode } => vec![("links", links.write()), ("mode", mode.write())],
        NetworkFault::Clog { node } => vec![("node", node.write())],
    }
}

fn write_disk(fault: &DiskFault) -> Written {
    match fault {
        DiskFault::Error { requests, ppm } => vec![("requests", requests.write()), ("ppm", ppm.write())],
        DiskFault::Latency { extra } => vec![("extra", extra.write())],
        DiskFault::Full => Vec::new(),
    }
}

fn write_node(fault: &NodeFault) -> Written {
    match fault {
        NodeFault::PowerLoss { restart, tear_sectors } => {
            vec![("restart", restart.write()), ("tear_sectors", tear_sectors.write())]
        }
        NodeFault::Reset { restart } => vec![("restart", restart.write())],
        NodeFault::Pause => Vec::new(),
        NodeFault::SlowCpu { ppm } => vec![("ppm", ppm.write())],
        NodeFault::ClockDrift { ppm } => vec![("ppm", ppm.write())],
        NodeFault::Stalls { every_instructions, stall } => {
            vec![("every_instructions", every_instructions.write()), ("stall", stall.write())]
        }
    }
}

fn write_guest(fault: &GuestFault) -> Written {
    match fault {
        GuestFault::ClockStep { step_ns } => vec![("step", SignedNs(*step_ns).write())],
        GuestFault::Priorities { unit, every } => vec![("unit", unit.write()), ("every", every.write())],
        GuestFault::Reseed => Vec::new(),
        GuestFault::Command { argv } => vec![("argv", argv.write())],
        GuestFault::RestartService { unit } => vec![("unit", unit.write())],
    }
}

/// Implements [`Value`] for a type whose values are written as words.
macro_rules! words {
    ($type:ty, $first:expr, $($word:literal = $value:expr),+) => {
        impl Value for $type {
            fn stand_in() -> $type {
                $first
            }

            fn read(json: &Json, place: &mut FieldPath<'_>) -> $type {
                word(&[$(($word, $value)),+], json, place).unwrap_or($first)
            }

            fn write(&self) -> Json {
                let word = [$(($word, $value)),+].into_iter().find(|(_, value)| value == self);
                Json::Text(word.map_or("", |(word, _)| word).to_owned())
            }
        }
    };
}

words!(
    PartitionMode,
    PartitionMode::Drop,
    "drop" = PartitionMode::Drop,
    "hold" = PartitionMode::Hold,
    "slow" = PartitionMode::Slow
);
words!(Restart, Restart::Warm, "warm" = Restart::Warm, "cold" = Restart::Cold);
words!(Option<Restart>, None, "warm" = Some(Restart::Warm), "cold" = Some(Restart::Cold), "never" = None);
words!(
    Requests,
    Requests::All,
    "read" = Requests::Read,
    "write" = Requests::Write,
    "flush" = Requests::Flush,
    "all" = Requests::All
);

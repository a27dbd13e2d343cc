//! The fields of each fault: one table for reading and one for writing.

use everett_fault::{DiskName, Fault, FaultKind, PPM, PartitionMode, Requests, Restart};

use super::fields::{Fields, Place, Value, word};
use super::json::Json;
use super::values::SignedNs;

/// Reads the fields of a fault of this kind.
pub(super) fn read(kind: FaultKind, f: &mut Fields<'_, '_>) -> Fault {
    match kind {
        FaultKind::Latency => Fault::Latency { links: f.take("links"), extra: f.take("extra") },
        FaultKind::Loss => Fault::Loss { links: f.take("links"), ppm: f.take("ppm") },
        FaultKind::Duplicate => Fault::Duplicate { links: f.take("links"), ppm: f.take("ppm") },
        FaultKind::Reorder => {
            Fault::Reorder { links: f.take("links"), ppm: f.take("ppm"), hold: f.take("hold") }
        }
        FaultKind::Corrupt => Fault::Corrupt { links: f.take("links"), ppm: f.take("ppm") },
        FaultKind::Bandwidth => Fault::Bandwidth { links: f.take("links"), bits_per_s: f.take("bits_per_s") },
        FaultKind::Partition => {
            Fault::Partition { links: f.take("links"), mode: f.take_or("mode", PartitionMode::Drop) }
        }
        FaultKind::Clog => Fault::Clog { node: f.take("node") },
        FaultKind::PowerLoss => Fault::PowerLoss {
            node: f.take("node"),
            restart: f.take_or("restart", Some(Restart::Warm)),
            tear_sectors: f.take_or("tear_sectors", false),
        },
        FaultKind::Reset => {
            Fault::Reset { node: f.take("node"), restart: f.take_or("restart", Restart::Warm) }
        }
        FaultKind::Pause => Fault::Pause { node: f.take("node") },
        FaultKind::SlowCpu => Fault::SlowCpu { node: f.take("node"), ppm: f.take("ppm") },
        FaultKind::DiskError => Fault::DiskError {
            disk: disk(f),
            requests: f.take_or("requests", Requests::All),
            ppm: f.take_or("ppm", PPM),
        },
        FaultKind::DiskLatency => Fault::DiskLatency { disk: disk(f), extra: f.take("extra") },
        FaultKind::DiskFull => Fault::DiskFull { disk: disk(f) },
        FaultKind::BitRot => Fault::BitRot { disk: disk(f), bits: f.take("bits") },
        FaultKind::ClockDrift => Fault::ClockDrift { node: f.take("node"), ppm: f.take("ppm") },
        FaultKind::ClockStep => {
            let node = f.take("node");
            let SignedNs(step_ns) = f.take("step");
            Fault::ClockStep { node, step_ns }
        }
        FaultKind::Stalls => Fault::Stalls {
            node: f.take("node"),
            every_instructions: f.take("every_instructions"),
            stall: f.take("stall"),
        },
        FaultKind::Priorities => {
            Fault::Priorities { node: f.take("node"), unit: f.take("unit"), every: f.take("every") }
        }
        FaultKind::Reseed => Fault::Reseed { node: f.take("node") },
        FaultKind::Command => Fault::Command { node: f.take("node"), argv: f.take("argv") },
        FaultKind::RestartService => Fault::RestartService { node: f.take("node"), unit: f.take("unit") },
    }
}

fn disk(f: &mut Fields<'_, '_>) -> DiskName {
    DiskName { node: f.take("node"), disk: f.take_or("disk", 0) }
}

/// Returns all fields of a fault, in the order of the catalogue.
pub(super) fn write(fault: &Fault) -> Vec<(&'static str, Json)> {
    match fault {
        Fault::Latency { links, extra } => vec![("links", links.write()), ("extra", extra.write())],
        Fault::Loss { links, ppm } | Fault::Duplicate { links, ppm } | Fault::Corrupt { links, ppm } => {
            vec![("links", links.write()), ("ppm", ppm.write())]
        }
        Fault::Reorder { links, ppm, hold } => {
            vec![("links", links.write()), ("ppm", ppm.write()), ("hold", hold.write())]
        }
        Fault::Bandwidth { links, bits_per_s } => {
            vec![("links", links.write()), ("bits_per_s", bits_per_s.write())]
        }
        Fault::Partition { links, mode } => vec![("links", links.write()), ("mode", mode.write())],
        Fault::PowerLoss { node, restart, tear_sectors } => {
            vec![("node", node.write()), ("restart", restart.write()), ("tear_sectors", tear_sectors.write())]
        }
        Fault::Reset { node, restart } => vec![("node", node.write()), ("restart", restart.write())],
        Fault::Clog { node } | Fault::Pause { node } | Fault::Reseed { node } => vec![("node", node.write())],
        Fault::SlowCpu { node, ppm } => vec![("node", node.write()), ("ppm", ppm.write())],
        Fault::DiskError { disk, requests, ppm } => {
            on_disk(disk, [("requests", requests.write()), ("ppm", ppm.write())])
        }
        Fault::DiskLatency { disk, extra } => on_disk(disk, [("extra", extra.write())]),
        Fault::DiskFull { disk } => on_disk(disk, []),
        Fault::BitRot { disk, bits } => on_disk(disk, [("bits", bits.write())]),
        Fault::ClockDrift { node, ppm } => vec![("node", node.write()), ("ppm", ppm.write())],
        Fault::ClockStep { node, step_ns } => {
            vec![("node", node.write()), ("step", SignedNs(*step_ns).write())]
        }
        Fault::Stalls { node, every_instructions, stall } => vec![
            ("node", node.write()),
            ("every_instructions", every_instructions.write()),
            ("stall", stall.write()),
        ],
        Fault::Priorities { node, unit, every } => {
            vec![("node", node.write()), ("unit", unit.write()), ("every", every.write())]
        }
        Fault::Command { node, argv } => vec![("node", node.write()), ("argv", argv.write())],
        Fault::RestartService { node, unit } => vec![("node", node.write()), ("unit", unit.write())],
    }
}

fn on_disk<const N: usize>(disk: &DiskName, more: [(&'static str, Json); N]) -> Vec<(&'static str, Json)> {
    [("node", disk.node.write()), ("disk", disk.disk.write())].into_iter().chain(more).collect()
}

/// Implements [`Value`] for a type whose values are written as words.
macro_rules! words {
    ($type:ty, $first:expr, $($word:literal = $value:expr),+) => {
        impl Value for $type {
            fn stand_in() -> $type {
                $first
            }

            fn read(json: &Json, place: &mut Place<'_>) -> $type {
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

//! Tests of the bounds of faults' values, and of the form in which faults are stored.

use super::*;

fn node() -> String {
    "a".to_owned()
}

fn disk() -> DiskName {
    DiskName { node: node(), disk: 0 }
}

/// Returns the error messages for a fault's invalid values, joined with "; ".
fn verdict(fault: &Fault) -> String {
    fault.problems().iter().map(|p| format!("{}: {}", p.field, p.what)).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_ends_of_every_range_are_allowed_and_nothing_beyond() {
    let loss = |ppm| Fault::Network(NetworkFault::Loss { links: Links::all(), ppm });
    let bandwidth = |bits_per_s| Fault::Network(NetworkFault::Bandwidth { links: Links::all(), bits_per_s });
    let slow = |ppm| Fault::Node { node: node(), fault: NodeFault::SlowCpu { ppm } };
    let rot = |bits| Fault::Medium { disk: disk(), fault: MediumFault::BitRot { bits } };
    let drift = |ppm| Fault::Node { node: node(), fault: NodeFault::ClockDrift { ppm } };
    let step = |step_ns| Fault::Guest { node: node(), fault: GuestFault::ClockStep { step_ns } };
    let stalls = |every_instructions, ns| Fault::Node {
        node: node(),
        fault: NodeFault::Stalls { every_instructions, stall: Distribution::Constant(ns) },
    };
    let priorities = |ns, most| Fault::Guest {
        node: node(),
        fault: GuestFault::Priorities { unit: "u".to_owned(), every: Distribution::Uniform(ns, most) },
    };
    for good in [
        loss(0),
        loss(1_000_000),
        bandwidth(1_000),
        bandwidth(1_000_000_000_000),
        slow(1_000),
        slow(1_000_000),
        rot(1),
        rot(65_536),
        drift(-500_000),
        drift(500_000),
        step(-CLOCK_STEP_NS_MAX),
        step(CLOCK_STEP_NS_MAX),
        stalls(1_000, 0),
        stalls(1_000_000_000_000, 1_000_000_000),
        priorities(1_000_000, 2_000_000),
        Fault::Node { node: node(), fault: NodeFault::Reset { restart: Restart::Warm } },
    ] {
        assert_eq!(verdict(&good), "", "{good:?}");
    }
    for (bad, message) in [
        (loss(1_000_001), "ppm: must be from 0 to 1000000 ppm, not 1000001"),
        (bandwidth(999), "bits_per_s: must be from 1000 to 1000000000000 bits a second, not 999"),
        (slow(999), "ppm: must be from 1000 to 1000000 ppm, not 999"),
        (rot(0), "bits: must be from 1 to 65536 bits, not 0"),
        (rot(65_537), "bits: must be from 1 to 65536 bits, not 65537"),
        (drift(-500_001), "ppm: must be from -500000 to 500000 ppm, not -500001"),
        (drift(i32::MAX), "ppm: must be from -500000 to 500000 ppm, not 2147483647"),
        (
            step(i64::MIN),
            "step: must be from -31622400000000000 to 31622400000000000 ns, not -9223372036854775808",
        ),
        (
            stalls(999, 1_000_000_001),
            "every_instructions: must be from 1000 to 1000000000000 instructions, not 999; \
             stall: gives times up to 1000000001 ns: at most 1000000000 ns are allowed",
        ),
        (
            priorities(999_999, 2_000_000),
            "every: gives times down to 999999 ns: at least 1000000 ns are needed",
        ),
        (priorities(2, 1), "every: uniform from 2 to 1 ns: the first must not be above the second"),
    ] {
        assert_eq!(verdict(&bad), message);
    }
}

#[test]
fn all_invalid_values_of_a_fault_are_reported() {
    let bad = Fault::Network(NetworkFault::Reorder {
        links: Links::all(),
        ppm: PPM + 1,
        hold: Distribution::Quantiles(Vec::new()),
    });
    assert_eq!(bad.problems().iter().map(|p| p.field).collect::<Vec<_>>(), ["ppm", "hold"]);
    let bad = Fault::Disk { disk: disk(), fault: DiskFault::Error { requests: Requests::All, ppm: PPM + 1 } };
    assert_eq!(bad.problems().iter().map(|p| p.field).collect::<Vec<_>>(), ["ppm"]);
}

#[test]
fn argument_vectors() {
    let command =
        |argv: Vec<String>| Fault::Guest { node: node(), fault: GuestFault::Command { argv } }.problems();
    let word = |bytes| "x".repeat(bytes);
    assert!(command(vec![word(ARGV_BYTES_MAX - 1), word(1)]).is_empty());
    assert!(command(vec!["x".to_owned(); ARGUMENTS_MAX]).is_empty());
    for argv in [vec![], vec![String::new(), word(1)]] {
        assert_eq!(command(argv)[0].what, FaultError::NoProgram);
    }
    for argv in [
        vec![word(ARGV_BYTES_MAX), word(1)],
        vec!["x".to_owned(); ARGUMENTS_MAX + 1],
        vec![word(1), "\0".to_owned()],
    ] {
        assert_eq!(command(argv)[0].what, FaultError::Arguments);
    }
}

/// Faults with different types of fields are read back as they were stored.
#[test]
fn a_fault_survives_storage() {
    let nodes = |names: &[&str]| crate::Group::Nodes(names.iter().map(|n| (*n).to_owned()).collect());
    for fault in [
        Fault::Network(NetworkFault::Latency {
            links: Links { from: nodes(&["a", "b"]), to: crate::Group::All, both_ways: false },
            extra: Distribution::Quantiles(vec![(0, 1), (PPM, 2)]),
        }),
        Fault::Node { node: node(), fault: NodeFault::PowerLoss { restart: None, tear_sectors: true } },
        Fault::Node {
            node: node(),
            fault: NodeFault::PowerLoss { restart: Some(Restart::Cold), tear_sectors: false },
        },
        Fault::Disk { disk: disk(), fault: DiskFault::Error { requests: Requests::Flush, ppm: 7 } },
        Fault::Guest { node: node(), fault: GuestFault::ClockStep { step_ns: -5 } },
        Fault::Guest { node: node(), fault: GuestFault::Command { argv: vec!["true".to_owned()] } },
        Fault::Guest { node: node(), fault: GuestFault::RestartService { unit: "u".to_owned() } },
    ] {
        let bytes = postcard::to_stdvec(&fault).unwrap();
        assert_eq!(postcard::from_bytes::<Fault>(&bytes), Ok(fault));
    }
}

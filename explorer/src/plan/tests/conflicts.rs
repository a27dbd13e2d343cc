//! Tests that the parser reports conflicts between the faults of a plan. One test compares the reported conflicts with
//! those that a slow check of all pairs of entries finds.

use super::*;

/// Lines of plans, and the errors of each plan.
const PLANS: &[(&[&str], &str)] = &[
    (
        &[
            r#"{"at":"1s","for":"5s","fault":"power_loss","node":"n1"}"#,
            r#"{"at":"2s","for":"5s","fault":"power_loss","node":"n1"}"#,
            r#"{"at":"3s","for":"1s","fault":"pause","node":"n1"}"#,
            r#"{"at":"4s","fault":"reset","node":"n1"}"#,
            r#"{"at":"5s","fault":"command","node":"n1","argv":["sync"]}"#,
            r#"{"at":"6s","fault":"command","node":"n1","argv":["sync"]}"#,
            r#"{"at":"2s","for":"5s","fault":"power_loss","node":"n2"}"#,
        ],
        "line 2: node: \"n1\" is off since line 1\n\
         line 3: node: \"n1\" is off since line 1\n\
         line 4: node: \"n1\" is off since line 1\n\
         line 5: node: \"n1\" is off since line 1",
    ),
    (
        &[
            r#"{"at":"2s","fault":"clock_step","node":"n3","step":"1s"}"#,
            r#"{"at":"1s","fault":"pause","node":"n3"}"#,
            r#"{"at":"3s","fault":"priorities","node":"n3","unit":"redis","every":"5ms"}"#,
            r#"{"at":"4s","fault":"reseed","node":"n3"}"#,
            r#"{"at":"5s","fault":"power_loss","node":"n3"}"#,
            r#"{"at":"5s","fault":"heal"}"#,
            r#"{"at":"6s","fault":"reseed","node":"n3"}"#,
        ],
        "line 1: node: \"n3\" is paused since line 2\n\
         line 3: node: \"n3\" is paused since line 2\n\
         line 4: node: \"n3\" is paused since line 2\n\
         line 7: node: \"n3\" is off since line 5",
    ),
    // The entry `heal` ends all open faults, i.e. faults without a duration. It does not restart a node after a
    // permanent power loss.
    (
        &[
            r#"{"at":"1s","fault":"power_loss","node":"n1","restart":"never"}"#,
            r#"{"at":"2s","fault":"heal"}"#,
            r#"{"at":"3s","for":"1s","fault":"power_loss","node":"n1"}"#,
        ],
        "line 3: node: \"n1\" is off since line 1",
    ),
    (
        &[
            r#"{"at":"1s","for":"9s","fault":"pause","node":"n1"}"#,
            r#"{"at":"5s","fault":"heal"}"#,
            r#"{"at":"20s","for":"5s","fault":"quiet"}"#,
            r#"{"at":"19s","for":"1.5s","fault":"loss","links":"all","ppm":9}"#,
            r#"{"at":"19s","for":"1s","fault":"clog","node":"n1"}"#,
            r#"{"at":"20s","fault":"clog","node":"n1"}"#,
            r#"{"at":"24.9s","fault":"bit_rot","node":"n1","bits":1}"#,
            r#"{"at":"25s","fault":"clog","node":"n1"}"#,
        ],
        "line 1: for: lasts until 10s, beyond the heal of line 2 at 5s\n\
         line 4: for: lasts until 20.5s, beyond the quiet period of line 3 at 20s\n\
         line 6: at: starts in the quiet period of line 3, which lasts until 25s\n\
         line 7: at: starts in the quiet period of line 3, which lasts until 25s",
    ),
    (
        &[
            r#"{"at":1,"for":9,"fault":"disk_error","node":"n1","requests":"read"}"#,
            r#"{"at":2,"for":9,"fault":"disk_error","node":"n1","requests":"write"}"#,
            r#"{"at":2,"for":9,"fault":"disk_error","node":"n1","disk":1}"#,
            r#"{"at":3,"for":9,"fault":"disk_error","node":"n1"}"#,
            r#"{"at":4,"for":9,"fault":"slow_cpu","node":"n1","ppm":5000}"#,
            r#"{"at":5,"for":9,"fault":"slow_cpu","node":"n1","ppm":5000}"#,
            r#"{"at":13,"for":9,"fault":"slow_cpu","node":"n1","ppm":5000}"#,
            r#"{"at":6,"fault":"priorities","node":"n3","unit":"redis","every":"5ms"}"#,
            r#"{"at":7,"fault":"priorities","node":"n3","unit":"sentinel","every":"5ms"}"#,
            r#"{"at":8,"fault":"priorities","node":"n3","unit":"redis","every":"5ms"}"#,
        ],
        "line 4: disk: is still affected by the disk_error of line 1\n\
         line 6: node: is still affected by the slow_cpu of line 5\n\
         line 10: unit: is still affected by the priorities of line 8",
    ),
];

#[test]
fn conflicts_are_reported() {
    for (lines, errors) in PLANS {
        let text = lines.join("\n");
        match parse(&text) {
            Ok(_) => panic!("{text}"),
            Err(found) => assert_eq!(found.to_string(), *errors, "{text}"),
        }
    }
}

#[test]
fn errors_of_lines_and_conflicts_are_reported_together() {
    let power = r#"{"at":"1s","for":"5s","fault":"power_loss","node":"n1"}"#;
    let text = format!("{power}\n{power}\n{{\"at\":\"1s\",\"fault\":\"clog\",\"node\":\"n4\"}}\n{power}");
    assert_eq!(
        errors_in(&text),
        "line 2: node: \"n1\" is off since line 1\n\
         line 3: node: there is no node \"n4\"; did you mean \"n1\"?\n\
         line 4: node: \"n1\" is off since line 1"
    );
    // The first power loss lasts until a heal. If an invalid line between the two power losses may have been meant as a
    // heal, the parser reports no conflict between them.
    let open = r#"{"at":"1s","fault":"power_loss","node":"n1"}"#;
    let again = r#"{"at":"9s","fault":"power_loss","node":"n1"}"#;
    assert!(parse(&format!("{open}\n{{\"at\":\"5s\",\"fault\":\"heal\"}}\n{again}")).is_ok());
    for spoilt in [r#"{"at":"5x","fault":"heal"}"#, r#"{"at":"5s","fault":"hael"}"#, "heal"] {
        let errors = parse(&format!("{open}\n{spoilt}\n{again}")).unwrap_err();
        assert!(errors.errors.iter().all(|error| error.line == 2), "{errors}");
    }
}

/// Returns the end of a fault, computed from all entries.
fn end(entries: &[PlanEntry], entry: &PlanEntry, fault: &Fault) -> Option<u64> {
    let never = matches!(fault, Fault::Node { fault: NodeFault::PowerLoss { restart: None, .. }, .. });
    let healed =
        entries.iter().filter(|other| !matches!(other.what, What::Fault(_)) && other.at_ns > entry.at_ns);
    match entry.for_ns {
        _ if never => None,
        Some(ns) => Some(entry.at_ns + ns),
        None => healed.map(|other| other.at_ns).min(),
    }
}

/// Returns true if an active fault excludes the start of another fault.
fn excludes(on: &Fault, starts: &Fault) -> bool {
    use NodeFault::{ClockDrift, Pause, PowerLoss, Reset, SlowCpu, Stalls};
    let same_node = on.node() == starts.node();
    let same_disk = on.disk() == starts.disk();
    match (on, starts) {
        (Fault::Node { fault: on, .. }, Fault::Node { fault: starts, .. }) => {
            let excluded = matches!(
                (on, starts),
                (PowerLoss { .. } | Pause, PowerLoss { .. } | Pause | Reset { .. })
                    | (SlowCpu { .. }, SlowCpu { .. })
                    | (ClockDrift { .. }, ClockDrift { .. })
                    | (Stalls { .. }, Stalls { .. })
            );
            same_node && excluded
        }
        (Fault::Node { fault: PowerLoss { .. } | Pause, .. }, Fault::Guest { .. }) => same_node,
        (Fault::Network(NetworkFault::Clog { .. }), Fault::Network(NetworkFault::Clog { .. })) => same_node,
        (
            Fault::Guest { fault: GuestFault::Priorities { unit, .. }, .. },
            Fault::Guest { fault: GuestFault::Priorities { unit: other, .. }, .. },
        ) => same_node && unit == other,
        (Fault::Disk { fault: on, .. }, Fault::Disk { fault: starts, .. }) => {
            let excluded = match (on, starts) {
                (DiskFault::Latency { .. }, DiskFault::Latency { .. })
                | (DiskFault::Full, DiskFault::Full) => true,
                (DiskFault::Error { requests, .. }, DiskFault::Error { requests: other, .. }) => {
                    requests == other || [requests, other].contains(&&Requests::All)
                }
                _ => false,
            };
            same_disk && excluded
        }
        _ => false,
    }
}

/// Returns the lines of the entries that conflict with an earlier entry.
fn oracle(entries: &[PlanEntry]) -> Vec<usize> {
    let mut order: Vec<(usize, &PlanEntry)> = entries.iter().enumerate().collect();
    order.sort_by_key(|(line, entry)| (entry.at_ns, *line));
    let mut on: Vec<(&PlanEntry, &Fault)> = Vec::new();
    let mut bad = Vec::new();
    for (line, entry) in order {
        let What::Fault(fault) = &entry.what else { continue };
        let calm = entries.iter().filter(|other| !matches!(other.what, What::Fault(_)));
        let mut disturbed = calm.filter(|period| {
            let quiet =
                period.at_ns <= entry.at_ns && entry.at_ns < period.at_ns + period.for_ns.unwrap_or(0);
            let crossed =
                entry.for_ns.is_some_and(|ns| entry.at_ns < period.at_ns && period.at_ns < entry.at_ns + ns);
            quiet || crossed
        });
        let excluded = on.iter().any(|(other, lasting)| {
            excludes(lasting, fault) && end(entries, other, lasting).is_none_or(|end| end > entry.at_ns)
        });
        if disturbed.next().is_some() || excluded {
            bad.push(line + 1);
        } else if fault.kind().lasts() {
            on.push((entry, fault));
        }
    }
    bad.sort_unstable();
    bad
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]
    #[test]
    fn the_oracle_agrees(entries in prop::collection::vec(entry(), 0..20)) {
        let found = match Plan::new(entries.clone(), &names()) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.errors.iter().map(|error| error.line).collect(),
        };
        prop_assert_eq!(found, oracle(&entries));
    }
}

#[test]
fn the_number_of_network_faults_at_a_time_is_bounded() {
    let line = |at: usize, lasts: usize| {
        format!(r#"{{"at":"{at}ms","for":"{lasts}ms","fault":"loss","links":"all","ppm":1}}"#)
    };
    let most = limits::NETWORK_FAULTS_MAX;
    let mut lines: Vec<String> = (0..most).map(|i| line(i, 1_000)).collect();
    // The added fault begins when the first fault ends.
    lines.push(line(1_000, 1));
    assert!(Plan::parse(&lines.join("\n"), &names()).is_ok());
    lines[most] = line(999, 1);
    let error = Plan::parse(&lines.join("\n"), &names()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "line {}: at most 256 network faults can be active at a time, and 256 already are, \
             the first of them from line 1",
            most + 1
        )
    );
}

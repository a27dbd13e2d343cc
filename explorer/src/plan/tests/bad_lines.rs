//! Tests of invalid lines in fault plans, which compare the exact error messages.

use super::*;

/// Lines with their error messages, without the prefix `line 1: `.
const LINES: &[(&str, &[&str])] = &[
    // Lines that are no entries at all.
    ("{", &["not JSON: EOF while parsing an object at column 1"]),
    ("partition", &["not JSON: expected value at column 1"]),
    (r#"{"at":"1s"} {}"#, &["not JSON: trailing characters at column 13"]),
    ("[1]", &["expected an object, found a list"]),
    ("null", &["expected an object, found null"]),
    ("{}", &["at: is missing", "fault: is missing"]),
    // Unknown faults.
    (
        r#"{"at":"1s","fault":"partiton"}"#,
        &[r#"fault: there is no fault "partiton"; did you mean "partition"?"#],
    ),
    (r#"{"at":"1s","fault":"power"}"#, &[r#"fault: there is no fault "power"; did you mean "power_loss"?"#]),
    (
        r#"{"at":"1s","fault":"earthquake"}"#,
        &[
            "fault: there is no fault \"earthquake\"; the faults are latency, loss, duplicate, reorder, corrupt, \
           bandwidth, partition, clog, power_loss, reset, pause, slow_cpu, disk_error, disk_latency, disk_full, \
           bit_rot, clock_drift, clock_step, stalls, priorities, reseed, command, restart_service, heal, …",
        ],
    ),
    (r#"{"at":"1s","fault":7}"#, &["fault: expected a string, found a number"]),
    // Missing, unknown and repeated fields.
    (
        r#"{"at":"1s","fault":"pause","nod":"n1"}"#,
        &["node: is missing", r#"nod: unknown field; did you mean "node"?"#],
    ),
    (
        r#"{"at":"1s","fault":"pause","node":"n1","colour":"red"}"#,
        &["colour: unknown field; the fields here are at, for, fault, node"],
    ),
    (
        "{\"at\":\"1s\",\"fault\":\"pause\",\"node\":\"n1\",\"a\\nb\":1}",
        &[r#""a\nb": unknown field; the fields here are at, for, fault, node"#],
    ),
    (
        r#"{"at":"1s","fault":"heal","node":"n1"}"#,
        &["node: unknown field; the fields here are at, for, fault"],
    ),
    (r#"{"at":"1s","at":"2s","fault":"heal"}"#, &["at: is given twice"]),
    (r#"{"at":"1s","fault":"clog","node":["n1"]}"#, &["node: expected a string, found a list"]),
    // Invalid times.
    (r#"{"at":-1,"fault":"heal"}"#, &["at: must not be negative"]),
    (r#"{"at":"-1s","fault":"heal"}"#, &["at: must not be negative"]),
    (
        r#"{"at":1.5,"fault":"heal"}"#,
        &["at: expected a duration, found a number that is not whole or has more than 64 bits"],
    ),
    (r#"{"at":"24.1h","fault":"heal"}"#, &["at: is beyond a day (86400s)"]),
    (r#"{"at":18446744073709551615,"fault":"heal"}"#, &["at: is beyond a day (86400s)"]),
    (r#"{"at":"99999999999h","fault":"heal"}"#, &[r#"at: "99999999999h" is too large"#]),
    (
        r#"{"at":"10","fault":"heal"}"#,
        &[r#"at: "10" has no unit; write one of ns, us, ms, s, m, h, as in "10s""#],
    ),
    (
        r#"{"at":"1d","fault":"heal"}"#,
        &[r#"at: "1d" has the unknown unit "d"; the units are ns, us, ms, s, m, h"#],
    ),
    (r#"{"at":"1\n2s","fault":"heal"}"#, &[r#"at: "1\n2s" is not a duration; write one such as "1.5s""#]),
    (r#"{"at":"1s","for":"25h","fault":"pause","node":"n1"}"#, &["for: is beyond a day (86400s)"]),
    (r#"{"at":"1s","for":0,"fault":"pause","node":"n1"}"#, &["for: must be longer than 0"]),
    (r#"{"at":"1s","for":null,"fault":"pause","node":"n1"}"#, &["for: expected a duration, found null"]),
    // Invalid durations.
    (
        r#"{"at":"1s","for":"1s","fault":"reset","node":"n1"}"#,
        &["for: reset is instantaneous and takes no duration"],
    ),
    (
        r#"{"at":"1s","for":"1s","fault":"bit_rot","node":"n1","bits":1}"#,
        &["for: bit_rot is instantaneous and takes no duration"],
    ),
    (
        r#"{"at":"1s","for":"1s","fault":"clock_step","node":"n1","step":"-1s"}"#,
        &["for: clock_step is instantaneous and takes no duration"],
    ),
    (
        r#"{"at":"1s","for":"1s","fault":"reseed","node":"n1"}"#,
        &["for: reseed is instantaneous and takes no duration"],
    ),
    (
        r#"{"at":"1s","for":"1s","fault":"command","node":"n1","argv":["sync"]}"#,
        &["for: command is instantaneous and takes no duration"],
    ),
    (r#"{"at":"1s","for":"1s","fault":"heal"}"#, &["for: heal is instantaneous and takes no duration"]),
    (r#"{"at":"1s","fault":"quiet"}"#, &["for: is missing"]),
    (
        r#"{"at":"1s","for":"1s","fault":"power_loss","node":"n1","restart":"never"}"#,
        &["for: a power loss with restart \"never\" takes no duration"],
    ),
    // Unknown names.
    (r#"{"at":"1s","fault":"pause","node":"n4"}"#, &[r#"node: there is no node "n4"; did you mean "n1"?"#]),
    (
        r#"{"at":"1s","fault":"pause","node":"database"}"#,
        &[r#"node: there is no node "database"; the nodes are n1, n2, n3"#],
    ),
    (
        r#"{"at":"1s","fault":"disk_full","node":"n1","disk":2}"#,
        &[r#"disk: node "n1" has no data disk 2: it has 2, numbered from 0"#],
    ),
    (
        r#"{"at":"1s","fault":"disk_full","node":"n2"}"#,
        &[r#"disk: node "n2" has no data disk 0: it has 0, numbered from 0"#],
    ),
    (
        r#"{"at":"1s","fault":"priorities","node":"n3","unit":"sentinal","every":"10ms"}"#,
        &[r#"unit: node "n3" has no unit "sentinal"; did you mean "sentinel"?"#],
    ),
    (
        r#"{"at":"1s","fault":"restart_service","node":"n3","unit":"load"}"#,
        &[r#"unit: node "n3" has no service "load"; its services are redis, sentinel"#],
    ),
    (
        r#"{"at":"1s","fault":"priorities","node":"n2","unit":"redis","every":"10ms"}"#,
        &[r#"unit: node "n2" has no unit "redis"; its units are none"#],
    ),
    // Invalid links.
    (r#"{"at":"1s","fault":"partition"}"#, &["links: is missing"]),
    (
        r#"{"at":"1s","fault":"partition","links":"some"}"#,
        &[r#"links: expected "all" or an object with "from" and "to", found a string"#],
    ),
    (r#"{"at":"1s","fault":"partition","links":{"from":["n1"]}}"#, &["links.to: is missing"]),
    (
        r#"{"at":"1s","fault":"partition","links":{"from":"n1","to":"all","both":true}}"#,
        &[
            r#"links.from: expected "all" or a list of nodes, found a string"#,
            r#"links.both: unknown field; did you mean "both_ways"?"#,
        ],
    ),
    (
        r#"{"at":"1s","fault":"partition","links":{"from":["n1","n1"],"to":["n2",3]}}"#,
        &["links.from[1]: is given twice", "links.to[1]: expected a string, found a number"],
    ),
    (
        r#"{"at":"1s","fault":"partition","links":{"from":[],"to":["n2","n9"]}}"#,
        &["links.from: names no node", r#"links.to: there is no node "n9"; did you mean "n1"?"#],
    ),
    (
        r#"{"at":"1s","fault":"loss","ppm":1,"links":{"from":["n1"],"to":["n1"]}}"#,
        &["links: these groups select no link: a link joins two different nodes"],
    ),
    // Invalid values.
    (
        r#"{"at":"1s","fault":"loss","links":"all","ppm":1000001}"#,
        &["ppm: must be from 0 to 1000000 ppm, not 1000001"],
    ),
    (r#"{"at":"1s","fault":"loss","links":"all","ppm":-1}"#, &["ppm: must not be negative"]),
    (r#"{"at":"1s","fault":"loss","links":"all","ppm":4294967296}"#, &["ppm: is too large"]),
    (
        r#"{"at":"1s","fault":"loss","links":"all","ppm":0.5}"#,
        &["ppm: expected a whole number, found a number that is not whole or has more than 64 bits"],
    ),
    (
        r#"{"at":"1s","fault":"slow_cpu","node":"n1","ppm":0}"#,
        &["ppm: must be from 1000 to 1000000 ppm, not 0"],
    ),
    (
        r#"{"at":"1s","fault":"clock_drift","node":"n1","ppm":-600000}"#,
        &["ppm: must be from -500000 to 500000 ppm, not -600000"],
    ),
    (
        r#"{"at":"1s","fault":"clock_step","node":"n1","step":"-8785h"}"#,
        &["step: must be from -31622400000000000 to 31622400000000000 ns, not -31626000000000000"],
    ),
    (
        r#"{"at":"1s","fault":"partition","links":"all","mode":"lose"}"#,
        &[r#"mode: "lose" is not one of drop, hold, slow"#],
    ),
    (
        r#"{"at":"1s","fault":"reset","node":"n1","restart":"never"}"#,
        &[r#"restart: "never" is not one of warm, cold"#],
    ),
    (
        r#"{"at":"1s","fault":"disk_error","node":"n1","requests":["read"]}"#,
        &["requests: expected a string, found a list"],
    ),
    (
        r#"{"at":"1s","fault":"power_loss","node":"n1","tear_sectors":1}"#,
        &["tear_sectors: expected true or false, found a number"],
    ),
    (
        r#"{"at":"1s","fault":"command","node":"n1","argv":[]}"#,
        &["argv: the first element must name a program"],
    ),
    (
        r#"{"at":"1s","fault":"command","node":"n1","argv":["a",2]}"#,
        &["argv[1]: expected a string, found a number"],
    ),
    (
        r#"{"at":"1s","fault":"command","node":"n1","argv":["a","\u0000"]}"#,
        &["argv: at most 1024 arguments with 8192 bytes together, none of them NUL"],
    ),
    // Invalid distributions.
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"normal":["1ms","2ms"]}}"#,
        &[
            "extra.normal: unknown field; the fields here are constant, uniform, quantiles",
            r#"extra: give one of "constant", "uniform" and "quantiles""#,
        ],
    ),
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"constant":1,"uniform":[1,2]}}"#,
        &[r#"extra: give one of "constant", "uniform" and "quantiles""#],
    ),
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"uniform":["2ms","1ms"]}}"#,
        &["extra: uniform from 2000000 to 1000000 ns: the first must not be above the second"],
    ),
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"uniform":["2ms"]}}"#,
        &["extra.uniform: expected a list of two, found a list"],
    ),
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"quantiles":[[0,"1x"],[1000000,"1ms"]]}}"#,
        &[r#"extra.quantiles[0][1]: "1x" has the unknown unit "x"; the units are ns, us, ms, s, m, h"#],
    ),
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":{"quantiles":[[0,1],[500000,2]]}}"#,
        &["extra: quantiles: 2 to 64 pairs that ascend from 0 to 1000000 ppm, with times that never descend"],
    ),
    (
        r#"{"at":"1s","fault":"latency","links":"all","extra":"25h"}"#,
        &["extra: 90000000000000 ns: at most a day (86400000000000 ns)"],
    ),
    // Several errors in one line.
    (
        r#"{"at":"-1s","for":"1s","fault":"reset","node":"n9","restart":"hot","color":1}"#,
        &[
            "at: must not be negative",
            r#"restart: "hot" is not one of warm, cold"#,
            "color: unknown field; the fields here are at, for, fault, node, restart",
            "for: reset is instantaneous and takes no duration",
            r#"node: there is no node "n9"; did you mean "n1"?"#,
        ],
    ),
];

#[test]
fn every_bad_line_says_what_is_wrong_and_where() {
    for (line, errors) in LINES {
        let expected: Vec<String> = errors.iter().map(|error| format!("line 1: {error}")).collect();
        assert_eq!(errors_in(line), expected.join("\n"), "{line}");
    }
}

#[test]
fn line_numbers_count_comments_and_errors_are_sorted() {
    let text = "# a comment\n\n  {\"at\":0}\n \t\n  # another\r\n{\"at\":\"1s\",\"fault\":\"clog\",\"node\":\"x\"}\r\n";
    assert_eq!(
        errors_in(text),
        "line 3: fault: is missing\nline 6: node: there is no node \"x\"; the nodes are n1, n2, n3"
    );
}

#[test]
fn at_most_twenty_errors_are_reported() {
    let twenty = parse(&"{}\n".repeat(10)).unwrap_err();
    assert_eq!((twenty.errors.len(), twenty.more), (20, false));
    assert_eq!(twenty.errors[19].line, 10);
    let more = parse(&"{}\n".repeat(5_000)).unwrap_err();
    assert_eq!((more.errors.len(), more.more), (20, true));
    assert_eq!(more.errors[19].line, 10);
    let shown = more.to_string();
    assert_eq!(shown.lines().count(), 21);
    assert!(shown.ends_with("line 10: fault: is missing\nthere are more errors"), "{shown}");
    // At most 20 errors are reported even if all errors are in one line.
    let fields: String = (0..500).map(|i| format!(",\"f{i}\":1")).collect();
    let one = parse(&format!("{{\"at\":0,\"fault\":\"heal\"{fields}}}")).unwrap_err();
    assert_eq!((one.errors.len(), one.more), (20, true));
}

#[test]
fn quotations_of_a_line_are_shortened() {
    let long = "x".repeat(5_000);
    let error = errors_in(&format!(r#"{{"at":"{long}","fault":"pause","node":"\u001b{long}"}}"#));
    assert!(error.len() < 300 && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn bounds_of_a_plan() {
    let blank = "\n".repeat(limits::LINES_MAX);
    assert_eq!(parse(&blank), Ok(Plan::default()));
    assert_eq!(errors_in(&(blank + "\n")), "line 20001: a plan has at most 20000 lines");

    let padded = |bytes: usize| {
        let line = r#"{"at":0,"fault":"heal"}"#;
        format!("\n{line}{}", " ".repeat(bytes - line.len()))
    };
    assert!(parse(&padded(limits::PLAN_LINE_BYTES_MAX)).is_ok());
    assert_eq!(errors_in(&padded(limits::PLAN_LINE_BYTES_MAX + 1)), "line 2: a line has at most 65536 bytes");

    assert_eq!(
        errors_in(&"#".repeat(limits::PLAN_LINE_BYTES_MAX + 1)),
        "line 1: a line has at most 65536 bytes"
    );
    let long = format!("#{}\n", "-".repeat(65_534));
    let full = long.repeat(limits::PLAN_BYTES_MAX >> 16);
    assert_eq!(full.len(), limits::PLAN_BYTES_MAX);
    assert_eq!(parse(&full), Ok(Plan::default()));
    assert_eq!(errors_in(&(full + "#")), "line 129: a plan has at most 8388608 bytes");

    let entries = vec![PlanEntry { at_ns: 0, for_ns: None, what: What::Heal }; limits::LINES_MAX + 1];
    let errors = Plan::new(entries, &names()).unwrap_err().to_string();
    assert_eq!(errors, "line 20001: a plan has at most 20000 lines");
}

/// Everett prints plans in canonical form. A plan that is too large only in canonical form is refused, because its
/// printed text could not be parsed again.
#[test]
fn a_plan_that_is_too_large_only_in_canonical_form_is_refused() {
    // A plan accepts any name of the world, even a name of 32,000 characters.
    let names: Names =
        ["a", "b"].map(|name| (name.repeat(32_000), NodeNames::default())).into_iter().collect();
    let group = |name: &str| Group::Nodes([name.repeat(32_000)].into());
    let links = Links { from: group("a"), to: group("b"), both_ways: true };
    let one = PlanEntry {
        at_ns: 0,
        for_ns: None,
        what: What::Fault(Fault::Network(NetworkFault::Loss { links, ppm: 1 })),
    };
    let plan = Plan::new(vec![one.clone(); 2], &names).unwrap();
    assert_eq!(Plan::parse(&plan.write(), &names), Ok(plan));
    let errors = Plan::new(vec![one.clone(); 200], &names).unwrap_err().to_string();
    assert_eq!(errors, "line 131: a plan has at most 8388608 bytes");

    // A name of 32,000 quotation marks takes twice as many bytes in JSON.
    let names: Names =
        ["a", "\""].map(|name| (name.repeat(32_000), NodeNames::default())).into_iter().collect();
    let links = Links { from: group("a"), to: group("\""), both_ways: true };
    let one = PlanEntry { what: What::Fault(Fault::Network(NetworkFault::Loss { links, ppm: 1 })), ..one };
    let errors = Plan::new(vec![one], &names).unwrap_err().to_string();
    assert_eq!(errors, "line 1: a line has at most 65536 bytes");
}

/// Generates lines from fragments in random order.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\n",
        "#",
        "at",
        "for",
        "fault",
        "\"at\":",
        "\"fault\":",
        "\"1s\"",
        "-1",
        "1e9",
        "\"heal\"",
        "\"loss\"",
        "links",
        "\"all\"",
        "99999999999999999999",
        "\\u0000",
        "null",
        "ppm",
        "n1",
        "é",
    ]);
    prop::collection::vec(scrap, 0..40).prop_map(|scraps| scraps.concat())
}

proptest! {
    /// Any text gives a plan, or errors that are sorted by line. Each error's message is one line.
    #[test]
    fn any_text_gives_a_plan_or_errors(text in prop_oneof![scraps(), "\\PC{0,80}", "(?s).{0,80}"]) {
        check_any(&text)?;
    }

    /// A valid plan with some changed bytes gives a plan, or errors that are sorted by line. Each error's message is
    /// one line.
    #[test]
    fn any_damage_gives_a_plan_or_errors(plan in plan(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = plan.write().into_bytes();
        for (place, byte) in changes {
            if !bytes.is_empty() {
                let i = place.index(bytes.len());
                bytes[i] = byte;
            }
        }
        check_any(&String::from_utf8_lossy(&bytes))?;
    }
}

fn check_any(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(plan) => prop_assert_eq!(parse(&plan.write()), Ok(plan)),
        Err(errors) => {
            prop_assert!(!errors.errors.is_empty() && errors.errors.is_sorted_by_key(|error| error.line));
            prop_assert_eq!(
                errors.to_string().lines().count(),
                errors.errors.len() + usize::from(errors.more)
            );
        }
    }
    Ok(())
}
